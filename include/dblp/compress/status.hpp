// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// How a compression call, or one segment of a message, ended. Each reason to
// refuse a peer's bytes has a value of its own.
#pragma once

#include <cstdint>

#include "dblp/export.hpp"

namespace dblp::compress {

enum class [[nodiscard]] Status : std::uint8_t{
    kOk = 0,
    kMissing,  // the segment did not arrive; its coordinates count as zero

    // A segment is refused, the others are decoded.
    kShort,       // shorter than its header, or than what its header announces
    kWrongCodec,  // another scheme or value format than agreed
    kBadFlags,    // a flag that is not defined, or not for this scheme
    kBadCount,    // more elements than a segment holds, or not those it must hold
    kBadOrdinal,  // a dense segment at another's place
    kBadIndex,    // an element beyond the end of the tensor
    kBadDelta,    // the first element has a distance to one before it
    kBadScale,    // negative, infinite, or a NaN that no encoder writes
    kBadPadding,  // something other than zero behind the last element
    kOverlap,     // begins at or before an element of an earlier segment
    kBadLength,   // the whole message: no length that this codec writes

    // The caller's own mistakes; nothing was done.
    kBadOption,       // options or shape outside their documented limits
    kTooMany,         // more elements asked for than the shape allows
    kSmallWorkspace,  // see encode_workspace() and decode_workspace()
    kSmallBuffer,     // see max_message_bytes() and the shape
    kUnknownParameter,
    kTooMuchLoss,  // this policy is refused above its limit
    kUnsupported,  // not with this scheme

    // Files of Memory::save().
    kBadMagic,
    kBadVersion,
    kTruncated,
    kBadChecksum,
    kBadRecord,

    // The accelerator.
    kNoDevice,
    kDeviceFailed,
};

// The name in snake case, "bad_scale"; for logs and counters.
[[nodiscard]] DBLP_EXPORT const char* status_name(Status status) noexcept;

}  // namespace dblp::compress

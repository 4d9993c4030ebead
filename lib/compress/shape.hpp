// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// What every implementation of a codec derives from its options and shape.
#pragma once

#include "compress/layout.hpp"
#include "dblp/compress/codec.hpp"

namespace dblp::compress {

struct Limits {
  u64 message_bytes;
  u32 segments;
  u32 slots;  // kTopK: of a whole message; kDense: 0
};

// kBadOption, or kOk and *limits filled in.
Status find_limits(const CodecOptions& options, const Shape& shape, Limits* limits);

// The caller's mistakes that all implementations refuse alike.
Status check_encode(const Codec& codec, const EncodeArgs& args);
// Also the length of the message, which is the peer's.
Status check_decode(const Codec& codec, const DecodeArgs& args);

// The message of a dense codec has one length only.
u64 dense_message_bytes(const Dense& dense, const Random& random);

inline bool is_missing(std::span<const u64> missing, u32 segment) {
  return segment / 64 < missing.size() && (missing[segment / 64] >> (segment % 64) & 1) != 0;
}

inline u32 segments_of(u64 message_bytes, u32 segment_bytes) {
  return static_cast<u32>((message_bytes + segment_bytes - 1) / segment_bytes);
}

}  // namespace dblp::compress

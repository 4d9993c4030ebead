// SPDX-License-Identifier: GPL-2.0
//
// What workers and server tell each other: 64 bytes of header, and for gradients
// and averages the floats after it. Little endian; the header is always protected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dblp/result.hpp"

namespace train {

inline constexpr std::size_t kHeaderBytes = 64;

enum class Kind : std::uint16_t {
  kHello = 1,     // worker: checksum of its initial parameters
  kStart = 2,     // server: go, `round` rounds in all
  kGradient = 3,  // worker
  kAverage = 4,   // server
  kFinal = 5,     // worker: checksum of its last parameters
  kVerdict = 6,   // server: checksum is 1 if all replicas are equal, else 0
};

struct Header {
  Kind kind = Kind::kHello;
  std::uint32_t rank = 0;  // of the worker; 0 from the server
  std::uint32_t round = 0;
  std::uint32_t floats = 0;  // after the header
  float loss = 0;            // of this worker's batch, or the mean of all
  double norm = 0;           // of the gradient before anything was lost
  std::uint64_t checksum = 0;
};

// `out` has at least kHeaderBytes.
void encode(const Header& header, std::span<std::byte> out);

// EBADMSG, and why, unless `message` is one header and the floats it claims.
dblp::Result<Header> decode(std::span<const std::byte> message);

}  // namespace train

// SPDX-License-Identifier: GPL-2.0
//
// How the bytes of an all-reduce are divided among the ranks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perf {

// Parts differ by a byte at most; the first ones are the larger ones.
constexpr std::uint64_t part_bytes(std::uint64_t bytes, std::size_t ranks, std::size_t part) {
  return bytes / ranks + (part < bytes % ranks ? 1 : 0);
}

}  // namespace perf

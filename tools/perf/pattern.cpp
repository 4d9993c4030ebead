// SPDX-License-Identifier: GPL-2.0

#include "pattern.hpp"

#include <algorithm>
#include <cstring>

namespace perf {
namespace {

// splitmix64 of Steele, Lea and Flood: all bits of the result depend on all of x.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t not_zero(std::span<const std::byte> part) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(part, [](std::byte b) { return b != std::byte{0}; }));
}

}  // namespace

Pattern::Pattern(std::uint64_t seed, std::size_t max_message)
    : seed_(seed), table_(2 * kPeriod + max_message) {
  for (std::size_t i = 0; i < kPeriod; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = mix(seed + i);
    std::memcpy(table_.data() + i, &word, std::min(sizeof(word), kPeriod - i));
  }
  for (std::size_t i = kPeriod; i < table_.size(); i += kPeriod)
    std::memcpy(table_.data() + i, table_.data(), std::min(kPeriod, table_.size() - i));
}

std::size_t Pattern::start(std::size_t sender, std::uint64_t tag) const {
  return mix(mix(seed_ ^ tag) + sender) % kPeriod;
}

std::span<const std::byte> Pattern::message(std::size_t sender, std::uint64_t tag,
                                            std::size_t bytes) const {
  return std::span(table_).subspan(start(sender, tag), bytes);
}

std::uint64_t Pattern::differences(std::size_t from, std::span<const std::byte> part) const {
  std::uint64_t wrong = 0;
  for (from %= kPeriod; !part.empty(); from = 0) {
    // The table has its period twice at least, so a whole one fits from anywhere.
    const std::size_t length = std::min(part.size(), kPeriod - from);
    const std::byte* expected = table_.data() + from;
    if (std::memcmp(expected, part.data(), length) != 0)
      for (std::size_t i = 0; i < length; ++i) wrong += expected[i] != part[i] ? 1 : 0;
    part = part.subspan(length);
  }
  return wrong;
}

std::uint64_t Pattern::wrong_bytes(std::size_t sender, std::uint64_t tag,
                                   std::span<const std::byte> message,
                                   const dblp::Map& holes) const {
  const std::size_t first = start(sender, tag);
  std::uint64_t wrong = 0;
  std::size_t at = 0;
  holes.for_each_range([&](dblp::Range hole) {
    const std::size_t from = std::min<std::size_t>(hole.offset, message.size());
    const std::size_t length = std::min<std::size_t>(hole.length, message.size() - from);
    wrong += differences(first + at, message.subspan(at, from - at));
    wrong += not_zero(message.subspan(from, length));
    at = from + length;
  });
  return wrong + differences(first + at, message.subspan(at));
}

}  // namespace perf

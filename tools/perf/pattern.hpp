// SPDX-License-Identifier: GPL-2.0
//
// What messages contain: known from seed, sender and tag, so that a receiver can check
// every byte that arrived without being told. It is a table of random bytes whose
// length is prime, read from another place for each message: as quick as memcmp, and
// still no segment of a message can stand in for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dblp/map.hpp"

namespace perf {

class Pattern {
 public:
  static constexpr std::size_t kPeriod = 1'048'573;

  // Can give out messages of up to `max_message` bytes.
  Pattern(std::uint64_t seed, std::size_t max_message);

  // The content of a message. Valid as long as the pattern.
  [[nodiscard]] std::span<const std::byte> message(std::size_t sender, std::uint64_t tag,
                                                   std::size_t bytes) const;
  // How many bytes are not what they should be: the message's, or zero in its holes.
  [[nodiscard]] std::uint64_t wrong_bytes(std::size_t sender, std::uint64_t tag,
                                          std::span<const std::byte> message,
                                          const dblp::Map& holes) const;

 private:
  [[nodiscard]] std::size_t start(std::size_t sender, std::uint64_t tag) const;
  [[nodiscard]] std::uint64_t differences(std::size_t from, std::span<const std::byte> part) const;

  std::uint64_t seed_;
  std::vector<std::byte> table_;
};

}  // namespace perf

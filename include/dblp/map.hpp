// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Which parts of a message did not arrive. Both ends hold the same map of a
// message, bit for bit.
//
//   received.map.for_each_range([&](dblp::Range hole) {
//     restore(hole.offset, hole.length);
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dblp/export.hpp"

namespace dblp {

// Bytes of a message.
struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

class DBLP_EXPORT Map {
 public:
  // Nothing is missing.
  Map() = default;
  // Bit i % 64 of words[i / 64] is set if segment i is missing. Words that are
  // not there count as zero, bits beyond the last segment are dropped.
  Map(std::uint64_t message_bytes, std::uint32_t segments, std::uint32_t segment_size,
      std::vector<std::uint64_t> words);

  [[nodiscard]] std::uint32_t segments() const noexcept { return segments_; }
  [[nodiscard]] std::uint32_t segment_size() const noexcept { return segment_size_; }
  [[nodiscard]] bool empty() const noexcept { return words_.empty(); }
  [[nodiscard]] bool missing(std::uint32_t segment) const noexcept {
    return segment / 64 < words_.size() && (words_[segment / 64] >> (segment % 64) & 1) != 0;
  }
  [[nodiscard]] std::uint32_t missing_segments() const noexcept;
  [[nodiscard]] std::uint64_t missing_bytes() const noexcept;

  // Calls f(Range) for each hole, ascending; neighbouring segments are one hole.
  template <class F>
  void for_each_range(F&& f) const {
    for (std::uint32_t i = next_missing(0); i < segments_;) {
      const std::uint32_t end = next_present(i);
      f(bytes(i, end));
      i = next_missing(end);
    }
  }
  [[nodiscard]] std::vector<Range> ranges() const;

 private:
  [[nodiscard]] std::uint32_t next_missing(std::uint32_t from) const noexcept;
  [[nodiscard]] std::uint32_t next_present(std::uint32_t from) const noexcept;
  [[nodiscard]] Range bytes(std::uint32_t first, std::uint32_t end) const noexcept;

  std::uint64_t message_bytes_ = 0;
  std::uint32_t segments_ = 0;
  std::uint32_t segment_size_ = 0;
  std::vector<std::uint64_t> words_;  // empty if nothing is missing
};

}  // namespace dblp

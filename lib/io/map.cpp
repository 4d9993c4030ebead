// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/map.hpp"

#include <algorithm>
#include <bit>

namespace dblp {

Map::Map(std::uint64_t message_bytes, std::uint32_t segments, std::uint32_t segment_size,
         std::vector<std::uint64_t> words)
    : message_bytes_(message_bytes),
      segments_(segments),
      segment_size_(segment_size),
      words_(std::move(words)) {
  words_.resize(std::min(words_.size(), (std::size_t{segments} + 63) / 64));
  if (segments % 64 != 0 && words_.size() == segments / 64 + 1)
    words_.back() &= (std::uint64_t{1} << (segments % 64)) - 1;
  if (std::ranges::all_of(words_, [](std::uint64_t word) { return word == 0; })) words_.clear();
}

std::uint32_t Map::missing_segments() const noexcept {
  std::uint32_t count = 0;
  for (const std::uint64_t word : words_) count += static_cast<std::uint32_t>(std::popcount(word));
  return count;
}

std::uint64_t Map::missing_bytes() const noexcept {
  std::uint64_t sum = 0;
  for_each_range([&](Range hole) { sum += hole.length; });
  return sum;
}

std::vector<Range> Map::ranges() const {
  std::vector<Range> all;
  for_each_range([&](Range hole) { all.push_back(hole); });
  return all;
}

std::uint32_t Map::next_missing(std::uint32_t from) const noexcept {
  for (std::size_t i = from / 64; i < words_.size(); ++i) {
    std::uint64_t word = words_[i];
    if (i == from / 64) word &= ~std::uint64_t{0} << (from % 64);
    if (word != 0) return static_cast<std::uint32_t>(i * 64) + std::countr_zero(word);
  }
  return segments_;
}

std::uint32_t Map::next_present(std::uint32_t from) const noexcept {
  for (std::size_t i = from / 64; i < words_.size(); ++i) {
    std::uint64_t word = ~words_[i];
    if (i == from / 64) word &= ~std::uint64_t{0} << (from % 64);
    if (word != 0)
      return std::min(segments_, static_cast<std::uint32_t>(i * 64) + std::countr_zero(word));
  }
  return std::min<std::uint32_t>(segments_, static_cast<std::uint32_t>(words_.size() * 64));
}

Range Map::bytes(std::uint32_t first, std::uint32_t end) const noexcept {
  const std::uint64_t start = std::min(std::uint64_t{first} * segment_size_, message_bytes_);
  const std::uint64_t stop = std::min(std::uint64_t{end} * segment_size_, message_bytes_);
  return {start, stop - start};
}

}  // namespace dblp

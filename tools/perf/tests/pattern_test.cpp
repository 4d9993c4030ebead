// SPDX-License-Identifier: GPL-2.0

#include "pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace perf {
namespace {

constexpr std::size_t kLong = 3 * Pattern::kPeriod + 17;

std::vector<std::byte> copy(std::span<const std::byte> from) { return {from.begin(), from.end()}; }

TEST(Pattern, IsItself) {
  const Pattern sender(1, kLong);
  const Pattern receiver(1, 0);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1400}, Pattern::kPeriod, kLong})
    EXPECT_EQ(receiver.wrong_bytes(2, 77, sender.message(2, 77, bytes), {}), 0U) << bytes;
}

TEST(Pattern, EveryWrongByteIsFound) {
  const Pattern pattern(9, kLong);
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    auto message = copy(pattern.message(0, 5, kLong));
    const std::size_t at = random() % kLong;
    message[at] ^= std::byte{1};
    EXPECT_EQ(pattern.wrong_bytes(0, 5, message, {}), 1U) << at;
  }
}

TEST(Pattern, OtherSeedSenderTagOrPlaceIsOtherContent) {
  constexpr std::size_t kBytes = 4096;
  const Pattern pattern(1, 2 * kBytes);
  const auto message = copy(pattern.message(1, 10, kBytes));
  // One byte of 256 is right by chance.
  constexpr std::uint64_t kMost = kBytes * 9 / 10;
  EXPECT_GT(Pattern(2, 0).wrong_bytes(1, 10, message, {}), kMost);
  EXPECT_GT(pattern.wrong_bytes(2, 10, message, {}), kMost);
  EXPECT_GT(pattern.wrong_bytes(1, 11, message, {}), kMost);
  const auto shifted = pattern.message(1, 10, 2 * kBytes).subspan(1400, kBytes);
  EXPECT_GT(pattern.wrong_bytes(1, 10, shifted, {}), kMost);
}

TEST(Pattern, HolesAreZeroAndNothingElseIs) {
  constexpr std::uint32_t kSegment = 1400;
  constexpr std::uint32_t kSegments = 10;
  constexpr std::size_t kBytes = kSegment * kSegments - 100;
  const Pattern pattern(4, kBytes);
  const dblp::Map holes(kBytes, kSegments, kSegment, {0b10'0001'0010});
  auto message = copy(pattern.message(3, 1, kBytes));
  const auto full = message;
  std::fill_n(message.begin() + kSegment, kSegment, std::byte{0});
  std::fill_n(message.begin() + 4 * kSegment, kSegment, std::byte{0});
  std::fill(message.begin() + 9 * kSegment, message.end(), std::byte{0});
  EXPECT_EQ(pattern.wrong_bytes(3, 1, message, holes), 0U);

  auto dirty = message;
  dirty[kSegment + 3] = std::byte{1};
  EXPECT_EQ(pattern.wrong_bytes(3, 1, dirty, holes), 1U) << "a byte in a hole";
  EXPECT_GT(pattern.wrong_bytes(3, 1, full, holes), 2 * kSegment) << "no holes where the map has";
  EXPECT_GT(pattern.wrong_bytes(3, 1, message, {}), 2 * kSegment) << "holes that the map has not";
}

TEST(Pattern, AMapThatReachesBeyondTheMessageDoesNoHarm) {
  const Pattern pattern(4, 100);
  const dblp::Map holes(10'000, 10, 1000, {~std::uint64_t{0}});
  const std::vector<std::byte> zeros(100);
  EXPECT_EQ(pattern.wrong_bytes(0, 1, zeros, holes), 0U);
}

}  // namespace
}  // namespace perf

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/map.hpp"

#include <gtest/gtest.h>

#include <random>

namespace {

using dblp::Map;
using dblp::Range;

TEST(Map, OfNothingMissing) {
  const Map none;
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.missing(0));
  EXPECT_EQ(none.missing_segments(), 0U);
  EXPECT_TRUE(none.ranges().empty());

  const Map zeros(1000, 10, 100, {0});
  EXPECT_TRUE(zeros.empty());
  EXPECT_TRUE(zeros.ranges().empty());
}

TEST(Map, JoinsNeighboursAndCutsTheLastSegment) {
  // Segments 0, 2, 3 and the last, which has 50 bytes.
  const Map map(950, 10, 100, {0b10'0000'1101});
  EXPECT_TRUE(map.missing(0));
  EXPECT_FALSE(map.missing(1));
  EXPECT_TRUE(map.missing(9));
  EXPECT_FALSE(map.missing(10));
  EXPECT_EQ(map.missing_segments(), 4U);
  EXPECT_EQ(map.missing_bytes(), 350U);
  EXPECT_EQ(map.ranges(), (std::vector<Range>{{0, 100}, {200, 200}, {900, 50}}));
}

TEST(Map, JoinsAcrossWords) {
  const Map map(13000, 130, 100, {std::uint64_t{1} << 63, ~std::uint64_t{0}, 0b11});
  EXPECT_EQ(map.missing_segments(), 67U);
  EXPECT_EQ(map.ranges(), (std::vector<Range>{{6300, 6700}}));
}

TEST(Map, IgnoresBitsBeyondTheLastSegmentAndWordsThatAreNotThere) {
  const Map beyond(1000, 10, 100, {~std::uint64_t{0}, ~std::uint64_t{0}});
  EXPECT_EQ(beyond.missing_segments(), 10U);
  EXPECT_EQ(beyond.ranges(), (std::vector<Range>{{0, 1000}}));

  const Map cut(20000, 200, 100, {std::uint64_t{1} << 63});
  EXPECT_EQ(cut.ranges(), (std::vector<Range>{{6300, 100}}));
}

TEST(Map, AgreesWithALookAtEachSegment) {
  constexpr unsigned kSeed = 20240117;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t segments = 1 + random() % 300;
    const std::uint64_t bytes = std::uint64_t{segments} * 64 - random() % 64;
    std::vector<std::uint64_t> words((segments + 63) / 64);
    for (auto& word : words) word = random() & random();
    const Map map(bytes, segments, 64, words);

    std::vector<Range> expected;
    std::uint64_t missing = 0;
    for (std::uint32_t i = 0; i < segments; ++i) {
      ASSERT_EQ(map.missing(i), (words[i / 64] >> (i % 64) & 1) != 0);
      if (!map.missing(i)) continue;
      const std::uint64_t offset = std::uint64_t{i} * 64;
      const std::uint64_t length = std::min<std::uint64_t>(64, bytes - offset);
      missing += length;
      if (!expected.empty() && expected.back().offset + expected.back().length == offset)
        expected.back().length += length;
      else
        expected.push_back({offset, length});
    }
    ASSERT_EQ(map.ranges(), expected);
    ASSERT_EQ(map.missing_bytes(), missing);
  }
}

}  // namespace

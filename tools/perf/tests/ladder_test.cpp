// SPDX-License-Identifier: GPL-2.0

#include "ladder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace perf {
namespace {

TEST(Ladder, NothingIsZero) {
  const Ladder ladder = make_ladder({});
  EXPECT_EQ(ladder.count, 0U);
  EXPECT_EQ(ladder.max, 0);
}

TEST(Ladder, OneValueIsAllOfThem) {
  const std::vector<std::int64_t> values{7};
  const Ladder ladder = make_ladder(values);
  EXPECT_EQ(ladder.min, 7);
  EXPECT_EQ(ladder.p50, 7);
  EXPECT_EQ(ladder.p999, 7);
  EXPECT_EQ(ladder.max, 7);
  EXPECT_EQ(ladder.stddev, 0);
}

TEST(Ladder, TakesTheSmallestValueThatEnoughDoNotExceed) {
  std::vector<std::int64_t> values(1000);
  std::iota(values.begin(), values.end(), 1);
  std::shuffle(values.begin(), values.end(), std::mt19937(5));
  const Ladder ladder = make_ladder(values);
  EXPECT_EQ(ladder.p50, 500);
  EXPECT_EQ(ladder.p90, 900);
  EXPECT_EQ(ladder.p99, 990);
  EXPECT_EQ(ladder.p999, 999);
  EXPECT_EQ(ladder.max, 1000);
  EXPECT_DOUBLE_EQ(ladder.mean, 500.5);
  EXPECT_NEAR(ladder.stddev, 288.819, 0.001);
}

// In floating point 0.9 × 10 is more than 9, and the tenth value would be taken.
TEST(Ladder, RanksAreExact) {
  std::vector<std::int64_t> values(10);
  std::iota(values.begin(), values.end(), 1);
  EXPECT_EQ(make_ladder(values).p90, 9);
  EXPECT_EQ(make_ladder(values).p99, 10);
  EXPECT_EQ(make_ladder(values).p50, 5);
}

TEST(Ladder, SurvivesTheLargestTimes) {
  const std::vector<std::int64_t> values{1'000'000'000'000'000'000, 1'000'000'000'000'000'000};
  EXPECT_DOUBLE_EQ(make_ladder(values).mean, 1e18);
}

}  // namespace
}  // namespace perf

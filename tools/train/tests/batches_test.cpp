// SPDX-License-Identifier: GPL-2.0

#include "batches.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using train::Batches;

TEST(Batches, ShareTheImagesAmongTheWorkers) {
  std::set<std::uint32_t> seen;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    Batches batches(100, 4, rank, 5, 1);
    for (int i = 0; i < 5; ++i)
      for (const auto image : batches.next()) {
        EXPECT_EQ(image % 4, rank);
        EXPECT_TRUE(seen.insert(image).second) << "image " << image << " taken twice";
      }
  }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(Batches, ArriveInANewOrderInEachPass) {
  Batches batches(32, 1, 0, 32, 1);
  const auto first = batches.next();
  const std::vector<std::uint32_t> before(first.begin(), first.end());
  const auto second = batches.next();
  EXPECT_NE(before, std::vector<std::uint32_t>(second.begin(), second.end()));
}

TEST(Batches, FollowTheSeed) {
  Batches a(1000, 2, 1, 8, 7);
  Batches same(1000, 2, 1, 8, 7);
  Batches other(1000, 2, 1, 8, 8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto x = a.next();
    const auto y = same.next();
    const auto z = other.next();
    ASSERT_TRUE(std::equal(x.begin(), x.end(), y.begin()));
    differs = differs || !std::equal(x.begin(), x.end(), z.begin());
  }
  EXPECT_TRUE(differs);
}

TEST(Batches, NeedOneFullBatch) {
  EXPECT_THROW(Batches(10, 2, 0, 6, 1), std::invalid_argument);
  EXPECT_THROW(Batches(10, 2, 0, 0, 1), std::invalid_argument);
  EXPECT_NO_THROW(Batches(10, 2, 0, 5, 1));
}

}  // namespace

// SPDX-License-Identifier: GPL-2.0

#include "workloads.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "parts.hpp"

namespace perf {
namespace {

TEST(Workload, LinksAreMutual) {
  for (const TestKind test :
       {TestKind::kStream, TestKind::kIncast, TestKind::kPs, TestKind::kRing, TestKind::kTranspose})
    for (const std::size_t ranks : {2, 3, 8})
      for (std::size_t a = 0; a < ranks; ++a)
        for (const std::size_t b : links_of(test, a, ranks)) {
          EXPECT_NE(a, b);
          EXPECT_EQ(std::ranges::count(links_of(test, b, ranks), a), 1);
        }
}

TEST(Workload, LinksAreThoseThatAreUsed) {
  using Links = std::vector<std::size_t>;
  EXPECT_EQ(links_of(TestKind::kIncast, 0, 4), (Links{1, 2, 3}));
  EXPECT_EQ(links_of(TestKind::kIncast, 2, 4), (Links{0}));
  EXPECT_EQ(links_of(TestKind::kRing, 0, 4), (Links{1, 3}));
  EXPECT_EQ(links_of(TestKind::kRing, 2, 4), (Links{1, 3}));
  EXPECT_EQ(links_of(TestKind::kTranspose, 2, 4), (Links{0, 1, 3}));
}

TEST(Workload, PartsAreTheWhole) {
  for (const std::uint64_t bytes : {7U, 8U, 1'000'003U}) {
    std::uint64_t sum = 0;
    for (std::size_t part = 0; part < 7; ++part) sum += part_bytes(bytes, 7, part);
    EXPECT_EQ(sum, bytes);
  }
}

// Seven messages, of which one comes late, one is not of this peer, one has a hole.
TEST(Workload, AStreamCountsWhatArrivedInTime) {
  Workload workload;
  workload.test = TestKind::kStream;
  workload.duration_us = 1000;
  workload.interval_us = 400;
  const std::int64_t start = 5'000'000;
  const std::vector<Noted> noted{
      {1, 0, start + 1, 100, 0, false},         {1, 1, start + 399'999, 100, 0, false},
      {1, 2, start + 400'000, 100, 30, true},   {2, 3, start + 500'000, 100, 0, false},
      {1, 4, start + 1'000'000, 100, 0, false}, {1, 5, start + 1'000'001, 100, 0, false},
  };
  const StreamCount count = count_stream(workload, noted, 1, start);
  EXPECT_EQ(count.messages, 4U);
  EXPECT_EQ(count.bytes, 370U);
  EXPECT_EQ(count.missing, 30U);
  EXPECT_EQ(count.below, 1U);
  EXPECT_EQ(count.last_ns, start + 1'000'000);
  EXPECT_EQ(count.intervals, (std::vector<std::uint64_t>{200, 70, 100}));
}

}  // namespace
}  // namespace perf

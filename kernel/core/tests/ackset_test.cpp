// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "ackset.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "seed.h"

namespace dblp::test {
namespace {

constexpr u64 kNow = 5 * DBLP_NSEC_PER_SEC;

class Ackset : public testing::Test {
 protected:
  Ackset() { dblp_ackset_init(&set_); }

  void add(u64 pn, bool eliciting = true, u8 ecn = DBLP_ECN_NOT, u64 now = kNow, u64 rtt = 0) {
    dblp_ackset_add(&set_, pn, ecn, eliciting, now, rtt);
  }
  dblp_f_ack fill(u64 now = kNow) {
    dblp_f_ack f = {};
    dblp_ackset_fill(&set_, &f, now);
    return f;
  }
  std::vector<std::pair<u64, u64>> ranges() const {
    std::vector<std::pair<u64, u64>> all;
    for (u32 i = 0; i < set_.n; i++) all.emplace_back(set_.r[i].first, set_.r[i].last);
    return all;
  }

  dblp_ackset set_;
};

using Ranges = std::vector<std::pair<u64, u64>>;

TEST_F(Ackset, StartsEmpty) {
  EXPECT_EQ(dblp_ackset_largest(&set_), 0u);
  EXPECT_FALSE(dblp_ackset_has(&set_, 1));
  EXPECT_TRUE(dblp_ackset_has(&set_, 0)) << "numbers start at 1";
  EXPECT_EQ(set_.ack_at, DBLP_NEVER);
  EXPECT_EQ(fill().nranges, 0);
}

TEST_F(Ackset, RangesJoin) {
  add(1);
  add(2);
  EXPECT_EQ(ranges(), (Ranges{{1, 2}}));
  add(5);
  EXPECT_EQ(ranges(), (Ranges{{5, 5}, {1, 2}}));
  add(4);
  EXPECT_EQ(ranges(), (Ranges{{4, 5}, {1, 2}}));
  add(3);
  EXPECT_EQ(ranges(), (Ranges{{1, 5}}));
  add(10);
  add(7);
  EXPECT_EQ(ranges(), (Ranges{{10, 10}, {7, 7}, {1, 5}}));
  add(8);
  EXPECT_EQ(ranges(), (Ranges{{10, 10}, {7, 8}, {1, 5}}));
  EXPECT_EQ(dblp_ackset_largest(&set_), 10u);
  EXPECT_TRUE(dblp_ackset_has(&set_, 8));
  EXPECT_FALSE(dblp_ackset_has(&set_, 9));
  EXPECT_FALSE(dblp_ackset_has(&set_, 6));
  EXPECT_FALSE(dblp_ackset_has(&set_, 11));
}

TEST_F(Ackset, AckAfterTheDelay) {
  add(1);
  EXPECT_EQ(set_.ack_at, kNow + DBLP_ACK_DELAY_NS);
}

TEST_F(Ackset, DelayIsAQuarterOfAShortRoundTrip) {
  add(1, true, DBLP_ECN_NOT, kNow, 400000);
  EXPECT_EQ(set_.ack_at, kNow + 100000);
}

TEST_F(Ackset, DelayOfALongRoundTripIsLimited) {
  add(1, true, DBLP_ECN_NOT, kNow, 100 * DBLP_NSEC_PER_MSEC);
  EXPECT_EQ(set_.ack_at, kNow + DBLP_ACK_DELAY_NS);
}

TEST_F(Ackset, EverySecondElicitingPacketAtOnce) {
  add(1);
  add(2, false);
  EXPECT_EQ(set_.ack_at, kNow + DBLP_ACK_DELAY_NS);
  add(3);
  EXPECT_EQ(set_.ack_at, 0u);
  fill();
  EXPECT_EQ(set_.ack_at, DBLP_NEVER);
  EXPECT_EQ(set_.unacked, 0u);
  add(4);
  EXPECT_EQ(set_.ack_at, kNow + DBLP_ACK_DELAY_NS);
}

TEST_F(Ackset, WhatElicitsNothingGetsNoAck) {
  add(1, false);
  add(2, false);
  add(3, false);
  EXPECT_EQ(set_.ack_at, DBLP_NEVER);
}

TEST_F(Ackset, GapAtOnce) {
  add(1);
  fill();
  add(3);
  EXPECT_EQ(set_.ack_at, 0u);
  fill();
  add(2);  // late: not the largest + 1 either
  EXPECT_EQ(set_.ack_at, 0u);
}

TEST_F(Ackset, FirstPacketLostIsAGap) {
  add(2);
  EXPECT_EQ(set_.ack_at, 0u);
}

TEST_F(Ackset, CeAtOnce) {
  add(1, true, DBLP_ECN_CE);
  EXPECT_EQ(set_.ack_at, 0u);
}

TEST_F(Ackset, UrgeAtOnce) {
  add(1);
  dblp_ackset_urge(&set_);
  EXPECT_EQ(set_.ack_at, 0u);
  add(2, false);
  EXPECT_EQ(set_.ack_at, 0u) << "stays urgent";
  fill();
  dblp_ackset_urge(&set_);
  add(3);
  EXPECT_EQ(set_.ack_at, 0u) << "stays urgent";
}

TEST_F(Ackset, CountsEcn) {
  add(1, true, DBLP_ECN_ECT0);
  add(2, true, DBLP_ECN_ECT1);
  add(3, true, DBLP_ECN_CE);
  add(4, true, DBLP_ECN_CE);
  add(5, true, DBLP_ECN_NOT);
  add(6, true, DBLP_ECN_ECT0);
  add(7, true, DBLP_ECN_ECT0);
  const dblp_f_ack f = fill();
  EXPECT_EQ(f.ect0, 3u);
  EXPECT_EQ(f.ect1, 1u);
  EXPECT_EQ(f.ce, 2u);
}

TEST_F(Ackset, FillsRangesNewestFirst) {
  for (u64 pn : {1, 2, 3, 7, 8, 20}) add(pn);
  const dblp_f_ack f = fill();
  ASSERT_EQ(f.nranges, 3);
  EXPECT_EQ(f.largest, 20u);
  EXPECT_EQ(f.range[0].gap, 0);
  EXPECT_EQ(f.range[0].len, 1);
  EXPECT_EQ(f.range[1].gap, 11);
  EXPECT_EQ(f.range[1].len, 2);
  EXPECT_EQ(f.range[2].gap, 3);
  EXPECT_EQ(f.range[2].len, 3);
}

TEST_F(Ackset, LeavesTheCallersFieldsAlone) {
  add(1);
  dblp_f_ack f = {};
  f.ndone = 3;
  f.budget_kib = 77;
  dblp_ackset_fill(&set_, &f, kNow);
  EXPECT_EQ(f.ndone, 3);
  EXPECT_EQ(f.budget_kib, 77u);
}

TEST_F(Ackset, DelayIsThatOfTheLargest) {
  add(5, true, DBLP_ECN_NOT, kNow);
  add(3, true, DBLP_ECN_NOT, kNow + 70000);
  EXPECT_EQ(fill(kNow + 123999).delay_us, 123u);
  EXPECT_EQ(fill(kNow - 1).delay_us, 0u) << "a clock that went back";
  EXPECT_EQ(fill(kNow + 5000 * DBLP_NSEC_PER_SEC).delay_us, U32_MAX);
}

TEST_F(Ackset, LargestIsCutTo32Bits) {
  add((7ULL << 32) + 5);
  EXPECT_EQ(fill().largest, 5u);
}

TEST_F(Ackset, LongRangeIsCutAndEndsTheList) {
  set_.n = 2;
  set_.r[0] = {100000, 300000};
  set_.r[1] = {99980, 99990};
  const dblp_f_ack f = fill();
  ASSERT_EQ(f.nranges, 1);
  EXPECT_EQ(f.range[0].len, U16_MAX);
}

TEST_F(Ackset, LongGapEndsTheList) {
  set_.n = 3;
  set_.r[0] = {200000, 200000};
  set_.r[1] = {134464, 134464};  // gap of 65535
  set_.r[2] = {1, 68927};        // and of 65536
  const dblp_f_ack f = fill();
  ASSERT_EQ(f.nranges, 2);
  EXPECT_EQ(f.range[1].gap, U16_MAX);
}

TEST_F(Ackset, LongestRangeThatFits) {
  set_.n = 2;
  set_.r[0] = {65536, 131070};
  set_.r[1] = {1, 1};
  const dblp_f_ack f = fill();
  ASSERT_EQ(f.nranges, 2);
  EXPECT_EQ(f.range[0].len, U16_MAX);
}

TEST_F(Ackset, OldestRangeIsForgotten) {
  for (u64 i = 0; i < DBLP_ACKSET_RANGES; i++) add(10 + 2 * i);
  EXPECT_EQ(set_.forgotten, 0u);
  EXPECT_FALSE(dblp_ackset_has(&set_, 9));
  add(1000);
  EXPECT_EQ(set_.n, static_cast<u32>(DBLP_ACKSET_RANGES));
  EXPECT_EQ(set_.forgotten, 10u);
  EXPECT_TRUE(dblp_ackset_has(&set_, 9)) << "too old to know";
  EXPECT_TRUE(dblp_ackset_has(&set_, 10));
  EXPECT_FALSE(dblp_ackset_has(&set_, 11)) << "known not to have come";
  EXPECT_TRUE(dblp_ackset_has(&set_, 12));
  EXPECT_EQ(fill().nranges, DBLP_ACK_RANGES);
}

TEST_F(Ackset, NewOldestRangeWithoutRoomIsForgottenItself) {
  for (u64 i = 0; i < DBLP_ACKSET_RANGES; i++) add(10 + 2 * i);
  add(5);
  EXPECT_EQ(set_.n, static_cast<u32>(DBLP_ACKSET_RANGES));
  EXPECT_EQ(set_.r[set_.n - 1].first, 10u);
  EXPECT_EQ(set_.forgotten, 5u);
  EXPECT_FALSE(dblp_ackset_has(&set_, 9));
  add(9);  // joins the oldest
  EXPECT_EQ(set_.r[set_.n - 1].first, 9u);
}

TEST_F(Ackset, RandomOrderAgreesWithASet) {
  Random random = seeded();
  for (int run = 0; run < 50; run++) {
    dblp_ackset_init(&set_);
    std::set<u64> plain;
    u64 top = 1;
    for (int i = 0; i < 3000; i++) {
      const u64 pn = pick(random, top > 200 ? top - 200 : 1, top + (i % 50 ? 2 : 20));
      const bool known = pn <= set_.forgotten || plain.count(pn);
      ASSERT_EQ(dblp_ackset_has(&set_, pn), known) << pn;
      if (known) continue;
      add(pn);
      plain.insert(pn);
      top = std::max(top, pn);
      ASSERT_EQ(dblp_ackset_largest(&set_), top);
    }
    // Each range holds what came, and is maximal.
    for (u32 i = 0; i < set_.n; i++) {
      for (u64 pn = set_.r[i].first; pn <= set_.r[i].last; pn++) ASSERT_TRUE(plain.count(pn));
      ASSERT_FALSE(plain.count(set_.r[i].last + 1));
      if (i) {
        ASSERT_GT(set_.r[i - 1].first, set_.r[i].last + 1);
      }
    }
    // Nothing that came since the last forgotten one is missing.
    size_t kept = 0;
    for (u64 pn : plain) kept += pn > set_.forgotten;
    size_t held = 0;
    for (u32 i = 0; i < set_.n; i++) held += set_.r[i].last - set_.r[i].first + 1;
    ASSERT_EQ(held, kept);
  }
}

}  // namespace
}  // namespace dblp::test

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "seed.h"

namespace dblp::test {
namespace {

class Budget : public testing::Test {
 protected:
  Budget() {
    dblp_budget_init(&budget_, 100);
    for (dblp_claim& c : claim_) dblp_claim_init(&c);
  }
  bool claim(int i, u64 bytes) { return dblp_budget_claim(&budget_, &claim_[i], bytes); }
  void release(int i) { dblp_budget_release(&budget_, &claim_[i]); }
  // Index of the claim granted, -1 none.
  int grant() {
    dblp_claim* c = dblp_budget_grant(&budget_);
    return c ? static_cast<int>(c - claim_) : -1;
  }
  u64 room() { return dblp_budget_free(&budget_); }

  dblp_budget budget_;
  dblp_claim claim_[8];
};

TEST_F(Budget, HoldsUntilFull) {
  EXPECT_EQ(room(), 100u);
  EXPECT_TRUE(claim(0, 60));
  EXPECT_EQ(room(), 40u);
  EXPECT_TRUE(claim(1, 40));
  EXPECT_EQ(room(), 0u);
  EXPECT_FALSE(claim(2, 1));
  EXPECT_EQ(budget_.nwaiters, 1u);
  release(0);
  EXPECT_EQ(room(), 60u);
  EXPECT_EQ(grant(), 2);
  EXPECT_TRUE(claim_[2].held);
  EXPECT_EQ(room(), 59u);
  EXPECT_EQ(budget_.nwaiters, 0u);
  EXPECT_EQ(grant(), -1);
}

TEST_F(Budget, ClaimIsIdempotent) {
  EXPECT_TRUE(claim(0, 60));
  EXPECT_TRUE(claim(0, 60));
  EXPECT_EQ(room(), 40u);
  EXPECT_FALSE(claim(1, 50));
  EXPECT_FALSE(claim(1, 50));
  EXPECT_EQ(budget_.nwaiters, 1u);
}

TEST_F(Budget, ReleaseIsIdempotent) {
  claim(0, 60);
  claim(1, 50);
  release(0);
  release(0);
  EXPECT_EQ(room(), 100u);
  release(1);  // leaves the queue
  release(1);
  EXPECT_EQ(budget_.nwaiters, 0u);
  EXPECT_EQ(grant(), -1);
  EXPECT_EQ(room(), 100u);
  EXPECT_TRUE(claim(1, 100)) << "a released claim can be made again";
}

TEST_F(Budget, NobodyOvertakes) {
  EXPECT_TRUE(claim(0, 80));
  EXPECT_FALSE(claim(1, 50));
  EXPECT_FALSE(claim(2, 10)) << "there would be room, but another waits";
  EXPECT_EQ(grant(), -1);
  release(0);
  EXPECT_EQ(grant(), 1);
  EXPECT_EQ(grant(), 2);
}

TEST_F(Budget, WhoLeavesTheQueueLetsOthersPass) {
  claim(0, 80);
  claim(1, 50);
  claim(2, 10);
  release(1);
  EXPECT_EQ(grant(), 2);
}

TEST_F(Budget, LargerThanTheLimitOnlyAlone) {
  EXPECT_TRUE(claim(0, 1));
  EXPECT_FALSE(claim(1, 1000));
  EXPECT_EQ(grant(), -1);
  release(0);
  EXPECT_EQ(grant(), 1);
  EXPECT_EQ(room(), 0u);
  EXPECT_FALSE(claim(2, 1));
  release(1);
  EXPECT_EQ(room(), 100u);
  EXPECT_EQ(grant(), 2);
}

TEST_F(Budget, LargerThanTheLimitAtOnceIfAlone) { EXPECT_TRUE(claim(0, U64_MAX)); }

TEST_F(Budget, LimitLoweredUnderWhatIsHeld) {
  claim(0, 80);
  budget_.limit = 50;
  EXPECT_EQ(room(), 0u);
  EXPECT_FALSE(claim(1, 1));
  release(0);
  EXPECT_EQ(room(), 50u);
  EXPECT_EQ(grant(), 1);
}

TEST_F(Budget, RandomUseKeepsTheAccounts) {
  Random random = seeded();
  std::vector<dblp_claim> claims(50);
  for (dblp_claim& c : claims) dblp_claim_init(&c);
  std::deque<dblp_claim*> waiting;
  for (int i = 0; i < 100000; i++) {
    dblp_claim& c = claims[pick(random, 0, claims.size() - 1)];
    const auto place = std::find(waiting.begin(), waiting.end(), &c);
    if (random() & 1) {
      const bool held = c.held;
      const bool got = dblp_budget_claim(&budget_, &c, pick(random, 1, 130));
      ASSERT_EQ(got, c.held);
      if (!held && !got && place == waiting.end()) waiting.push_back(&c);
    } else {
      dblp_budget_release(&budget_, &c);
      ASSERT_FALSE(c.held);
      if (place != waiting.end()) waiting.erase(place);
    }
    while (dblp_claim* granted = dblp_budget_grant(&budget_)) {
      ASSERT_FALSE(waiting.empty());
      ASSERT_EQ(granted, waiting.front()) << "not in order";
      waiting.pop_front();
    }
    u64 held = 0;
    int holders = 0;
    for (const dblp_claim& other : claims) {
      if (!other.held) continue;
      held += other.bytes;
      holders++;
    }
    ASSERT_EQ(budget_.used, held);
    ASSERT_EQ(budget_.nwaiters, waiting.size());
    ASSERT_TRUE(held <= budget_.limit || holders == 1);
    ASSERT_TRUE(waiting.empty() || holders) << "someone waits while nothing is held";
  }
}

}  // namespace
}  // namespace dblp::test

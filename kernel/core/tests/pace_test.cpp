// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "pace.h"

#include <gtest/gtest.h>

namespace dblp::test {
namespace {

constexpr uint64_t kUs = 1000, kMs = 1000 * kUs, kSec = 1000 * kMs;
constexpr uint32_t kPacket = 1000;

class Pace : public testing::Test {
 protected:
  Pace() {
    dblp_rtt_init(&rtt_);
    cc_.mss = kPacket;
    cc_.pacing_rate = 10000000;  // a packet every 100 us
  }
  // Packets that go at @now.
  int burst(uint64_t now) {
    int n = 0;
    dblp_pace_begin(&pace_, now);
    while (n < 1000 && dblp_pace_may_send(&pace_, now)) {
      dblp_pace_sent(&pace_, &cc_, &rtt_, kPacket, now);
      n++;
    }
    return n;
  }
  uint64_t timer() const { return dblp_pace_timer(&pace_, &cc_, &rtt_); }

  dblp_pace pace_ = {};
  dblp_cc cc_ = {};
  dblp_rtt rtt_;
};

TEST_F(Pace, KeepsItsRateWithAPunctualTimer) {
  uint64_t now = kSec;
  int sent = burst(now);
  EXPECT_LE(sent, 3);
  while (now < 2 * kSec) {
    ASSERT_NE(timer(), DBLP_NEVER);
    ASSERT_GT(timer(), now);
    now = timer();
    const int n = burst(now);
    ASSERT_LE(n, 3) << "no burst";
    sent += n;
  }
  EXPECT_NEAR(sent, 10000, 10);
}

TEST_F(Pace, KeepsItsRateWithALateTimer) {
  for (const uint64_t late : {300 * kUs, 1 * kMs, 5 * kMs}) {
    pace_ = {};
    uint64_t now = kSec;
    burst(now);
    int sent = 0;
    const uint64_t begin = now;
    for (int i = 0; i < 100; i++) {
      now = timer() + late;
      sent += burst(now);
    }
    EXPECT_GE(sent, 0.95 * (now - begin) / (100 * kUs)) << late;
  }
}

// Whoever has been late once is not allowed bursts for ever.
TEST_F(Pace, ForgetsThatItWasLate) {
  uint64_t now = kSec;
  burst(now);
  now = timer() + 5 * kMs;
  EXPECT_GE(burst(now), 45);
  for (int i = 0; i < 100; i++) {
    now = timer();
    burst(now);
  }
  now = pace_.send_at + 5 * kMs;
  pace_.waiting = false;  // the application had nothing to send
  EXPECT_LE(burst(now), 4);
}

TEST_F(Pace, AStallOfSecondsIsNotCaughtUp) {
  uint64_t now = kSec;
  burst(now);
  EXPECT_LE(burst(now + 3 * kSec), 81) << "8 ms";
}

// An ACK that comes before the timer is due says nothing about timers.
TEST_F(Pace, IsNotLateWhenItIsWokenEarly) {
  uint64_t now = kSec;
  burst(now);
  for (int i = 0; i < 1000; i++) {
    now += 10 * kUs;
    burst(now);
  }
  EXPECT_LE(pace_.late, 10 * kUs);
}

TEST_F(Pace, WithoutARateNothingWaits) {
  cc_.pacing_rate = 0;
  EXPECT_EQ(burst(kSec), 1000);
  EXPECT_EQ(timer(), DBLP_NEVER);
}

}  // namespace
}  // namespace dblp::test

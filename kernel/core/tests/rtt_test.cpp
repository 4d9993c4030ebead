// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "rtt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ackset.h"
#include "seed.h"

namespace {

using dblp::test::pick;
using dblp::test::Random;

constexpr uint64_t kUs = DBLP_NSEC_PER_USEC;
constexpr uint64_t kMs = DBLP_NSEC_PER_MSEC;
constexpr uint64_t kSec = DBLP_NSEC_PER_SEC;

dblp_rtt fresh() {
  dblp_rtt r;
  dblp_rtt_init(&r);
  return r;
}

TEST(Rtt, BeforeASampleTheGuessIsUsed) {
  const dblp_rtt r = fresh();
  EXPECT_EQ(dblp_rtt_srtt(&r), DBLP_RTT_INITIAL_NS);
  EXPECT_EQ(r.min_rtt, DBLP_NEVER);
  // 20 ms + 4 * 10 ms + 1 ms
  EXPECT_EQ(dblp_rtt_pto(&r, 0), 61 * kMs);
}

TEST(Rtt, TheFirstSampleIsTaken) {
  dblp_rtt r = fresh();
  dblp_rtt_sample(&r, 300 * kUs, 0, kSec);
  EXPECT_EQ(dblp_rtt_srtt(&r), 300 * kUs);
  EXPECT_EQ(r.rttvar, 150 * kUs);
  EXPECT_EQ(r.min_rtt, 300 * kUs);
  EXPECT_EQ(r.min_at, kSec);
  EXPECT_EQ(r.latest, 300 * kUs);
  // 300 + 4 * 150 + 300 / 4
  EXPECT_EQ(dblp_rtt_pto(&r, 0), 975 * kUs);
}

TEST(Rtt, SmoothingIsThatOfRfc6298) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    SCOPED_TRACE(seed);
    Random random(seed);
    dblp_rtt r = fresh();
    double srtt = 0, var = 0;
    for (int i = 0; i < 200; i++) {
      const uint64_t sample = pick(random, 100 * kUs, 5 * kMs);
      dblp_rtt_sample(&r, sample, 0, kSec + i);
      if (i == 0) {
        srtt = sample;
        var = sample / 2.0;
      } else {
        var = 0.75 * var + 0.25 * std::abs(srtt - sample);
        srtt = 0.875 * srtt + 0.125 * sample;
      }
      ASSERT_NEAR(r.srtt, srtt, 100);
      ASSERT_NEAR(r.rttvar, var, 100);
    }
  }
}

TEST(Rtt, TheAckDelayIsTakenOffButNotBelowTheMinimum) {
  dblp_rtt r = fresh();
  dblp_rtt_sample(&r, 1000 * kUs, 0, kSec);
  dblp_rtt_sample(&r, 1800 * kUs, 800 * kUs, kSec);
  EXPECT_EQ(r.srtt, 1000 * kUs);
  EXPECT_EQ(r.latest, 1800 * kUs) << "the raw sample";
  // More than there is above the minimum: not believed.
  dblp_rtt_sample(&r, 1800 * kUs, 801 * kUs, kSec);
  EXPECT_EQ(r.srtt, 1100 * kUs);
  EXPECT_EQ(r.min_rtt, 1000 * kUs);
  // More than the whole sample.
  dblp_rtt_sample(&r, 1900 * kUs, std::numeric_limits<uint64_t>::max(), kSec);
  EXPECT_EQ(r.srtt, 1200 * kUs);
  // The minimum never has a delay taken off.
  dblp_rtt_sample(&r, 900 * kUs, 500 * kUs, kSec);
  EXPECT_EQ(r.min_rtt, 900 * kUs);
}

TEST(Rtt, TheTimeOutFollowsTheDelayThatThePeerReports) {
  dblp_rtt r = fresh();
  for (int i = 0; i < 100; i++) dblp_rtt_sample(&r, 100 * kUs, 0, kSec);
  EXPECT_EQ(dblp_rtt_pto(&r, 0), DBLP_PTO_MIN_NS);
  dblp_rtt_sample(&r, 900 * kUs, 800 * kUs, kSec);
  const uint64_t late = dblp_rtt_pto(&r, 0);
  EXPECT_GE(late, 900 * kUs);
  for (int i = 0; i < 100; i++) dblp_rtt_sample(&r, 100 * kUs, 0, kSec);
  EXPECT_LT(dblp_rtt_pto(&r, 0), 2 * DBLP_PTO_MIN_NS) << "forgotten";
  // A lie is cut to what the protocol allows.
  dblp_rtt_sample(&r, 100 * kUs, 3600 * kSec, kSec);
  EXPECT_LE(dblp_rtt_pto(&r, 0), 2 * DBLP_ACK_DELAY_NS);
}

TEST(Rtt, BackoffDoublesUpToTheMaximum) {
  dblp_rtt r = fresh();
  for (int i = 0; i < 100; i++) dblp_rtt_sample(&r, 50 * kUs, 0, kSec);
  uint64_t want = DBLP_PTO_MIN_NS;
  for (uint32_t backoff = 0; backoff < 80; backoff++) {
    EXPECT_EQ(dblp_rtt_pto(&r, backoff), std::min<uint64_t>(want, DBLP_PTO_MAX_NS)) << backoff;
    want = std::min<uint64_t>(2 * want, DBLP_PTO_MAX_NS);
  }
  EXPECT_EQ(dblp_rtt_pto(&r, std::numeric_limits<uint32_t>::max()), DBLP_PTO_MAX_NS);
}

TEST(Rtt, ExtremeSamplesAreCut) {
  dblp_rtt r = fresh();
  dblp_rtt_sample(&r, 0, 0, kSec);
  EXPECT_EQ(r.min_rtt, 1u);
  EXPECT_GE(r.srtt, 1u);
  for (int i = 0; i < 100; i++) dblp_rtt_sample(&r, std::numeric_limits<uint64_t>::max(), 0, kSec);
  EXPECT_LE(r.srtt, DBLP_RTT_MAX_NS);
  EXPECT_EQ(dblp_rtt_pto(&r, 40), DBLP_PTO_MAX_NS);
}

TEST(Rtt, TheMinimumExpiresAndItsSuccessorIsTheBestOfTheLastHalf) {
  dblp_rtt r = fresh();
  uint64_t now = kSec;
  dblp_rtt_sample(&r, 100 * kUs, 0, now);
  const uint64_t born = now;
  // The first half of the window does not offer successors, the second does.
  dblp_rtt_sample(&r, 110 * kUs, 0, now += 2 * kSec);
  dblp_rtt_sample(&r, 150 * kUs, 0, now += 4 * kSec);
  const uint64_t successor = now;
  dblp_rtt_sample(&r, 300 * kUs, 0, now += 3 * kSec);
  EXPECT_EQ(r.min_rtt, 100 * kUs);
  dblp_rtt_sample(&r, 300 * kUs, 0, now = born + DBLP_MIN_RTT_WIN_NS);
  EXPECT_EQ(r.min_rtt, 100 * kUs) << "the window is not over";
  dblp_rtt_sample(&r, 300 * kUs, 0, ++now);
  EXPECT_EQ(r.min_rtt, 150 * kUs);
  EXPECT_EQ(r.min_at, successor);
  // An equal sample renews it.
  dblp_rtt_sample(&r, 150 * kUs, 0, now += kSec);
  EXPECT_EQ(r.min_at, now);
  // After a long silence the next sample is all there is.
  dblp_rtt_sample(&r, 900 * kUs, 0, now += 100 * kSec);
  EXPECT_EQ(r.min_rtt, 900 * kUs);
}

}  // namespace

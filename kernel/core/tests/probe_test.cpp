// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "probe.h"

#include <gtest/gtest.h>

namespace dblp::test {
namespace {

constexpr uint64_t kUs = 1000, kMs = 1000 * kUs, kSec = 1000 * kMs;

class Probe : public testing::Test {
 protected:
  explicit Probe(uint64_t rtt = 2 * kMs) {
    dblp_probe_init(&probe_);
    dblp_rtt_init(&rtt_);
    for (int i = 0; i < 100; i++) dblp_rtt_sample(&rtt_, rtt, 0, kSec);
    pto_ = dblp_rtt_pto(&rtt_, 0);
  }
  dblp_probe_result expire() {
    now_ = probe_.at;
    const dblp_probe_result r = dblp_probe_timeout(&probe_, true, now_);
    dblp_probe_sent(&probe_, &rtt_, now_);
    return r;
  }

  dblp_probe probe_;
  dblp_rtt rtt_;
  uint64_t now_ = kSec, pto_ = 0;
};

TEST_F(Probe, IsOffUntilSomethingIsSent) {
  EXPECT_EQ(probe_.at, DBLP_NEVER);
  EXPECT_EQ(dblp_probe_timeout(&probe_, true, kSec), DBLP_PROBE_NOTHING);
  dblp_probe_sent(&probe_, &rtt_, now_);
  EXPECT_EQ(probe_.at, now_ + pto_);
  EXPECT_EQ(dblp_probe_timeout(&probe_, true, probe_.at - 1), DBLP_PROBE_NOTHING);
  EXPECT_EQ(dblp_probe_timeout(&probe_, true, probe_.at), DBLP_PROBE_ASK);
}

TEST_F(Probe, WhatIsSentAsksItself) {
  dblp_probe_sent(&probe_, &rtt_, now_);
  dblp_probe_sent(&probe_, &rtt_, now_ + kMs);
  EXPECT_EQ(probe_.at, now_ + kMs + pto_);
  EXPECT_EQ(probe_.since, now_);
  expire();
  const uint64_t at = probe_.at;
  dblp_probe_sent(&probe_, &rtt_, now_ + kMs);
  EXPECT_EQ(probe_.at, at) << "but not after a probe";
}

TEST_F(Probe, NothingInFlightIsNoSilence) {
  dblp_probe_sent(&probe_, &rtt_, now_);
  EXPECT_EQ(dblp_probe_timeout(&probe_, false, probe_.at), DBLP_PROBE_NOTHING);
  EXPECT_EQ(probe_.at, DBLP_NEVER);
}

TEST_F(Probe, AnAnswerStartsItAnew) {
  dblp_probe_sent(&probe_, &rtt_, now_);
  for (int i = 0; i < 20; i++) expire();
  dblp_probe_heard(&probe_, &rtt_, true, now_);
  EXPECT_EQ(probe_.at, now_ + pto_);
  EXPECT_EQ(probe_.since, now_);
  dblp_probe_heard(&probe_, &rtt_, false, now_);
  EXPECT_EQ(probe_.at, DBLP_NEVER);
}

// However long it lasts, its end is noticed within 1/32 of that or four time-outs, and
// the number of probes grows with the logarithm only.
TEST_F(Probe, FollowsAnOutage) {
  dblp_probe_sent(&probe_, &rtt_, now_);
  const uint64_t begin = now_;
  int probes = 0;
  while (now_ - begin < 10 * kSec) {
    const uint64_t before = now_;
    expire();
    probes++;
    ASSERT_LE(now_ - before, std::max(4 * pto_, (before - begin) / 32));
    ASSERT_GE(now_ - before, pto_);
  }
  EXPECT_LE(probes, 300);
}

TEST_F(Probe, TwoProbesAndTenMillisecondsAreLoss) {
  dblp_probe_sent(&probe_, &rtt_, now_);
  const uint64_t begin = now_;
  int tries = 0;
  dblp_probe_result r = DBLP_PROBE_ASK;
  while (r == DBLP_PROBE_ASK && ++tries < 100) r = expire();
  EXPECT_EQ(r, DBLP_PROBE_LOST);
  EXPECT_GE(tries, 2);
  EXPECT_GE(now_ - begin, DBLP_PROBE_LOST_NS);
  EXPECT_EQ(expire(), DBLP_PROBE_LOST) << "each time from then on";
}

// A host that stalls for some milliseconds has lost nothing.
class ProbeShort : public Probe {
 protected:
  ProbeShort() : Probe(50 * kUs) {}
};

TEST_F(ProbeShort, AStallIsNoLoss) {
  dblp_probe_sent(&probe_, &rtt_, now_);
  const uint64_t begin = now_;
  while (probe_.at < begin + 9 * kMs) EXPECT_EQ(expire(), DBLP_PROBE_ASK);
}

class ProbeLong : public Probe {
 protected:
  ProbeLong() : Probe(100 * kMs) {}
};

TEST_F(ProbeLong, OneProbeIsNoProof) {
  dblp_probe_sent(&probe_, &rtt_, now_);
  EXPECT_EQ(expire(), DBLP_PROBE_ASK);
  EXPECT_EQ(expire(), DBLP_PROBE_LOST);
}

}  // namespace
}  // namespace dblp::test

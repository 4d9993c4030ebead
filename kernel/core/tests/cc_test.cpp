// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Congestion control: the interface by hand, the behaviour on simulated paths.  Goodput
// is compared with what the path can deliver, that is with its rate less its random loss.
#include "cc.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "path_sim.h"

namespace dblp::test {
namespace {

std::vector<uint64_t> five_seeds() {
  const char* text = std::getenv("DBLP_TEST_SEED");
  const uint64_t first = text ? std::strtoull(text, nullptr, 0) : 1;
  std::printf("seeds %" PRIu64 " to %" PRIu64 "\n", first, first + 4);
  return {first, first + 1, first + 2, first + 3, first + 4};
}

// Share of what the path can deliver that was delivered in @rtts round trips.
double goodput(PathSim& sim, uint64_t rtts) {
  const uint64_t before = sim.total().bytes;
  sim.run_rtts(rtts);
  const PathSpec& p = sim.spec();
  return (sim.total().bytes - before) / (p.rate * (1 - p.loss) * rtts * p.rtprop / double(kSec));
}

// Share of the packets sent in @rtts round trips that our own queue dropped.
double drops(PathSim& sim, uint64_t rtts) {
  const PathSim::Counts a = sim.total();
  sim.run_rtts(rtts);
  const PathSim::Counts b = sim.total();
  return double(b.queue_drops - a.queue_drops) / (b.sent - a.sent);
}

// Round trips until the goodput of the 20 that follow is at least @want.
uint64_t rtts_until(PathSim& sim, double want, uint64_t limit) {
  std::vector<uint64_t> bytes;
  const PathSpec& p = sim.spec();
  for (uint64_t i = 0; i <= limit + 20; i++) {
    bytes.push_back(sim.total().bytes);
    if (i >= 20 &&
        bytes[i] - bytes[i - 20] >= want * p.rate * (1 - p.loss) * 20 * p.rtprop / double(kSec))
      return i - 20;
    sim.run_rtts(1);
  }
  return limit + 1;
}

double jain(const std::vector<double>& share) {
  double sum = 0, squares = 0;
  for (double s : share) {
    sum += s;
    squares += s * s;
  }
  return sum * sum / share.size() / squares;
}

struct Link {
  const char* name;
  uint64_t rate, rtprop;
  PathSpec with(double queue_bdp, double loss) const {
    PathSpec p{.rate = rate, .rtprop = rtprop, .queue = 0, .loss = loss};
    p.queue = static_cast<uint64_t>(p.bdp() * queue_bdp);
    return p;
  }
};

constexpr Link kLinks[] = {
    {"10 Mb/s, 20 ms", 1250000, 20 * kMs},
    {"100 Mb/s, 2 ms", 12500000, 2 * kMs},
    {"1 Gb/s, 0.2 ms", 125000000, 200 * kUs},
};

// ---- the interface ------------------------------------------------------------------

TEST(Cc, IsFoundByName) {
  EXPECT_EQ(dblp_cc_find("bdp"), &dblp_cc_bdp);
  EXPECT_EQ(dblp_cc_find("fixed"), &dblp_cc_fixed);
  EXPECT_EQ(dblp_cc_find("bd"), nullptr);
  EXPECT_EQ(dblp_cc_find("bdpx"), nullptr);
  EXPECT_EQ(dblp_cc_find(""), nullptr);
}

TEST(Cc, ArithmeticNeitherOverflowsNorDividesByZero) {
  EXPECT_EQ(dblp_cc_bytes(125000000, 200 * kUs), 25000u);
  EXPECT_EQ(dblp_cc_bytes(0, kSec), 0u);
  EXPECT_EQ(dblp_cc_bytes(UINT64_MAX, UINT64_MAX), dblp_cc_bytes(DBLP_CC_RATE_MAX, 1ULL << 36));
  EXPECT_EQ(dblp_cc_rate(25000, 200 * kUs), 125000000u);
  EXPECT_EQ(dblp_cc_rate(0, kSec), 1u);
  EXPECT_EQ(dblp_cc_rate(1, 0), 1000000000u);
  EXPECT_EQ(dblp_cc_rate(UINT64_MAX, 1), DBLP_CC_RATE_MAX);
}

TEST(CcFixed, PacesAtTheRateThatWasSet) {
  dblp_cc cc;
  dblp_cc_init(&cc, &dblp_cc_fixed, kPacket, kSec);
  EXPECT_GT(cc.pacing_rate, 0u) << "never unpaced";
  dblp_cc_set_fixed_rate(&cc, 125000000);
  EXPECT_EQ(cc.pacing_rate, 125000000u);
  dblp_rtt rtt;
  dblp_rtt_init(&rtt);
  dblp_rtt_sample(&rtt, 50 * kMs, 0, kSec);
  dblp_rate_sample rs = {};
  rs.acked = kPacket;
  rs.lost = 1000 * kPacket;
  cc.ops->on_ack(&cc, &rs, &rtt, kPacket, kSec);
  EXPECT_EQ(cc.pacing_rate, 125000000u);
  EXPECT_GE(cc.inflight_cap, 2 * 125000000 / 20u) << "twice the BDP";
  dblp_cc_set_fixed_rate(&cc, 0);
  EXPECT_EQ(cc.pacing_rate, 1u);
  EXPECT_GE(cc.inflight_cap, 64u * kPacket);
  dblp_cc_set_fixed_rate(&cc, UINT64_MAX);
  EXPECT_EQ(cc.pacing_rate, DBLP_CC_RATE_MAX);
  cc.ops->on_persistent_loss(&cc, kSec);
  cc.ops->restart(&cc, kSec, kSec);
  EXPECT_EQ(cc.pacing_rate, DBLP_CC_RATE_MAX);
}

TEST(CcFixed, TheRateOfOthersCannotBeSet) {
  dblp_cc cc;
  dblp_cc_init(&cc, &dblp_cc_bdp, kPacket, kSec);
  const uint64_t cap = cc.inflight_cap;
  dblp_cc_set_fixed_rate(&cc, 125000000);
  EXPECT_EQ(cc.pacing_rate, 0u);
  EXPECT_EQ(cc.inflight_cap, cap);
}

// ---- "bdp" by hand ------------------------------------------------------------------

class CcBdp : public testing::Test {
 protected:
  CcBdp() {
    dblp_rtt_init(&rtt_);
    dblp_cc_init(&cc_, &dblp_cc_bdp, kPacket, now_);
  }
  // One round trip of @rtt: @n packets acknowledged, then as many are in flight.
  void round(uint64_t rtt, uint64_t n, bool app_limited = false, uint32_t ce = 0) {
    dblp_rate_sample rs = {};
    rs.app_limited = app_limited;
    rs.ce = ce;
    now_ += rtt;
    dblp_rtt_sample(&rtt_, rtt, 0, now_);
    rs.delivered = n * kPacket;
    rs.interval_ns = rtt;
    rs.prior_delivered = delivered_;
    rs.rtt_ns = rtt;
    rs.acked = n * kPacket;
    rs.inflight = n * kPacket;
    delivered_ += n * kPacket;
    cc_.ops->on_ack(&cc_, &rs, &rtt_, delivered_, now_);
  }

  dblp_cc cc_;
  dblp_rtt rtt_;
  uint64_t now_ = kSec, delivered_ = 0;
};

TEST_F(CcBdp, BeginsWithTenPacketsAndPacesFromTheFirstRoundTripOn) {
  EXPECT_EQ(cc_.pacing_rate, 0u);
  EXPECT_EQ(cc_.inflight_cap, 10u * kPacket);
  EXPECT_EQ(cc_.btlbw, 0u);
  round(10 * kMs, 1);
  // Ten packets a round trip, times 2.77.
  EXPECT_NEAR(cc_.pacing_rate, 2.77 * 10 * kPacket * 100, 5000);
  EXPECT_GE(cc_.inflight_cap, 10u * kPacket);
}

TEST_F(CcBdp, ASampleOfAnIdleApplicationOnlyRaises) {
  round(10 * kMs, 40);
  const uint64_t bw = cc_.btlbw;
  for (int i = 0; i < 50; i++) round(10 * kMs, 10, true);
  EXPECT_EQ(cc_.btlbw, bw);
  round(10 * kMs, 60, true);
  EXPECT_EQ(cc_.btlbw, bw / 2 * 3);
  for (int i = 0; i < 12; i++) round(10 * kMs, 20);
  EXPECT_EQ(cc_.btlbw, bw / 2) << "ten rounds that were not idle";
}

TEST_F(CcBdp, CeCutsOncePerRoundTrip) {
  for (int i = 0; i < 20; i++) round(10 * kMs, 100);
  dblp_rate_sample rs = {};
  rs.acked = kPacket;
  rs.inflight = 100 * kPacket;
  rs.ce = 1;
  rs.prior_delivered = delivered_ - 1;
  cc_.ops->on_ack(&cc_, &rs, &rtt_, delivered_, now_);
  const uint64_t cut = cc_.inflight_cap;
  EXPECT_NEAR(cut, 0.7 * 101 * kPacket, kPacket);
  cc_.ops->on_ack(&cc_, &rs, &rtt_, delivered_, now_);
  EXPECT_EQ(cc_.inflight_cap, cut) << "sent before the cut";
  rs.prior_delivered = delivered_;
  cc_.ops->on_ack(&cc_, &rs, &rtt_, delivered_, now_);
  EXPECT_NEAR(cc_.inflight_cap, 0.7 * cut, kPacket);
  // Never below one packet.
  for (int i = 0; i < 100; i++) round(10 * kMs, 1, false, 1);
  EXPECT_GE(cc_.inflight_cap, kPacket);
}

TEST_F(CcBdp, SilenceCrawlsAndTwoCleanRoundTripsRestore) {
  for (int i = 0; i < 20; i++) round(10 * kMs, 100);
  const uint64_t bw = cc_.btlbw;
  cc_.ops->on_persistent_loss(&cc_, now_);
  EXPECT_EQ(cc_.inflight_cap, 4u * kPacket);
  EXPECT_NEAR(cc_.pacing_rate, kPacket * 100, 1000) << "one packet per round trip";
  EXPECT_EQ(cc_.btlbw, bw) << "kept";
  cc_.ops->on_persistent_loss(&cc_, now_);
  EXPECT_EQ(cc_.inflight_cap, 4u * kPacket);
  int rounds = 0;
  while (cc_.u.bdp.collapsed && rounds < 20) {
    round(10 * kMs, 4);
    rounds++;
  }
  EXPECT_LE(rounds, 5);
  EXPECT_GE(cc_.pacing_rate, bw * 9 / 10);
}

TEST_F(CcBdp, SilenceBeforeAnythingIsKnownIsSafe) {
  cc_.ops->on_persistent_loss(&cc_, now_);
  EXPECT_GT(cc_.pacing_rate, 0u);
  EXPECT_EQ(cc_.inflight_cap, 4u * kPacket);
  for (int i = 0; i < 10; i++) round(10 * kMs, 4);
  EXPECT_FALSE(cc_.u.bdp.collapsed);
  EXPECT_GT(cc_.btlbw, 0u);
}

// Whatever the samples say, there is a rate and room for a packet.
TEST_F(CcBdp, SurvivesNonsense) {
  Random random = seeded();
  const auto odd = [&random]() -> uint64_t {
    switch (pick(random, 0, 4)) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return pick(random, 0, 100000);
      case 3:
        return pick(random, 0, 1ULL << 34);
      default:
        return random() >> pick(random, 24, 63);
    }
  };
  for (int i = 0; i < 200000; i++) {
    now_ += odd() % (10 * kSec);
    const dblp_rate_sample rs = {.delivered = odd(),
                                 .interval_ns = odd(),
                                 .prior_delivered = odd(),
                                 .lost_prior_delivered = odd(),
                                 .rtt_ns = odd(),
                                 .acked = odd(),
                                 .spurious = odd(),
                                 .lost = odd(),
                                 .inflight = odd(),
                                 .ce = static_cast<u32>(pick(random, 0, 3) / 3),
                                 .app_limited = pick(random, 0, 1) == 1};
    if (rs.rtt_ns) dblp_rtt_sample(&rtt_, rs.rtt_ns, odd(), now_);
    delivered_ += rs.acked;
    switch (pick(random, 0, 99)) {
      case 0:
        cc_.ops->on_persistent_loss(&cc_, now_);
        break;
      case 1:
        cc_.ops->restart(&cc_, odd(), now_);
        break;
      default:
        cc_.ops->on_ack(&cc_, &rs, &rtt_, delivered_, now_);
    }
    ASSERT_GE(cc_.inflight_cap, kPacket);
    ASSERT_LE(cc_.btlbw, DBLP_CC_RATE_MAX);
    ASSERT_TRUE(cc_.pacing_rate > 0 || !cc_.btlbw);
  }
}

// ---- "bdp" on a path ----------------------------------------------------------------

TEST(CcBdpPath, FillsALinkAtAnyRandomLossUpToTenPercent) {
  for (const uint64_t seed : five_seeds()) {
    for (const Link& link : kLinks) {
      for (const double loss : {0.0, 0.01, 0.05, 0.1}) {
        SCOPED_TRACE(std::string(link.name) + " loss " + std::to_string(loss) + " seed " +
                     std::to_string(seed));
        PathSim sim(link.with(1, loss), 1, seed);
        EXPECT_LE(drops(sim, 60), 0.05) << "while starting";
        const PathSim::Counts before = sim.total();
        EXPECT_GE(goodput(sim, 500), 0.9);
        const PathSim::Counts after = sim.total();
        EXPECT_LE(after.queue_drops - before.queue_drops, 0.02 * (after.sent - before.sent));
        EXPECT_EQ(after.persistent, 0u);
      }
    }
  }
}

TEST(CcBdpPath, StartsWithinTwentyRoundTrips) {
  for (const uint64_t seed : five_seeds()) {
    for (const Link& link : kLinks) {
      for (const double loss : {0.0, 0.05}) {
        SCOPED_TRACE(std::string(link.name) + " loss " + std::to_string(loss));
        PathSim sim(link.with(1, loss), 1, seed);
        EXPECT_LE(rtts_until(sim, 0.85, 20), 20u);
      }
    }
    PathSim large({.rate = 1250000000, .rtprop = 10 * kMs, .queue = 12500000}, 1, seed);
    EXPECT_LE(rtts_until(large, 0.85, 20), 20u) << "a BDP of 8500 packets";
  }
}

// BtlBw is what arrives; what is lost on the way must be sent on top.
TEST(CcBdpPath, MakesUpForRandomLossWithoutQueueing) {
  for (const uint64_t seed : five_seeds()) {
    PathSim large({.rate = 125000000, .rtprop = 10 * kMs, .queue = 625000, .loss = 0.1}, 1, seed);
    large.run_rtts(100);
    EXPECT_GE(goodput(large, 200), 0.93) << "1 - 0.1 without";
    EXPECT_LE(drops(large, 200), 0.005);
    // Seventeen packets: the best of ten rounds lost nothing.
    PathSim small(kLinks[1].with(0.5, 0.1), 1, seed);
    small.run_rtts(100);
    EXPECT_LE(drops(small, 500), 0.01);
  }
}

// A ceiling that a short queue has taught must not hide that there is more now.
TEST(CcBdpPath, FindsMoreAfterAShortQueue) {
  for (const uint64_t seed : five_seeds()) {
    PathSim sim({.rate = 125000000, .rtprop = 10 * kMs, .queue = 60000}, 1, seed);
    sim.run_rtts(200);
    EXPECT_LT(sim.cc(0).u.bdp.cap_bytes, UINT64_MAX);
    sim.spec().rate *= 4;
    EXPECT_LE(rtts_until(sim, 0.85, 60), 60u);
  }
}

// R2, R3: the queue is a tenth of a BDP (but four packets), too short to show in the delay.
TEST(CcBdpPath, LosesLittleInAShortQueue) {
  for (const uint64_t seed : five_seeds()) {
    for (const double loss : {0.0, 0.05}) {
      SCOPED_TRACE(loss);
      PathSim sim({.rate = 125000000, .rtprop = 2 * kMs, .queue = 25000, .loss = loss}, 1, seed);
      sim.run_rtts(60);
      const PathSim::Counts before = sim.total();
      EXPECT_GE(goodput(sim, 500), 0.9);
      const PathSim::Counts after = sim.total();
      EXPECT_LE(after.queue_drops - before.queue_drops, 0.02 * (after.sent - before.sent));
    }
  }
}

// The queue is deep: it stays almost empty because of the model alone.
TEST(CcBdpPath, KeepsADeepQueueShort) {
  for (const uint64_t seed : five_seeds()) {
    for (const Link& link : kLinks) {
      SCOPED_TRACE(link.name);
      PathSim sim(link.with(20, 0), 1, seed);
      sim.run_rtts(60);
      sim.reset_queue_range();
      EXPECT_GE(goodput(sim, 300), 0.9);
      EXPECT_EQ(sim.queue_min(), 0u);
      EXPECT_LE(sim.queue_max(), sim.spec().bdp());
    }
  }
}

// R4.  What is waited for is the first ACK after the burst, which the probe timer brings.
TEST(CcBdpPath, HasItsFullRateBackAfterABurstOfLoss) {
  for (const uint64_t seed : five_seeds()) {
    for (const Link& link : kLinks) {
      for (const double during : {0.8, 1.0}) {
        SCOPED_TRACE(std::string(link.name) + " seed " + std::to_string(seed) + " loss " +
                     std::to_string(during));
        PathSim sim(link.with(1, 0), 1, seed);
        sim.run_rtts(100);
        sim.spec().loss = during;
        const uint64_t sent = sim.total().sent, begin = sim.now();
        sim.run_until(begin + 200 * kMs);
        EXPECT_LE((sim.total().sent - sent) * kPacket,
                  10 * sim.spec().bdp() + 2 * kPacket * (200 * kMs / link.rtprop))
            << "it backed off";
        sim.spec().loss = 0;
        const uint64_t end = sim.now(), delivered = sim.log(0).delivered;
        while (sim.log(0).delivered < delivered + 2 * kPacket) sim.run_rtts(1);
        EXPECT_LE(sim.now() - end, 200 * kMs + 20 * link.rtprop)
            << "silence at most doubles the outage";
        EXPECT_LE(rtts_until(sim, 0.85, 20), 20u);
      }
    }
  }
}

// Some packets still get through: they tell when it is over.
TEST(CcBdpPath, IsSoonAtFullRateAfterABurstThatLetSomeThrough) {
  for (const uint64_t seed : five_seeds()) {
    for (const double during : {0.6, 0.8, 0.9}) {
      SCOPED_TRACE("loss " + std::to_string(during) + " seed " + std::to_string(seed));
      PathSim sim({.rate = 125000000, .rtprop = 2 * kMs, .queue = 1000 * kPacket}, 1, seed);
      sim.run_until(300 * kMs);
      sim.spec().loss = during;
      sim.run_until(500 * kMs);
      sim.spec().loss = 0;
      int rtts = 0;
      while (rtts <= 20 && goodput(sim, 1) < 0.9) rtts++;
      EXPECT_LE(rtts, 8);
    }
  }
}

TEST(CcBdpPath, FollowsARateThatFallsAndRises) {
  for (const uint64_t seed : five_seeds()) {
    for (const Link& link : kLinks) {
      for (const double queue : {1.0, 4.0}) {
        SCOPED_TRACE(std::string(link.name) + " queue " + std::to_string(queue));
        PathSim sim(link.with(queue, 0), 1, seed);
        sim.run_rtts(100);
        sim.spec().rate /= 10;
        // Draining one old BDP alone takes 10 round trips.
        sim.run_rtts(120);
        sim.reset_queue_range();
        EXPECT_GE(goodput(sim, 100), 0.9);
        EXPECT_LE(sim.queue_max(), std::max<uint64_t>(2 * sim.spec().bdp(), 20 * kPacket));
        EXPECT_LE(drops(sim, 100), 0.02);
        sim.spec().rate *= 10;
        EXPECT_LE(rtts_until(sim, 0.85, 60), 60u);
      }
    }
  }
}

// Without loss a longer path is recognised at once; hosts' own delay under load, up to
// 1 ms, is taken as such.
TEST(CcBdpPath, FollowsAPathThatBecomesLonger) {
  for (const uint64_t seed : five_seeds()) {
    for (const Link& link : kLinks) {
      SCOPED_TRACE(link.name);
      PathSim sim(link.with(5, 0), 1, seed);
      sim.run_rtts(100);
      sim.spec().rtprop *= 5;
      sim.run_rtts(200);
      EXPECT_GE(goodput(sim, 100), 0.8);
    }
  }
}

TEST(CcBdpPath, RefreshesRtpropWithoutGoingIdle) {
  for (const uint64_t seed : five_seeds()) {
    PathSim sim({.rate = 1250000, .rtprop = 20 * kMs, .queue = 100000}, 1, seed);
    sim.run_rtts(100);
    // A minimum that cannot be met again: longer by a quarter.
    sim.spec().rtprop = 25 * kMs;
    sim.run_until(sim.now() + 12 * kSec);
    EXPECT_GT(sim.cc(0).u.bdp.refresh_round, 0u);
    EXPECT_NEAR(sim.cc(0).u.bdp.rtprop, 25 * kMs, 3 * kMs);
    EXPECT_GE(goodput(sim, 1000), 0.95) << "the price of 25 s";
  }
}

TEST(CcBdpPath, AfterAnIdleTimeItPacesAtTheRateItKnew) {
  for (const uint64_t seed : five_seeds()) {
    PathSim sim(kLinks[1].with(4, 0), 1, seed);
    sim.run_rtts(200);
    const uint64_t bw = sim.cc(0).btlbw;
    sim.set_active(0, false);
    sim.run_until(sim.now() + 5 * kSec);
    EXPECT_EQ(sim.log(0).inflight, 0u);
    EXPECT_EQ(sim.cc(0).btlbw, bw);
    sim.reset_queue_range();
    sim.set_active(0, true);
    EXPECT_GE(goodput(sim, 20), 0.85);
    EXPECT_LE(sim.queue_max(), sim.spec().bdp()) << "no burst";
  }
}

TEST(CcBdpPath, BearsLateAcks) {
  for (const uint64_t seed : five_seeds()) {
    for (const Link& link : kLinks) {
      for (const double loss : {0.0, 0.05}) {
        SCOPED_TRACE(std::string(link.name) + " loss " + std::to_string(loss));
        PathSpec path = link.with(1, loss);
        path.jitter = link.rtprop / 2;
        PathSim sim(path, 1, seed);
        sim.run_rtts(200);
        EXPECT_GE(goodput(sim, 500), 0.8);
      }
    }
  }
}

// Hosts that do nothing for milliseconds now and then, or most of the time, on a path of
// 40 us: what looks like a queue is none, and what could not be sent in time still can.
TEST(CcBdpPath, BearsHostsThatStall) {
  const struct {
    uint64_t jitter, least, most, every;
    double want;
  } hosts[] = {
      {0, 200 * kUs, 7 * kMs, 20 * kMs, 0.7},
      {0, 200 * kUs, 7 * kMs, 5 * kMs, 0.7},
      {0, 200 * kUs, 7 * kMs, 50 * kUs, 0.7},
      {0, 50 * kUs, 500 * kUs, 500 * kUs, 0.9},
      {2 * kMs, 0, 0, 0, 0.6},
  };
  for (const uint64_t seed : five_seeds()) {
    for (const auto& h : hosts) {
      SCOPED_TRACE("stalls up to " + std::to_string(h.most) + " ns every " +
                   std::to_string(h.every) + ", ACKs late by " + std::to_string(h.jitter) +
                   ", seed " + std::to_string(seed));
      PathSim sim({.rate = 125000000,
                   .rtprop = 40 * kUs,
                   .queue = 1000 * kPacket,
                   .jitter = h.jitter,
                   .stall_min = h.least,
                   .stall_max = h.most,
                   .stall_every = h.every},
                  1, seed);
      sim.run_until(500 * kMs);
      EXPECT_GE(goodput(sim, 25000), h.want);
    }
  }
}

// R5: marks from 10 packets on keep the queue there, and no packet is dropped.
TEST(CcBdpPath, YieldsToCe) {
  for (const uint64_t seed : five_seeds()) {
    PathSpec path = kLinks[1].with(4, 0);
    path.ce_above = 10 * kPacket;
    PathSim sim(path, 8, seed);
    sim.run_rtts(300);
    sim.reset_queue_range();
    const uint64_t dropped = sim.total().queue_drops;
    EXPECT_GE(goodput(sim, 500), 0.85);
    EXPECT_EQ(sim.total().queue_drops, dropped);
    EXPECT_LE(sim.queue_max(), 40u * kPacket);
  }
}

// The case in which a model that ignores loss drops 16 to 20 % of its own packets.
TEST(CcBdpPath, EightFlowsShareAQueueOfAHundredPackets) {
  const struct {
    uint64_t rate, rtprop;
    double drops, jain;
  } paths[] = {
      {125000000, 2 * kMs, 0.04, 0.8},     // a BDP of 21 packets for each
      {1250000000, 100 * kUs, 0.05, 0.6},  // 10
      {125000000, 100 * kUs, 0.08, 0},     // 1: shares are equal only in the long run
  };
  for (const uint64_t seed : five_seeds()) {
    for (const auto& p : paths) {
      SCOPED_TRACE(std::to_string(p.rate) + " seed " + std::to_string(seed));
      PathSim sim({.rate = p.rate, .rtprop = p.rtprop, .queue = 100 * kPacket}, 8, seed);
      sim.run_rtts(300);
      std::vector<double> share;
      for (uint32_t i = 0; i < 8; i++) share.push_back(-double(sim.counts(i).bytes));
      EXPECT_LE(drops(sim, 600), p.drops);
      for (uint32_t i = 0; i < 8; i++) share[i] += sim.counts(i).bytes;
      EXPECT_GE(jain(share), p.jain);
      EXPECT_GE(goodput(sim, 100), 0.9);
    }
  }
}

TEST(CcFixedPath, SendsAtItsRateWhateverIsLost) {
  PathSim sim(kLinks[1].with(1, 0.3), 1, 1, &dblp_cc_fixed);
  sim.run_rtts(100);
  const uint64_t before = sim.total().sent;
  sim.run_until(sim.now() + 10 * kSec);
  EXPECT_NEAR((sim.total().sent - before) * kPacket, 12500000, 125000);
}

}  // namespace
}  // namespace dblp::test

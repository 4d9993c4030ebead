// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "sentlog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "seed.h"

namespace dblp::test {
namespace {

constexpr u64 kUs = DBLP_NSEC_PER_USEC;
constexpr u64 kMs = DBLP_NSEC_PER_MSEC;
constexpr u64 kSec = DBLP_NSEC_PER_SEC;
constexpr u32 kSize = 1000;

struct Range {
  u64 first, last;
};

// Ranges are given newest first.
dblp_f_ack frame(std::span<const Range> ranges, u32 delay_us = 0, u32 ce = 0) {
  dblp_f_ack f = {};
  f.nranges = static_cast<u8>(ranges.size());
  f.largest = static_cast<u32>(ranges[0].last);
  f.delay_us = delay_us;
  f.ce = ce;
  for (size_t i = 0; i < ranges.size(); i++) {
    f.range[i].gap = i ? static_cast<u16>(ranges[i - 1].first - ranges[i].last - 1) : 0;
    f.range[i].len = static_cast<u16>(ranges[i].last - ranges[i].first + 1);
  }
  return f;
}

class Sentlog : public testing::Test {
 protected:
  explicit Sentlog(u32 size = 256) : memory_(size) {
    dblp_sentlog_init(&log_, memory_.data(), size);
    dblp_rtt_init(&rtt_);
  }

  u64 push(bool counted = true, u32 size = kSize) {
    EXPECT_NE(dblp_sentlog_push(&log_, size, counted, now_), nullptr);
    return log_.next - 1;
  }
  void push_many(int n) {
    while (n--) push();
  }
  // Returns what the log did.
  int ack(const dblp_f_ack& f) {
    acked_.clear();
    lost_.clear();
    spurious_.clear();
    return dblp_sentlog_ack(&log_, &f, &rtt_, &kEvents, this, &rs_, now_);
  }
  int ack(std::initializer_list<Range> ranges, u32 delay_us = 0, u32 ce = 0) {
    return ack(frame(std::span(ranges.begin(), ranges.size()), delay_us, ce));
  }
  u64 detect() {
    acked_.clear();
    lost_.clear();
    return dblp_sentlog_detect(&log_, &rtt_, &kEvents, this, now_);
  }
  // Sends and acknowledges one packet that took @rtt: a known round trip to start from.
  void settle_rtt(u64 rtt) {
    const u64 pn = push();
    now_ += rtt;
    ASSERT_EQ(ack({{pn, pn}}), 0);
  }

  static void on_acked(void* ctx, u64 pn, const dblp_sent* e) {
    auto* t = static_cast<Sentlog*>(ctx);
    EXPECT_TRUE(e->flags & DBLP_SENT_ACKED);
    EXPECT_FALSE(e->flags & DBLP_SENT_INFLIGHT);
    t->acked_.push_back(pn);
    if (e->flags & DBLP_SENT_LOST) t->spurious_.push_back(pn);
  }
  static void on_lost(void* ctx, u64 pn, const dblp_sent* e) {
    EXPECT_TRUE(e->flags & DBLP_SENT_LOST);
    EXPECT_FALSE(e->flags & (DBLP_SENT_ACKED | DBLP_SENT_INFLIGHT));
    static_cast<Sentlog*>(ctx)->lost_.push_back(pn);
  }
  static constexpr dblp_sent_events kEvents = {.acked = on_acked, .lost = on_lost};

  std::vector<dblp_sent> memory_;
  dblp_sentlog log_;
  dblp_rtt rtt_;
  dblp_rate_sample rs_{};
  u64 now_ = kSec;
  std::vector<u64> acked_, lost_, spurious_;
};

using Numbers = std::vector<u64>;

TEST_F(Sentlog, NumbersCountFromOne) {
  EXPECT_EQ(push(), 1u);
  EXPECT_EQ(push(false), 2u);
  EXPECT_EQ(push(), 3u);
  EXPECT_EQ(log_.inflight, 2 * kSize) << "only what elicits an ACK";
  EXPECT_EQ(log_.sent_pkts, 3u);
  EXPECT_EQ(log_.una, 1u);
}

TEST_F(Sentlog, AcknowledgesEachPacketOnce) {
  push_many(3);
  now_ += kMs;
  EXPECT_EQ(ack({{1, 2}}), 0);
  EXPECT_EQ(acked_, (Numbers{1, 2}));
  EXPECT_EQ(rs_.acked, 2 * kSize);
  EXPECT_EQ(rs_.inflight, kSize);
  EXPECT_EQ(rs_.rtt_ns, kMs);
  EXPECT_EQ(log_.una, 3u);
  EXPECT_EQ(ack({{1, 2}}), 0);
  EXPECT_EQ(acked_, Numbers{});
  EXPECT_EQ(rs_.acked, 0u);
  EXPECT_EQ(rs_.rtt_ns, 0u);
  EXPECT_EQ(rs_.interval_ns, 0u);
  EXPECT_EQ(rs_.inflight, kSize);
  EXPECT_EQ(ack({{1, 3}}), 0);
  EXPECT_EQ(acked_, (Numbers{3}));
  EXPECT_EQ(log_.inflight, 0u);
  EXPECT_EQ(log_.delivered, 3 * kSize);
}

TEST_F(Sentlog, CallbacksComeInOrderOfNumbers) {
  push_many(12);
  EXPECT_EQ(ack({{11, 12}, {8, 9}, {5, 5}}), 0);
  EXPECT_EQ(acked_, (Numbers{5, 8, 9, 11, 12}));
  EXPECT_EQ(lost_, (Numbers{1, 2, 3, 4, 6, 7}));
  EXPECT_EQ(log_.una, 10u);
}

TEST_F(Sentlog, RejectsImpossibleFramesAndChangesNothing) {
  push_many(10);
  const struct {
    const char* what;
    u32 largest;
    std::vector<std::pair<u16, u16>> ranges;  // gap, length
  } cases[] = {
      {"never sent", 11, {{0, 1}}},
      {"far above", 0x7fffffff, {{0, 1}}},
      {"below the first", 0xffffffff, {{0, 1}}},
      {"number 0", 0, {{0, 1}}},
      {"reaches number 0", 10, {{0, 11}}},
      {"reaches below 0", 10, {{0, 0xffff}}},
      {"second range reaches number 0", 10, {{0, 2}, {3, 6}}},
      {"gap reaches below 0", 10, {{0, 2}, {0xffff, 1}}},
      {"empty range", 10, {{0, 0}}},
      {"empty second range", 10, {{0, 2}, {1, 0}}},
      {"first gap", 10, {{1, 1}}},
      {"no range", 10, {}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    dblp_f_ack f = {};
    f.largest = c.largest;
    f.ce = 7;
    f.nranges = static_cast<u8>(c.ranges.size());
    for (size_t i = 0; i < c.ranges.size(); i++) {
      f.range[i].gap = c.ranges[i].first;
      f.range[i].len = c.ranges[i].second;
    }
    const dblp_sentlog before = log_;
    const dblp_rtt rtt = rtt_;
    EXPECT_EQ(ack(f), DBLP_REJECT_ACK);
    EXPECT_EQ(rs_.acked, 0u);
    EXPECT_EQ(rs_.inflight, 10 * kSize);
    EXPECT_TRUE(acked_.empty() && lost_.empty());
    EXPECT_EQ(std::memcmp(&before, &log_, sizeof(log_)), 0);
    EXPECT_EQ(std::memcmp(&rtt, &rtt_, sizeof(rtt_)), 0);
  }
  dblp_f_ack f = frame(std::vector<Range>{{10, 10}});
  f.nranges = DBLP_ACK_RANGES + 1;
  EXPECT_EQ(ack(f), DBLP_REJECT_ACK);
}

TEST_F(Sentlog, NumbersBeyond32BitsAreExpanded) {
  log_.next = log_.una = log_.tail = (1ULL << 32) - 2;
  push_many(5);
  EXPECT_EQ(ack({{1ULL << 32, (1ULL << 32) + 2}}), 0);
  EXPECT_EQ(acked_, (Numbers{1ULL << 32, (1ULL << 32) + 1, (1ULL << 32) + 2}));
  EXPECT_EQ(lost_, (Numbers{(1ULL << 32) - 2, (1ULL << 32) - 1}));
}

TEST_F(Sentlog, ThreeLaterPacketsMakeOneLost) {
  push_many(5);
  ack({{3, 3}});
  EXPECT_EQ(lost_, Numbers{});
  ack({{4, 4}, {3, 3}});
  EXPECT_EQ(lost_, Numbers{1});
  EXPECT_EQ(rs_.lost, kSize);
  EXPECT_EQ(rs_.inflight, 2 * kSize);
  EXPECT_EQ(log_.una, 2u);
  EXPECT_EQ(log_.lost_pkts, 1u);
  EXPECT_EQ(log_.lost, kSize);
}

TEST_F(Sentlog, NineEighthsOfARoundTripMakeOneLost) {
  settle_rtt(8 * kMs);
  const u64 first = push();
  now_ += kMs;
  const u64 second = push();
  now_ += 7 * kMs;
  const u64 sent_first = now_ - 8 * kMs;
  EXPECT_EQ(dblp_sentlog_loss_timer(&log_, &rtt_), DBLP_NEVER) << "nothing later is acknowledged";
  ack({{second, second}});
  ASSERT_EQ(rtt_.latest, 7 * kMs);
  const u64 delay = rtt_.srtt + rtt_.srtt / 8;
  EXPECT_EQ(dblp_sentlog_loss_timer(&log_, &rtt_), sent_first + delay);
  now_ = sent_first + delay - 1;
  EXPECT_EQ(detect(), 0u);
  now_++;
  EXPECT_EQ(detect(), kSize);
  EXPECT_EQ(lost_, Numbers{first});
  EXPECT_EQ(dblp_sentlog_loss_timer(&log_, &rtt_), DBLP_NEVER);
  // The next rate sample tells of it.
  const u64 next = push();
  now_ += 8 * kMs;
  ack({{next, next}, {second, second}});
  EXPECT_EQ(rs_.lost, kSize);
  ack({{next, next}});
  EXPECT_EQ(rs_.lost, 0u);
}

TEST_F(Sentlog, TheSlowerOfSmoothedAndLatestRoundTripCounts) {
  settle_rtt(kMs);
  push();
  const u64 sent = now_;
  now_ += 10 * kUs;
  const u64 second = push();
  now_ += 10 * kMs;
  ack({{second, second}});
  EXPECT_EQ(rtt_.latest, 10 * kMs);
  EXPECT_LT(rtt_.srtt, 3 * kMs);
  EXPECT_EQ(dblp_sentlog_loss_timer(&log_, &rtt_), sent + 10 * kMs + 10 * kMs / 8);
}

TEST_F(Sentlog, WhatElicitsNoAckIsNeverLostAndGivesNoRoundTrip) {
  push(false);
  EXPECT_EQ(log_.una, 2u) << "nothing to wait for";
  const u64 a = push();
  push(false);
  const u64 b = push();
  now_ += kMs;
  ack({{3, 3}});
  EXPECT_EQ(acked_, Numbers{3});
  EXPECT_EQ(rs_.rtt_ns, 0u);
  EXPECT_EQ(rs_.acked, 0u);
  EXPECT_EQ(rs_.interval_ns, 0u);
  push_many(3);
  ack({{b + 3, b + 3}});
  EXPECT_EQ(lost_, (Numbers{a, b}));
  EXPECT_EQ(log_.inflight, 2 * kSize);
  // A range of counted and not counted ones.
  ack({{7, 7}, {1, 6}});
  EXPECT_EQ(acked_, (Numbers{1, 2, 4, 5, 6}));
  EXPECT_EQ(spurious_, (Numbers{a, b}));
  EXPECT_EQ(log_.inflight, 0u);
}

TEST_F(Sentlog, ALateAckOfALostPacketRaisesTheThreshold) {
  push_many(20);
  ack({{11, 11}});
  ASSERT_EQ(lost_, (Numbers{1, 2, 3, 4, 5, 6, 7, 8}));
  ASSERT_EQ(log_.lost, 8 * kSize);
  ack({{11, 11}, {3, 3}});
  EXPECT_EQ(acked_, Numbers{3});
  EXPECT_EQ(spurious_, Numbers{3});
  EXPECT_EQ(log_.spurious, 1u);
  EXPECT_EQ(log_.lost, 7 * kSize);
  EXPECT_EQ(log_.lost_pkts, 8u);
  EXPECT_EQ(log_.reo_pkts, 9u) << "8 later ones were acknowledged: 9 would have held";
  EXPECT_EQ(rs_.acked, kSize);
  ack({{18, 18}});
  EXPECT_EQ(lost_, Numbers{9});
}

TEST_F(Sentlog, TheThresholdHasACeiling) {
  std::vector<dblp_sent> large(4096);
  dblp_sentlog_grow(&log_, large.data(), 4096);
  push_many(2000);
  ack({{2000, 2000}});
  ack({{2000, 2000}, {1, 1}});
  EXPECT_EQ(log_.reo_pkts, static_cast<u32>(DBLP_REO_PKTS_MAX));
}

TEST_F(Sentlog, ThresholdsDecayWithoutReordering) {
  settle_rtt(kMs);
  push_many(40);
  ack({{41, 41}});
  ack({{41, 41}, {2, 2}});
  const u32 raised = log_.reo_pkts;
  ASSERT_EQ(raised, 40u);
  now_ += DBLP_REO_DECAY_RTTS * rtt_.srtt - 1;
  ack({{41, 41}});
  EXPECT_EQ(log_.reo_pkts, raised);
  now_++;
  ack({{41, 41}});
  EXPECT_EQ(log_.reo_pkts, DBLP_REO_PKTS + (raised - DBLP_REO_PKTS) / 2);
  for (int i = 0; i < 10; i++) {
    now_ += DBLP_REO_DECAY_RTTS * rtt_.srtt;
    ack({{41, 41}});
  }
  EXPECT_EQ(log_.reo_pkts, static_cast<u32>(DBLP_REO_PKTS));
}

TEST_F(Sentlog, ReorderingThatTheThresholdCoversKeepsItUp) {
  settle_rtt(kMs);
  push_many(40);
  ack({{39, 41}});
  ack({{39, 41}, {2, 2}});
  ASSERT_EQ(log_.reo_pkts, 40u);
  for (int i = 0; i < 4; i++) {
    now_ += DBLP_REO_DECAY_RTTS * rtt_.srtt * 3 / 4;
    const u64 early = push();
    push_many(9);
    const u64 late = log_.next - 1;
    ack({{late, late}});
    ASSERT_EQ(lost_, Numbers{});
    ASSERT_EQ(ack({{early, late}}), 0);
    ASSERT_EQ(spurious_, Numbers{});
  }
  EXPECT_EQ(log_.reo_pkts, 40u);
}

TEST_F(Sentlog, ALateAckAfterALossByTimeWidensTheWindow) {
  settle_rtt(8 * kMs);
  const u64 first = push(), second = push();
  now_ += 8 * kMs;
  ack({{second, second}});
  now_ += 2 * kMs;
  ASSERT_EQ(detect(), kSize);
  ack({{first, second}});
  EXPECT_EQ(spurious_, Numbers{first});
  EXPECT_EQ(log_.reo_eighths, 2u);
  EXPECT_EQ(log_.reo_pkts, static_cast<u32>(DBLP_REO_PKTS));
}

TEST_F(Sentlog, LateAcksOfWhatWasGivenUpAreNoReordering) {
  push_many(10);
  EXPECT_EQ(dblp_sentlog_lose_all(&log_, &kEvents, this), 10 * kSize);
  EXPECT_EQ(lost_.size(), 10u);
  EXPECT_EQ(log_.inflight, 0u);
  EXPECT_EQ(log_.una, log_.next);
  EXPECT_EQ(dblp_sentlog_lose_all(&log_, &kEvents, this), 0u);
  now_ += kMs;
  ack({{10, 10}, {1, 9}});
  EXPECT_EQ(spurious_.size(), 10u);
  EXPECT_EQ(log_.reo_pkts, static_cast<u32>(DBLP_REO_PKTS));
  EXPECT_EQ(log_.inflight, 0u);
  EXPECT_EQ(log_.lost, 0u);
}

TEST_F(Sentlog, TheRingHoldsWhatIsOpenAndOverwritesTheRest) {
  for (int i = 0; i < 256; i++) {
    ASSERT_TRUE(dblp_sentlog_room(&log_));
    push();
  }
  EXPECT_FALSE(dblp_sentlog_room(&log_));
  ack({{1, 1}});
  ASSERT_TRUE(dblp_sentlog_room(&log_));
  push();
  EXPECT_FALSE(dblp_sentlog_room(&log_));
  EXPECT_EQ(log_.tail, 2u);
  // Everything but the last is acknowledged or lost: room again, late ACKs noticed.
  ack({{256, 256}, {200, 255}});
  EXPECT_EQ(log_.una, 257u);
  EXPECT_EQ(log_.lost_pkts, 198u);
  for (int i = 0; i < 100; i++) push();
  EXPECT_EQ(log_.tail, 102u);
  ack({{256, 256}, {50, 255}});
  EXPECT_EQ(spurious_.front(), 102u) << "older ones are forgotten";
  EXPECT_EQ(spurious_.back(), 199u);
  EXPECT_EQ(log_.una, 257u);
}

TEST_F(Sentlog, GrowingKeepsEveryEntry) {
  push_many(200);
  ack({{200, 200}, {150, 199}});
  for (int i = 0; i < 150; i++) push();
  std::vector<dblp_sent> large(1024);
  EXPECT_EQ(dblp_sentlog_grow(&log_, large.data(), 1024), memory_.data());
  std::fill(memory_.begin(), memory_.end(), dblp_sent{});
  EXPECT_EQ(ack({{350, 350}, {110, 349}}), 0);
  EXPECT_EQ(acked_.size(), 190u) << "150 new ones and the 40 lost ones from 110 on";
  EXPECT_EQ(spurious_.size(), 40u);
  for (int i = 0; i < 800; i++) {
    ASSERT_TRUE(dblp_sentlog_room(&log_));
    push();
  }
}

// A sender that paces one packet each 100 us over a path of 1 ms.
TEST_F(Sentlog, TheDeliveryRateOfAPacedSenderIsItsRate) {
  const u64 gap = 100 * kUs, rtt = kMs;
  std::map<u64, u64> sent;  // number by arrival of its ACK
  for (int i = 0; i < 100; i++) {
    while (!sent.empty() && sent.begin()->first <= now_) {
      const u64 resume = now_, pn = sent.begin()->second;
      now_ = sent.begin()->first;
      ASSERT_EQ(ack({{pn, pn}}), 0);
      EXPECT_FALSE(rs_.app_limited);
      if (i > 20) {
        EXPECT_EQ(rs_.interval_ns, rtt);
        EXPECT_EQ(rs_.delivered, 10 * kSize);
        EXPECT_EQ(rs_.delivered, log_.delivered - rs_.prior_delivered);
      }
      sent.erase(sent.begin());
      now_ = resume;
    }
    sent[now_ + rtt] = push();
    now_ += gap;
  }
}

// ACKs that were held and come all at once must not look like a fast path.
TEST_F(Sentlog, TheSendIntervalBoundsTheRate) {
  settle_rtt(kMs);
  for (int i = 0; i < 10; i++) {
    push();
    now_ += kMs;
  }
  ASSERT_EQ(ack({{2, 11}}), 0);
  EXPECT_EQ(rs_.delivered, 10 * kSize);
  EXPECT_EQ(rs_.interval_ns, 10 * kMs);
}

TEST_F(Sentlog, SamplesAreAppLimitedUntilTheBubbleHasPassed) {
  push_many(4);
  dblp_sentlog_app_limited(&log_);
  push();
  now_ += kMs;
  ack({{1, 4}});
  EXPECT_FALSE(rs_.app_limited) << "sent before";
  push();
  ack({{1, 5}});
  EXPECT_TRUE(rs_.app_limited);
  EXPECT_EQ(log_.applim_until, 0u);
  push();
  ack({{1, 6}});
  EXPECT_TRUE(rs_.app_limited);
  ack({{1, 7}});
  EXPECT_FALSE(rs_.app_limited);
}

TEST_F(Sentlog, AnIdlePipeStartsTheClocksAnew) {
  settle_rtt(kMs);
  now_ += 10 * kSec;
  settle_rtt(kMs);
  EXPECT_EQ(rs_.interval_ns, kMs);
  EXPECT_EQ(rs_.delivered, kSize);
}

TEST_F(Sentlog, CeCountsAreChecked) {
  push_many(10);
  ack({{1, 4}}, 0, 2);
  EXPECT_EQ(rs_.ce, 2u);
  ack({{1, 5}}, 0, 2);
  EXPECT_EQ(rs_.ce, 0u);
  ack({{1, 6}}, 0, 1);
  EXPECT_EQ(rs_.ce, 0u) << "an old frame";
  EXPECT_EQ(log_.ce_seen, 2u);
  ack({{1, 7}}, 0, 100);
  EXPECT_EQ(rs_.ce, 1u) << "more marks than packets";
  log_.ce_seen = 0xffffffff;
  ack({{1, 9}}, 0, 1);
  EXPECT_EQ(rs_.ce, 2u) << "the count wraps";
  ack({{1, 9}}, 0, 50);
  EXPECT_EQ(rs_.ce, 0u) << "nothing new was acknowledged";
}

TEST_F(Sentlog, TheLossRateIsThatOfThePath) {
  for (const double share : {0.0, 0.01, 0.05, 0.2}) {
    for (u64 seed = 1; seed <= 5; seed++) {
      Random random(seed);
      std::vector<dblp_sent> memory(1024);
      dblp_sentlog_init(&log_, memory.data(), 1024);
      double sum = 0;
      int n = 0;
      for (int i = 0; i < 20000; i++) {
        const u64 pn = push();
        now_ += 10 * kUs;
        if (std::uniform_real_distribution<>(0, 1)(random) < share) continue;
        ack({{pn, pn}});
        if (i > 1000) {
          sum += log_.loss_ppm;
          n++;
        }
      }
      EXPECT_NEAR(sum / n / 1e6, share, 0.004 + share / 10) << share << " seed " << seed;
      EXPECT_NEAR(log_.loss_ppm / 1e6, share, 0.003 + 5 * std::sqrt(share / 256))
          << share << " seed " << seed;
    }
  }
}

TEST_F(Sentlog, SpuriousLossesAreTakenOffTheLossRate) {
  for (int i = 0; i < 100; i++) {
    const u64 first = log_.next;
    push_many(100);
    ack({{first + 99, first + 99}});
    ack({{first, first + 99}});
    now_ += kMs;
  }
  EXPECT_EQ(log_.loss_ppm, 0u);
}

// Each ACK names a range of 60000; going through it each time would take hours.
TEST_F(Sentlog, AnAckCostsNoMoreThanItsNews) {
  std::vector<dblp_sent> memory(65536);
  dblp_sentlog_init(&log_, memory.data(), 65536);
  push_many(60000);
  ack({{1, 60000}});
  EXPECT_EQ(acked_.size(), 60000u) << "in one go";
  for (int i = 0; i < 500000; i++) {
    const u64 pn = push();
    now_ += kUs;
    // Every second one comes only with the next, so a gap is always open.
    const std::vector<Range> ranges = pn % 2 ? std::vector<Range>{{pn - 60000, pn}}
                                             : std::vector<Range>{{pn, pn}, {pn - 60000, pn - 2}};
    ASSERT_EQ(ack(frame(ranges)), 0);
    ASSERT_LE(acked_.size(), 2u);
  }
  EXPECT_EQ(log_.una, log_.next);
}

// The same rules, written so that nothing is remembered between two calls.
TEST(SentlogModel, AgreesWithANaiveOne) {
  enum class Fate { kFlying, kAcked, kLost, kUncounted };
  struct Packet {
    Fate fate;
    u64 at;
    u32 size;
    int acked = 0, lost = 0;  // callbacks
  };
  struct Events {
    std::map<u64, Packet>* packets;
    static void acked(void* ctx, u64 pn, const dblp_sent*) {
      static_cast<Events*>(ctx)->packets->at(pn).acked++;
    }
    static void lost(void* ctx, u64 pn, const dblp_sent*) {
      static_cast<Events*>(ctx)->packets->at(pn).lost++;
    }
  };
  Random seeds = seeded();
  u64 spurious = 0;
  for (int run = 0; run < 20; run++) {
    const u64 seed = seeds();
    SCOPED_TRACE(seed);
    Random random(seed);
    const u32 size = 1u << pick(random, 6, 9);
    std::vector<dblp_sent> memory(size);
    dblp_sentlog log;
    dblp_rtt rtt;
    dblp_sentlog_init(&log, memory.data(), size);
    dblp_rtt_init(&rtt);
    std::map<u64, Packet> packets;
    Events ctx{&packets};
    const dblp_sent_events ev = {Events::acked, Events::lost};
    std::set<u64> received;
    std::vector<u64> late;
    u64 now = kSec, delivered = 0, largest = 0;
    for (int step = 0; step < 2000; step++) {
      now += pick(random, 0, 300) * kUs;
      bool settled = false;
      switch (pick(random, 0, 7)) {
        case 0:
        case 1:
        case 2:
          for (u64 n = pick(random, 1, 8); n && dblp_sentlog_room(&log); n--) {
            const bool counted = pick(random, 0, 9) > 0;
            const u32 bytes = static_cast<u32>(pick(random, 1, 9000));
            packets[log.next] = {counted ? Fate::kFlying : Fate::kUncounted, now, bytes};
            // Most arrive, some of them late.
            const u64 luck = pick(random, 0, 9);
            if (luck > 1) received.insert(log.next);
            if (luck == 1) late.push_back(log.next);
            ASSERT_NE(dblp_sentlog_push(&log, bytes, counted, now), nullptr);
          }
          break;
        case 3:
          if (!late.empty() && pick(random, 0, 1)) {
            received.insert(late.front());
            late.erase(late.begin());
          }
          dblp_sentlog_detect(&log, &rtt, &ev, &ctx, now);
          settled = true;
          break;
        default: {
          // A random part of what was received, as ranges from a random point down.
          if (received.empty()) break;
          std::vector<Range> ranges;
          u64 top = pick(random, log.tail, log.next - 1);
          for (auto i = received.rbegin(); i != received.rend(); ++i) {
            if (*i > top) continue;
            if (!ranges.empty() && ranges.back().first == *i + 1) {
              ranges.back().first = *i;
              continue;
            }
            if (ranges.size() == DBLP_ACK_RANGES || *i + size < log.next) break;
            ranges.push_back({*i, *i});
          }
          if (ranges.empty()) break;
          const dblp_f_ack f = frame(ranges);
          dblp_rate_sample rs;
          const u64 tail = log.tail;
          ASSERT_EQ(dblp_sentlog_ack(&log, &f, &rtt, &ev, &ctx, &rs, now), 0);
          u64 news = 0;
          for (const Range& r : ranges) {
            for (u64 pn = std::max(r.first, tail); pn <= r.last; pn++) {
              Packet& p = packets[pn];
              if (p.fate != Fate::kAcked && p.fate != Fate::kUncounted) news += p.size;
              p.fate = Fate::kAcked;
            }
          }
          ASSERT_EQ(rs.acked, news);
          delivered += news;
          largest = std::max(largest, ranges[0].last);
          settled = true;
        }
      }
      u64 inflight = 0;
      const u64 base = std::max(dblp_rtt_srtt(&rtt), rtt.latest);
      for (auto& [pn, p] : packets) {
        if (settled && p.fate == Fate::kFlying && pn < largest &&
            (largest - pn >= log.reo_pkts || now >= p.at + base + base * log.reo_eighths / 8))
          p.fate = Fate::kLost;
        if (p.fate == Fate::kFlying) inflight += p.size;
        ASSERT_LE(p.acked, 1) << pn;
        ASSERT_LE(p.lost, 1) << pn;
        ASSERT_TRUE(p.fate != Fate::kLost || p.lost == 1) << pn;
        ASSERT_TRUE(p.fate != Fate::kFlying || p.acked + p.lost == 0) << pn;
        ASSERT_TRUE(p.fate != Fate::kAcked || p.acked == 1) << pn;
      }
      ASSERT_EQ(log.inflight, inflight);
      ASSERT_EQ(log.delivered, delivered);
      ASSERT_EQ(log.largest, largest);
      u64 una = log.next;
      for (const auto& [pn, p] : packets)
        if (p.fate == Fate::kFlying) una = std::min(una, pn);
      ASSERT_EQ(log.una, una);
      while (packets.size() > 1024) {
        received.erase(packets.begin()->first);
        packets.erase(packets.begin());
      }
    }
    spurious += log.spurious;
    EXPECT_GT(log.lost_pkts, 0u);
  }
  EXPECT_GT(spurious, 100u) << "late ACKs were tried";
}

}  // namespace
}  // namespace dblp::test

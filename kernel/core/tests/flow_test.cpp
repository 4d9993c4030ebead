// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The rules of dblp-wire.rst §5, one scenario each: exactly the packet that matters is lost,
// repeated or forged.
#include <gtest/gtest.h>

#include <map>

#include "pair.h"

namespace {

using dblp_test::Packet;
using dblp_test::Pair;
using dblp_test::TxMessage;

constexpr uint64_t kMs = 1'000'000;

// Loses the first transmission of these segments.
auto lose_first(std::set<uint32_t> segs) {
  return [segs](const Packet& p) mutable {
    const auto* d = p.find(DBLP_F_DATA);
    return p.to_receiver && d && segs.erase(d->u.data.seg) > 0;
  };
}

std::vector<bool> tx_map(const TxMessage& t) {
  std::vector<bool> v;
  for (uint32_t s = 0; s < t.m.nsegs; s++) v.push_back(dblp_segmap_test(&t.m.map, s));
  return v;
}

// What must hold for every message that both sides finished.
void expect_agreement(const Pair& p, const TxMessage& t) {
  ASSERT_TRUE(t.done);
  int seen = 0;
  for (const auto& d : p.delivered) {
    if (d.id != t.m.id) continue;
    seen++;
    EXPECT_EQ(d.verdict == DBLP_VERDICT_OK, t.m.outcome == DBLP_TX_OK);
    EXPECT_EQ(d.missing, t.m.missing_bytes);
    EXPECT_EQ(d.missing_map, tx_map(t));
  }
  EXPECT_EQ(seen, 1);
}

TEST(Flow, OneSegmentNeedsNoMarkAndNoMap) {
  Pair p;
  auto& t = p.message(100);
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_EQ(p.sent(DBLP_F_DATA), 1u);
  EXPECT_EQ(p.sent(DBLP_F_MARK), 0u);
  EXPECT_EQ(p.sent(DBLP_F_DONE), 0u);
  EXPECT_EQ(p.sent(DBLP_F_MAP), 0u);
}

TEST(Flow, CleanPathSendsEverySegmentOnce) {
  for (uint8_t mode : {0, 1}) {
    Pair p;
    auto& t = p.message(200'000);
    t.m.ppm = 400'000;
    t.m.mode = mode;
    p.submit(t);
    ASSERT_TRUE(p.run());
    expect_agreement(p, t);
    EXPECT_EQ(t.m.resent_bytes, 0u);
    if (mode == 0) {
      EXPECT_EQ(p.sent(DBLP_F_DATA), 200u);
      EXPECT_EQ(t.m.missing_bytes, 0u);
    } else {
      EXPECT_LE(t.m.missing_bytes, 80'000u);
    }
  }
}

TEST(Flow, EagerStopsTheSenderEarly) {
  Pair p(&dblp_cc_fixed);
  dblp_cc_set_fixed_rate(&p.tx.cc, 2'000'000);
  auto& t = p.message(1'000'000);
  t.m.ppm = 400'000;
  t.m.mode = 1;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_GT(t.m.missing_bytes, 300'000u);
  EXPECT_LT(t.m.sent_bytes, 700'000u);
}

TEST(Flow, LossWithinTheBoundIsNotRepaired) {
  Pair p;
  p.drop = lose_first({3, 50, 51, 99});
  auto& t = p.message(100'000);
  t.m.ppm = 40'000;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_EQ(t.m.missing_segs, 4u);
  EXPECT_EQ(t.m.resent_bytes, 0u);
  EXPECT_EQ(p.sent(DBLP_F_DATA), 100u);
}

TEST(Flow, OnlyTheExcessIsRepaired) {
  Pair p;
  p.drop = lose_first({0, 7, 14, 21, 28, 35, 42, 49});
  auto& t = p.message(100'000);
  t.m.ppm = 30'000;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_LE(t.m.missing_bytes, 30'000u);
  EXPECT_GE(t.m.resent_bytes, 5'000u);
  EXPECT_LE(t.m.resent_bytes, 8'000u);
}

TEST(Flow, ZeroToleranceArrivesWhole) {
  Pair p;
  p.drop = lose_first({0, 1, 2, 3, 4, 50, 95, 96, 97, 98, 99});
  auto& t = p.message(100'000);
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.missing_bytes, 0u);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
}

TEST(Flow, ProtectedSegmentsArriveWhateverTheTolerance) {
  Pair p;
  p.drop = lose_first({0, 1, 40, 41, 60});
  auto& t = p.message(100'000);
  t.m.ppm = 500'000;
  t.m.nprot = 2;
  t.m.prot[0] = {0, 2};
  t.m.prot[1] = {40, 1};
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_FALSE(dblp_segmap_test(&t.m.map, 0));
  EXPECT_FALSE(dblp_segmap_test(&t.m.map, 1));
  EXPECT_FALSE(dblp_segmap_test(&t.m.map, 40));
  EXPECT_TRUE(dblp_segmap_test(&t.m.map, 41));
  EXPECT_TRUE(dblp_segmap_test(&t.m.map, 60));
}

TEST(Flow, ProtectedSegmentsGoFirstAndTheRestIsPermuted) {
  Pair p;
  auto& t = p.message(50'000);
  t.m.nprot = 1;
  t.m.prot[0] = {20, 3};
  p.submit(t);
  ASSERT_TRUE(p.run());
  std::vector<uint32_t> order;
  for (const auto& q : p.history)
    if (const auto* d = q.find(DBLP_F_DATA)) order.push_back(d->u.data.seg);
  ASSERT_EQ(order.size(), 50u);
  EXPECT_EQ((std::vector<uint32_t>{order[0], order[1], order[2]}),
            (std::vector<uint32_t>{20, 21, 22}));
  EXPECT_FALSE(std::is_sorted(order.begin() + 3, order.end()));
  std::sort(order.begin(), order.end());
  for (uint32_t i = 0; i < 50; i++) EXPECT_EQ(order[i], i);
}

TEST(Flow, OrderedMessagesGoInOrder) {
  Pair p;
  auto& t = p.message(50'000);
  t.m.ordered = true;
  p.submit(t);
  ASSERT_TRUE(p.run());
  uint32_t next = 0;
  for (const auto& q : p.history)
    if (const auto* d = q.find(DBLP_F_DATA)) {
      EXPECT_EQ(d->u.data.seg, next++);
    }
}

// Field situation: exactly one packet of a kind is lost, and the round hangs.
TEST(Flow, AnySingleLossIsSurvived) {
  const dblp_frame_type types[] = {DBLP_F_INIT, DBLP_F_CHALLENGE, DBLP_F_ECHO, DBLP_F_ACCEPT,
                                   DBLP_F_DATA, DBLP_F_DESC,      DBLP_F_MARK, DBLP_F_ACK,
                                   DBLP_F_DONE, DBLP_F_NEED,      DBLP_F_MAP};
  for (const auto type : types) {
    for (int nth = 0; nth < 4; nth++) {
      SCOPED_TRACE("frame type " + std::to_string(type) + " no. " + std::to_string(nth));
      Pair p;
      auto first = lose_first({5, 6, 7, 8, 9, 99});
      int seen = 0;
      p.drop = [&](const Packet& q) { return first(q) || (q.has(type) && seen++ == nth); };
      auto& t = p.message(100'000);
      t.m.ppm = 20'000;
      p.submit(t);
      ASSERT_TRUE(p.run(2'000 * kMs));
      expect_agreement(p, t);
      EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
      EXPECT_LE(t.m.missing_bytes, 20'000u);
    }
  }
}

TEST(Flow, LostTailIsRepairedAtRoundTripScale) {
  Pair p;
  p.submit(p.message(1000));
  ASSERT_TRUE(p.run());
  bool lost_data = false, lost_mark = false;
  p.drop = [&](const Packet& q) {
    const auto* d = q.find(DBLP_F_DATA);
    if (d && d->u.data.msg_len == 100'000 && p.tx.stats.segs == 101 && !lost_data)
      return lost_data = true;
    if (q.has(DBLP_F_MARK) && !lost_mark) return lost_mark = true;
    return false;
  };
  auto& t = p.message(100'000);
  const uint64_t begin = p.now;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_TRUE(lost_data && lost_mark);
  EXPECT_LT(t.m.completed_at - begin, 60 * kMs);
}

TEST(Flow, StaleNeedIsNotObeyed) {
  Pair p;
  Packet need;
  p.drop = lose_first({10, 11, 12, 99});
  auto& t = p.message(100'000);
  t.m.ordered = true;
  bool held = false;
  auto lose = p.drop;
  p.drop = [&](const Packet& q) {
    if (q.has(DBLP_F_NEED) && !held) {
      held = true;
      need = q;
    }
    return lose(q);
  };
  p.submit(t);
  p.run_for(30 * kMs);
  if (!held) GTEST_SKIP() << "all repaired inside the pass";
  const auto resent = t.m.resent_bytes;
  // A copy with another packet number, as from a receiver that repeats itself.
  put_unaligned_be32(static_cast<uint32_t>(p.tx.rev_largest + 1), need.bytes.data() + 12);
  p.inject(need);
  ASSERT_TRUE(p.run());
  EXPECT_EQ(t.m.resent_bytes, resent);
}

TEST(Flow, DeadlineEndsWithAVerdictAndAMap) {
  Pair p;
  p.drop = [](const Packet& q) {
    const auto* d = q.find(DBLP_F_DATA);
    return d && d->u.data.seg >= 50;
  };
  auto& t = p.message(100'000);
  t.m.ppm = 100'000;
  t.m.deadline_us = 50'000;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_BELOW);
  EXPECT_GE(t.m.missing_segs, 50u);
  for (uint32_t s = 50; s < 100; s++) EXPECT_TRUE(dblp_segmap_test(&t.m.map, s));
  EXPECT_GE(p.sent(DBLP_F_CLOSE), 1u);
  EXPECT_LT(t.m.completed_at - t.m.submitted_at, 200 * kMs);
}

TEST(Flow, DeadlineWithinTheBoundIsOk) {
  Pair p;
  p.drop = [](const Packet& q) {
    const auto* d = q.find(DBLP_F_DATA);
    return (d && d->u.data.seg >= 90) || q.has(DBLP_F_MARK);
  };
  auto& t = p.message(100'000);
  t.m.ppm = 100'000;
  t.m.deadline_us = 50'000;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
}

TEST(Flow, HoldTimerJudgesWhenCloseNeverComes) {
  Pair p;
  p.drop = [](const Packet& q) {
    const auto* d = q.find(DBLP_F_DATA);
    return (d && d->u.data.seg >= 50) || q.has(DBLP_F_CLOSE);
  };
  auto& t = p.message(100'000);
  t.m.deadline_us = 20'000;
  p.submit(t);
  p.run_for(1'000 * kMs);
  ASSERT_EQ(p.delivered.size(), 1u);
  EXPECT_EQ(p.delivered[0].verdict, DBLP_VERDICT_BELOW);
  p.drop = [](const Packet&) { return false; };
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
}

TEST(Flow, RoundCapEndsWithAVerdict) {
  Pair p;
  p.drop = [](const Packet& q) {
    const auto* d = q.find(DBLP_F_DATA);
    return d && d->u.data.seg == 7;
  };
  auto& t = p.message(20'000);
  t.m.max_rounds = 3;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_BELOW);
  EXPECT_EQ(t.m.missing_segs, 1u);
  EXPECT_EQ(t.m.rounds, 3u);
}

TEST(Flow, MapOfSeveralPartsIsPulledUntilItIsWhole) {
  Pair p;
  uint32_t n = 0;
  p.drop = [&](const Packet& q) {
    if (q.has(DBLP_F_MAP)) return n++ % 3 == 0;
    const auto* d = q.find(DBLP_F_DATA);
    return d && d->u.data.seg % 10 == 3;
  };
  auto& t = p.message(512 * 100'000, 512);
  t.m.ppm = 110'000;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_EQ(t.m.missing_segs, 10'000u);
  EXPECT_GT(n, 13u);
}

TEST(Flow, AMapThatDoesNotMatchItsDigestIsPulledAgain) {
  for (const int bad : {1, 1000}) {
    Pair p;
    int left = bad;
    p.drop = lose_first({3, 4});
    p.change = [&](Packet& q) {
      if (!q.has(DBLP_F_MAP) || left-- <= 0) return;
      const auto at = q.find(DBLP_F_MAP)->u.map.list - q.bytes.data();
      q.bytes[at + 1] ^= 0x10;
    };
    auto& t = p.message(100'000);
    t.m.ppm = 50'000;
    p.submit(t);
    ASSERT_TRUE(p.run());
    if (bad == 1) {
      expect_agreement(p, t);
      EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
    } else {
      EXPECT_EQ(t.m.outcome, DBLP_TX_UNKNOWN);
      EXPECT_EQ(t.m.error, EBADMSG);
    }
    EXPECT_GE(p.tx_rejects[DBLP_REJECT_DIGEST] + p.tx_rejects[DBLP_REJECT_MAP], 1u);
  }
}

TEST(Flow, BusyThenGrantSendsTheWholeMessage) {
  Pair p;
  p.room_there = false;
  auto& t = p.message(300'000);
  t.m.ppm = 400'000;
  p.submit(t);
  p.run_for(300 * kMs);
  EXPECT_FALSE(t.done);
  EXPECT_EQ(t.m.state, DBLP_TXM_BUSY);
  EXPECT_LE(t.m.sent_bytes, 80'000u) << "more than a first flight before the grant";
  p.grant();
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_EQ(t.m.missing_bytes, 0u) << "tolerance spent although the network lost nothing";
}

TEST(Flow, LostGrantIsAskedFor) {
  Pair p;
  p.room_there = false;
  auto& t = p.message(300'000);
  p.submit(t);
  p.run_for(100 * kMs);
  bool lost = false;
  p.drop = [&](const Packet& q) {
    const auto* b = q.find(DBLP_F_BUDGET);
    if (b && b->u.budget.op == DBLP_GRANT && !lost) return lost = true;
    return false;
  };
  p.grant();
  ASSERT_TRUE(p.run(5'000 * kMs));
  EXPECT_TRUE(lost);
  expect_agreement(p, t);
}

TEST(Flow, DeadlineWhileBusyIsBelowWithNothing) {
  Pair p;
  p.room_there = false;
  auto& t = p.message(30'000);
  t.m.deadline_us = 100'000;
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_BELOW);
  EXPECT_EQ(t.m.missing_bytes, 30'000u);
  EXPECT_TRUE(p.waiting.empty());
}

TEST(Flow, TooLargeIsRefusedWithTheLimit) {
  Pair p;
  p.limit = 50'000;
  auto& big = p.message(100'000);
  auto& small = p.message(50'000);
  int lost = 0;
  p.drop = [&](const Packet& q) { return q.has(DBLP_F_REFUSE) && lost++ < 2; };
  p.submit(big);
  p.submit(small);
  ASSERT_TRUE(p.run());
  EXPECT_EQ(big.m.outcome, DBLP_TX_REFUSED);
  EXPECT_EQ(big.m.limit, 50'000u);
  expect_agreement(p, small);
  EXPECT_EQ(p.delivered.size(), 1u);
}

TEST(Flow, SilenceKillsTheFlowAfterTheDeadTime) {
  Pair p;
  auto& t = p.message(100'000);
  p.drop = [&](const Packet& q) { return q.has(DBLP_F_DATA) && p.tx.stats.segs > 30; };
  p.submit(t);
  p.run_for(5 * kMs);
  p.drop = [](const Packet&) { return true; };
  const uint64_t begin = p.now;
  ASSERT_TRUE(p.run());
  EXPECT_EQ(t.m.outcome, DBLP_TX_UNKNOWN);
  EXPECT_EQ(t.m.error, ETIMEDOUT);
  EXPECT_GT(t.m.missing_bytes, 0u);
  EXPECT_LE(t.m.completed_at - begin, DBLP_DEAD_NS + 100 * kMs);
  EXPECT_EQ(dblp_tx_submit(&p.tx, &p.message(10).m, p.now), -EPIPE);
}

TEST(Flow, RestartedReceiverIsNoticed) {
  Pair p;
  auto& t = p.message(2'000'000);
  p.submit(t);
  p.run_for(5 * kMs);
  ASSERT_FALSE(t.done);
  p.forget_receiver();
  const uint64_t begin = p.now;
  ASSERT_TRUE(p.run());
  EXPECT_EQ(t.m.outcome, DBLP_TX_UNKNOWN);
  EXPECT_EQ(t.m.error, ECONNRESET);
  EXPECT_LT(t.m.completed_at - begin, 100 * kMs);
}

TEST(Flow, ALateResetOfTheHandshakeDoesNotKill) {
  Pair p;
  p.submit(p.message(1000));
  ASSERT_TRUE(p.run());
  std::array<uint8_t, 64> buf{};
  const uint32_t n = dblp_hs_reset(p.tx.peer_flow, static_cast<uint32_t>(p.tx.open_pn - 1),
                                   DBLP_RESET_UNKNOWN, buf.data(), buf.size());
  dblp_frame f{};
  f.type = DBLP_F_RESET;
  f.u.reason.reason = DBLP_RESET_UNKNOWN;
  for (int i = 0; i < 3; i++) p.inject(Packet{false, 0, {buf.begin(), buf.begin() + n}, {f}});
  auto& t = p.message(100'000);
  p.submit(t);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
}

TEST(Flow, ReplayOfEverythingDeliversNothingTwice) {
  Pair p;
  p.drop = lose_first({3, 4, 5});
  for (int i = 0; i < 20; i++) {
    auto& t = p.message(5'000 + 1000 * i);
    t.m.ppm = i % 2 ? 300'000 : 0;
    p.submit(t);
  }
  ASSERT_TRUE(p.run());
  const auto history = p.history;
  const auto stored = p.rx.stats.segs;
  for (int round = 0; round < 3; round++) {
    for (const auto& q : history) p.inject(q);
    p.run_for(500 * kMs);
  }
  EXPECT_EQ(p.delivered.size(), 20u);
  EXPECT_EQ(p.rx.stats.segs, stored);
}

TEST(Flow, LateSegmentsAreDroppedAndTheMapStaysAsItWas) {
  Pair p;
  std::vector<Packet> held;
  p.drop = [&](const Packet& q) {
    const auto* d = q.find(DBLP_F_DATA);
    if (!d || d->u.data.seg % 20 != 5) return false;
    held.push_back(q);
    return true;
  };
  auto& t = p.message(100'000);
  t.m.ppm = 100'000;
  p.submit(t);
  ASSERT_TRUE(p.run());
  ASSERT_EQ(held.size(), 5u);
  const auto stored = p.rx.stats.segs;
  for (const auto& q : held) p.inject(q);
  p.run_for(50 * kMs);
  EXPECT_EQ(p.rx.stats.segs, stored);
  EXPECT_EQ(p.rx_rejects[DBLP_REJECT_LATE], 5u);
  expect_agreement(p, t);
}

TEST(Flow, LowLetsTheReceiverForget) {
  Pair p;
  for (int i = 0; i < 10; i++) {
    p.drop = lose_first({2});
    auto& t = p.message(20'000);
    t.m.ppm = 100'000;
    p.submit(t);
    ASSERT_TRUE(p.run());
    expect_agreement(p, t);
    EXPECT_LE(p.rx_messages.size(), 2u);
  }
  EXPECT_EQ(p.delivered.size(), 10u);
}

TEST(Flow, MoreMessagesThanTheWindow) {
  Pair p;
  for (int i = 0; i < 3000; i++) p.submit(p.message(64));
  ASSERT_TRUE(p.run());
  EXPECT_EQ(p.delivered.size(), 3000u);
  std::set<uint64_t> ids;
  for (const auto& d : p.delivered) EXPECT_TRUE(ids.insert(d.id).second);
  EXPECT_EQ(p.rx_rejects[DBLP_REJECT_ID_WINDOW], 0u);
  for (const auto& t : p.messages) EXPECT_EQ(t->m.outcome, DBLP_TX_OK);
}

TEST(Flow, DeadlinesBeyondTheWindowWaitForTheirTurn) {
  Pair p;
  p.room_there = false;  // the first message is stuck
  auto& stuck = p.message(2000);
  p.submit(stuck);
  for (int i = 0; i < 1500; i++) {
    auto& t = p.message(100);
    t.m.deadline_us = 50'000;
    p.submit(t);
  }
  p.run_for(60'000 * kMs);
  EXPECT_FALSE(stuck.done);
  EXPECT_NE(p.tx.state, DBLP_TX_DEAD) << "error " << p.tx.error;
  EXPECT_EQ(p.rx_rejects[DBLP_REJECT_ID_WINDOW], 0u);
  p.grant();
  ASSERT_TRUE(p.run());
  EXPECT_EQ(stuck.m.outcome, DBLP_TX_OK);
  for (const auto& t : p.messages) EXPECT_NE(t->m.outcome, DBLP_TX_UNKNOWN);
}

TEST(Flow, GroupsGiveSmallMessagesTheirShare) {
  Pair p;
  int n = 0;
  p.drop = [&](const Packet& q) {
    const auto* d = q.find(DBLP_F_DATA);
    return d && n++ % 10 == 9;
  };
  uint64_t missing = 0, total = 0;
  for (int i = 0; i < 200; i++) {
    auto& t = p.message(1000);
    t.m.ppm = 50'000;
    t.m.group = 9;
    p.submit(t);
    ASSERT_TRUE(p.run());
    missing += t.m.missing_bytes;
    total += 1000;
    EXPECT_LE(missing * 1'000'000, total * 50'000) << "after message " << i;
  }
  EXPECT_GE(missing, 8'000u) << "the group's tolerance was not used";
}

TEST(Flow, AGroupThatStartsAnewOwesNothingToItsPast) {
  Pair p;
  // The group begins again with another tolerance while a message of the old one, with a
  // large allowance that it does not use, is outstanding.
  p.drop = [](const Packet& q) {
    const auto* d = q.find(DBLP_F_DATA);
    return d && d->u.data.msg_len == 10'000 && d->u.data.seg == 5;
  };
  std::vector<TxMessage*> all;
  for (const uint32_t ppm : {500'000u, 100'000u, 100'000u}) {
    auto& t = p.message(ppm == 500'000u ? 20'000 : 10'000);
    t.m.ppm = ppm;
    t.m.group = 9;
    p.submit(t);
    all.push_back(&t);
  }
  ASSERT_TRUE(p.run());
  EXPECT_EQ(all[0]->m.missing_bytes, 0u);
  EXPECT_EQ(all[1]->m.missing_bytes + all[2]->m.missing_bytes, 2'000u);
  // 3000 bytes allowed so far, 2000 of them lost.
  auto& last = p.message(10'000);
  last.m.ppm = 100'000;
  last.m.group = 9;
  p.submit(last);
  EXPECT_EQ(last.m.allow, 1'000u) << "credit of the group's former self";
  ASSERT_TRUE(p.run());
}

TEST(Flow, ASegmentThatCouldNotBeStoredIsAskedForAgain) {
  Pair p;
  p.store_fails = true;
  auto& t = p.message(50'000);
  p.submit(t);
  p.run_for(20 * kMs);
  p.store_fails = false;
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_GT(p.rx_rejects[DBLP_REJECT_MEMORY], 0u);
}

TEST(Flow, FullLogAndBlackoutRecover) {
  Pair p;
  p.submit(p.message(1000));
  ASSERT_TRUE(p.run());
  auto& t = p.message(30'000'000);
  p.submit(t);
  p.run_for(40 * kMs);
  p.drop = [](const Packet&) { return true; };
  p.run_for(3'000 * kMs);
  p.drop = [](const Packet&) { return false; };
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
}

TEST(Flow, ShutdownAsksForVerdictsAtOnce) {
  Pair p(&dblp_cc_fixed);
  dblp_cc_set_fixed_rate(&p.tx.cc, 1'000'000);
  auto& t = p.message(1'000'000);
  p.submit(t);
  p.run_for(100 * kMs);
  dblp_tx_close_all(&p.tx, p.now);
  ASSERT_TRUE(p.run());
  expect_agreement(p, t);
  EXPECT_EQ(t.m.outcome, DBLP_TX_BELOW);
}

TEST(Flow, FinFreesWhatIsNotJudged) {
  Pair p(&dblp_cc_fixed);
  dblp_cc_set_fixed_rate(&p.tx.cc, 1'000'000);
  p.submit(p.message(1'000'000));
  p.run_for(100 * kMs);
  ASSERT_EQ(p.rx_messages.size(), 1u);
  std::array<uint8_t, 64> buf{};
  const uint32_t n = dblp_tx_fin(&p.tx, DBLP_FIN_CLOSED, buf.data(), buf.size());
  ASSERT_GT(n, 0u);
  dblp_tx_kill(&p.tx, ECANCELED, p.now);
  p.inject(Packet{true, 0, {buf.begin(), buf.begin() + n}, {}});
  p.run_for(50 * kMs);
  EXPECT_TRUE(p.rx_messages.empty());
}

}  // namespace

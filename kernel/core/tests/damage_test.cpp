// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Packets that were damaged and still passed the checksum: one kind a test.  Whatever they
// did, the flow goes on or ends by a name; it never asks for ever.
#include <gtest/gtest.h>

#include <cerrno>

#include "pair.h"

namespace {

using dblp_test::Packet;
using dblp_test::Pair;

constexpr uint64_t kMs = 1'000'000;
constexpr size_t kLow = 16, kNumber = 12;         // offsets in a header
constexpr size_t kDataLen = DBLP_HDR_LEN + 8;     // of DATA in the first frame
constexpr size_t kAckLargest = DBLP_HDR_LEN + 4;  // of ACK in the first frame

// Changes the packets for which `which` holds, `times` of them.
std::function<void(Packet&)> damage(int times, std::function<bool(const Packet&)> which,
                                    std::function<void(Packet&)> how) {
  return [=](Packet& p) mutable {
    if (times > 0 && which(p)) {
      times--;
      how(p);
    }
  };
}

void put32(Packet& p, size_t at, uint32_t v) { put_unaligned_be32(v, p.bytes.data() + at); }

bool is_data(const Packet& p) { return p.to_receiver && p.has(DBLP_F_DATA); }

TEST(Damage, LowThatRoseEndsTheFlowAtOnce) {
  Pair p;
  auto& t = p.message(2'000'000);
  p.submit(t);
  p.run_for(5 * kMs);
  p.change = damage(1, is_data, [](Packet& q) { put32(q, kLow, 900); });
  const uint64_t begin = p.now;
  ASSERT_TRUE(p.run());
  EXPECT_EQ(t.m.outcome, DBLP_TX_UNKNOWN);
  EXPECT_EQ(t.m.error, EPROTO);
  EXPECT_LT(t.m.completed_at - begin, 100 * kMs);
  EXPECT_GE(p.rx_rejects[DBLP_REJECT_LOW], 1u);
}

TEST(Damage, LowOfTheLastPacketEndsTheFlowByUnansweredProbes) {
  Pair p;
  auto& t = p.message(1000);
  p.submit(t);
  // Of every packet, so that none is newer and right.
  p.change = damage(
      1'000'000, [](const Packet& q) { return q.to_receiver && q.bytes[11]; },
      [](Packet& q) { put32(q, kLow, 900); });
  ASSERT_TRUE(p.run());
  EXPECT_EQ(t.m.outcome, DBLP_TX_UNKNOWN);
  EXPECT_TRUE(t.m.error == EPROTO || t.m.error == ETIMEDOUT) << t.m.error;
}

TEST(Damage, MessageOpenedWithAWrongLengthEndsAfterAFewContradictions) {
  Pair p;
  auto& t = p.message(50'000);
  p.submit(t);
  bool described = false;
  p.drop = [&](const Packet& q) { return !described && q.has(DBLP_F_DESC) && (described = true); };
  p.change = damage(
      1, [](const Packet& q) { return is_data(q) && !q.has(DBLP_F_DESC); },
      [](Packet& q) { put32(q, kDataLen, 60'000); });
  ASSERT_TRUE(p.run());
  EXPECT_EQ(t.m.outcome, DBLP_TX_UNKNOWN);
  EXPECT_EQ(t.m.error, EPROTO);
  EXPECT_EQ(p.rx_rejects[DBLP_REJECT_MSG_MISMATCH], DBLP_RX_MISMATCH_MAX);
  EXPECT_TRUE(p.rx_messages.empty());
}

TEST(Damage, OneContradictionDisturbsNothing) {
  Pair p;
  auto& t = p.message(500'000);
  p.submit(t);
  p.run_for(6 * kMs);
  ASSERT_FALSE(t.done);
  p.change = damage(
      1, [](const Packet& q) { return is_data(q) && !q.has(DBLP_F_DESC); },
      [](Packet& q) { put32(q, kDataLen, 500'004); });
  ASSERT_TRUE(p.run());
  EXPECT_EQ(p.rx_rejects[DBLP_REJECT_MSG_MISMATCH], 1u);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
  EXPECT_EQ(t.m.missing_bytes, 0u);
}

TEST(Damage, AcksOfWhatWasNeverSentAreSilence) {
  Pair p;
  auto& t = p.message(500'000);
  p.submit(t);
  p.run_for(6 * kMs);
  ASSERT_FALSE(t.done);
  p.change = damage(
      1'000'000,
      [](const Packet& q) {
        return !q.to_receiver && !q.frames.empty() && q.frames[0].type == DBLP_F_ACK;
      },
      [](Packet& q) { put32(q, kAckLargest, 0x40000000); });
  p.drop = [](const Packet& q) { return !q.to_receiver && q.frames[0].type != DBLP_F_ACK; };
  ASSERT_TRUE(p.run());
  EXPECT_EQ(t.m.outcome, DBLP_TX_UNKNOWN);
  EXPECT_EQ(t.m.error, ETIMEDOUT);
  EXPECT_GT(p.tx_rejects[DBLP_REJECT_ACK], 0u);
}

TEST(Damage, AnAnswerWithoutANumberIsNotRead) {
  Pair p;
  p.submit(p.message(1000));
  ASSERT_TRUE(p.run());
  auto& t = p.message(100'000);
  p.submit(t);
  p.change = damage(
      1, [](const Packet& q) { return !q.to_receiver && q.has(DBLP_F_ACK); },
      [](Packet& q) { put32(q, kNumber, 0); });
  ASSERT_TRUE(p.run());
  EXPECT_EQ(p.tx_rejects[DBLP_REJECT_DUP_PACKET], 1u);
  EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
}

// Not damage, but the other way to leave a sender without an answer: the last one is lost
// and then the receiver closes.
TEST(Damage, TheLastWordRepeatsWhatWasLost) {
  for (const bool hole : {false, true}) {
    Pair p;
    p.submit(p.message(1000));
    ASSERT_TRUE(p.run());
    auto& t = p.message(20'000);
    t.m.ppm = 100'000;
    p.submit(t);
    bool judged = false;
    p.drop = [&](const Packet& q) {
      const auto* d = q.find(DBLP_F_DATA);
      if (hole && d && d->u.data.seg == 7) return true;
      judged |= p.delivered.size() == 2;
      return judged && !q.to_receiver;
    };
    while (p.delivered.size() < 2) p.run_for(100'000);
    p.pump();
    ASSERT_FALSE(t.done);
    p.drop = [](const Packet&) { return false; };
    dblp_rx_repeat(&p.rx);
    p.run_for(3 * Pair::kDelay / 2);
    EXPECT_TRUE(t.done);
    EXPECT_EQ(t.m.outcome, DBLP_TX_OK);
    EXPECT_EQ(t.m.missing_bytes, hole ? 1000u : 0u);
  }
}

}  // namespace

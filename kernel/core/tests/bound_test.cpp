// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <vector>

#include "seed.h"

namespace dblp::test {
namespace {

TEST(Allowance, IsExact) {
  EXPECT_EQ(dblp_allowance(0, 1000000), 0u);
  EXPECT_EQ(dblp_allowance(1, 999999), 0u);
  EXPECT_EQ(dblp_allowance(1, 1000000), 1u);
  EXPECT_EQ(dblp_allowance(10000, 199), 1u);
  EXPECT_EQ(dblp_allowance(1000000, U64_MAX), U64_MAX);
  EXPECT_EQ(dblp_allowance(1000000, 1u << 29), 1u << 29);

  Random random = seeded();
  for (int i = 0; i < 100000; i++) {
    const u32 ppm = static_cast<u32>(pick(random, 0, 1000000));
    const u64 bytes = random() >> pick(random, 0, 63);
    const u64 want = static_cast<u64>(static_cast<unsigned __int128>(ppm) * bytes / 1000000);
    ASSERT_EQ(dblp_allowance(ppm, bytes), want) << ppm << " of " << bytes;
  }
}

TEST(Group, SmallMessagesShare) {
  dblp_group g = {.id = 1, .ppm = 100000, .gen = 0, .bytes = 0, .used = 0};
  u32 allow[10];
  // 10 % of messages of one segment: the tenth is the first that may go missing.
  for (u32& a : allow) a = dblp_group_admit(&g, 100000, 1000, 1000);
  for (u32 k = 0; k < 10; k++) EXPECT_EQ(allow[k], 100u) << k;

  // Whoever used nothing leaves its part to those behind it.
  for (u32 k = 0; k < 9; k++) dblp_group_settle(&g, allow[k], 0);
  EXPECT_EQ(g.used, 100u);
  EXPECT_EQ(dblp_group_admit(&g, 100000, 1000, 1000), 1000u);
  EXPECT_EQ(dblp_group_admit(&g, 100000, 1000, 1000), 100u);
}

TEST(Group, OneSegmentMoreThanTheOwnShareAtMost) {
  dblp_group g = {.id = 1, .ppm = 10000, .gen = 0, .bytes = 0, .used = 0};
  for (int i = 0; i < 1000; i++)
    dblp_group_settle(&g, dblp_group_admit(&g, 10000, 100000, 1000), 0);
  EXPECT_EQ(dblp_group_admit(&g, 10000, 100000, 1000), 1000u + 1000u);
}

TEST(Group, NeverMoreThanTheMessage) {
  dblp_group g = {.id = 1, .ppm = 500000, .gen = 0, .bytes = 0, .used = 0};
  for (int i = 0; i < 10; i++) dblp_group_settle(&g, dblp_group_admit(&g, 500000, 100, 1000), 0);
  EXPECT_EQ(dblp_group_admit(&g, 500000, 100, 1000), 100u);
}

TEST(Group, AnotherToleranceStartsAnew) {
  dblp_group g = {.id = 1, .ppm = 10000, .gen = 0, .bytes = 1000000, .used = 10};
  EXPECT_EQ(dblp_group_admit(&g, 20000, 1000, 16), 20u);
  EXPECT_EQ(g.ppm, 20000u);
  EXPECT_EQ(g.bytes, 1000u);
  EXPECT_EQ(g.used, 20u);
}

TEST(Group, BelowTheBoundIsPaidBack) {
  dblp_group g = {.id = 1, .ppm = 100000, .gen = 0, .bytes = 0, .used = 0};
  const u32 allow = dblp_group_admit(&g, 100000, 1000, 512);
  dblp_group_settle(&g, allow, 1000);  // a deadline took all of it
  for (int i = 0; i < 9; i++) EXPECT_EQ(dblp_group_admit(&g, 100000, 1000, 512), 0u) << i;
  EXPECT_EQ(dblp_group_admit(&g, 100000, 1000, 512), 100u);
}

// What is missing never exceeds the tolerance of what was sent, whatever order messages
// finish in, as long as each keeps its own bound.
TEST(Group, RunningSumKeepsTheTolerance) {
  Random random = seeded();
  for (int run = 0; run < 200; run++) {
    const u32 ppm = static_cast<u32>(pick(random, 0, 1000000));
    dblp_group g = {.id = 1, .ppm = ppm, .gen = 0, .bytes = 0, .used = 0};
    struct Open {
      u32 allow;
    };
    std::deque<Open> open;
    u64 sent = 0, missing = 0;
    for (int i = 0; i < 300; i++) {
      const u32 len = static_cast<u32>(pick(random, 1, 20000));
      const u32 allow = dblp_group_admit(&g, ppm, len, 1024);
      ASSERT_LE(allow, len);
      ASSERT_LE(allow, dblp_allowance(ppm, len) + 1024);
      sent += len;
      open.push_back({allow});
      while (open.size() > pick(random, 0, 5)) {
        const size_t at = pick(random, 0, open.size() - 1);
        const u32 lost =
            static_cast<u32>(random() & 1 ? open[at].allow : pick(random, 0, open[at].allow));
        dblp_group_settle(&g, open[at].allow, lost);
        missing += lost;
        open.erase(open.begin() + static_cast<long>(at));
        ASSERT_LE(missing, dblp_allowance(ppm, sent));
      }
    }
  }
}

// The five rules of the protocol, in their order, and NEED.
dblp_judgement by_the_rules(const dblp_judge_in& in) {
  const bool met = in.missing <= in.allow && in.prot_missing == 0;
  if (!in.desc) return DBLP_JUDGE_WAIT;
  if (in.missing == 0) return DBLP_JUDGE_OK;
  if (in.mode == DBLP_WIRE_EAGER && met) return DBLP_JUDGE_OK;
  if (in.mode == DBLP_WIRE_PRESSURE && in.mark && in.reo_over && met) return DBLP_JUDGE_OK;
  if (in.close && in.reo_over) return met ? DBLP_JUDGE_OK : DBLP_JUDGE_BELOW;
  if (in.hold_over) return met ? DBLP_JUDGE_OK : DBLP_JUDGE_BELOW;
  if (in.mark && in.reo_over && !met) return DBLP_JUDGE_NEED;
  return DBLP_JUDGE_WAIT;
}

TEST(Judge, EveryCombination) {
  struct {
    u32 missing, prot, allow;
  } const states[] = {{0, 0, 0}, {0, 0, 10}, {10, 0, 10}, {11, 0, 10}, {10, 1, 10}, {1, 0, 0}};
  for (const auto& s : states) {
    for (unsigned bits = 0; bits < 64; bits++) {
      const dblp_judge_in in = {.missing = s.missing,
                                .prot_missing = s.prot,
                                .allow = s.allow,
                                .mode = static_cast<u8>(bits & 1),
                                .desc = (bits & 2) != 0,
                                .mark = (bits & 4) != 0,
                                .close = (bits & 8) != 0,
                                .reo_over = (bits & 16) != 0,
                                .hold_over = (bits & 32) != 0};
      EXPECT_EQ(dblp_judge(&in), by_the_rules(in)) << s.missing << " missing, bits " << bits;
    }
  }
}

TEST(Judge, Examples) {
  dblp_judge_in in = {.missing = 5,
                      .prot_missing = 0,
                      .allow = 10,
                      .mode = DBLP_WIRE_PRESSURE,
                      .desc = true,
                      .mark = false,
                      .close = false,
                      .reo_over = false,
                      .hold_over = false};
  EXPECT_EQ(dblp_judge(&in), DBLP_JUDGE_WAIT) << "pressure waits for the end of the pass";
  in.mode = DBLP_WIRE_EAGER;
  EXPECT_EQ(dblp_judge(&in), DBLP_JUDGE_OK);
  in.prot_missing = 1;
  EXPECT_EQ(dblp_judge(&in), DBLP_JUDGE_WAIT) << "protected segments are not negotiable";
  in.mark = in.reo_over = true;
  EXPECT_EQ(dblp_judge(&in), DBLP_JUDGE_NEED);
  in.close = true;
  EXPECT_EQ(dblp_judge(&in), DBLP_JUDGE_BELOW);
}

TEST(Repair, WithoutLossExactlyTheNeed) {
  EXPECT_EQ(dblp_repair_bytes(0, 0, 0, 1024), 0u);
  EXPECT_EQ(dblp_repair_bytes(1000, 5000, 0, 1024), 1000u);
  EXPECT_EQ(dblp_repair_bytes(6000, 5000, 0, 1024), 5000u);
}

TEST(Repair, KnownValues) {
  // 100 segments at 10 %: 100/0.9 + 3 sqrt(10)/0.9 = 121.65 segments.
  EXPECT_EQ(dblp_repair_bytes(100000, 1000000, 100000, 1000), 121652u);
  // One segment at 1 %: 1/0.99 + 3 * 0.1/0.99 = 1.3131.
  EXPECT_EQ(dblp_repair_bytes(1000, 1000000, 10000, 1000), 1314u);
}

TEST(Repair, LossIsClamped) {
  EXPECT_EQ(dblp_repair_bytes(100, 1u << 29, 1000000, 512),
            dblp_repair_bytes(100, 1u << 29, 950000, 512));
  EXPECT_EQ(dblp_repair_bytes(100, 1u << 29, U32_MAX, 512),
            dblp_repair_bytes(100, 1u << 29, 950000, 512));
  EXPECT_LT(dblp_repair_bytes(100, 1u << 29, 949000, 512),
            dblp_repair_bytes(100, 1u << 29, 950000, 512));
}

TEST(Repair, AgreesWithTheFormula) {
  Random random = seeded();
  for (int i = 0; i < 100000; i++) {
    const u64 missing = pick(random, 1, 1ULL << pick(random, 1, 29));
    const u64 need = pick(random, 1, missing);
    const u32 loss = static_cast<u32>(pick(random, 0, 950000));
    const u32 seg = static_cast<u32>(pick(random, DBLP_SEG_MIN_SINGLE, DBLP_SEG_MAX));
    const long double p = loss / 1e6L;
    const long double segs = static_cast<long double>(need) / seg;
    const long double ideal = std::min(static_cast<long double>(missing),
                                       seg * (segs / (1 - p) + 3 * sqrtl(segs * p) / (1 - p)));
    const u64 got = dblp_repair_bytes(need, missing, loss, seg);
    // The root is rounded down to whole bytes.
    ASSERT_NEAR(static_cast<double>(got), static_cast<double>(ideal),
                static_cast<double>(3 / (1 - p) + 1));
    ASSERT_GE(got, need);
    ASSERT_LE(got, missing);
  }
}

TEST(Isqrt, RoundsDown) {
  for (u64 v = 0; v < 100000; v++) {
    const u64 r = dblp_isqrt(v);
    ASSERT_LE(r * r, v);
    ASSERT_GT((r + 1) * (r + 1), v);
  }
  Random random = seeded();
  for (int i = 0; i < 100000; i++) {
    const u64 r = pick(random, 1, U32_MAX);
    ASSERT_EQ(dblp_isqrt(r * r), r);
    ASSERT_EQ(dblp_isqrt(r * r - 1), r - 1);
  }
  EXPECT_EQ(dblp_isqrt(U64_MAX), U32_MAX);
}

void expect_each_once(const dblp_perm& p, u32 n, u64 key) {
  std::vector<bool> seen(n);
  for (u32 i = 0; i < n; i++) {
    const u32 at = dblp_perm_at(&p, i);
    ASSERT_LT(at, n) << "n " << n << " key " << key;
    ASSERT_FALSE(seen[at]) << "n " << n << " key " << key;
    seen[at] = true;
  }
}

TEST(Perm, EverySegmentOnce) {
  Random random = seeded();
  for (u32 n = 1; n <= 1200; n++) {
    const u64 key = random();
    dblp_perm p;
    dblp_perm_init(&p, n, key, false);
    expect_each_once(p, n, key);
  }
  for (u32 n : {30030u, 65536u, 510510u, DBLP_NSEGS_MAX - 1, DBLP_NSEGS_MAX}) {
    dblp_perm p;
    dblp_perm_init(&p, n, random(), false);
    expect_each_once(p, n, 0);
  }
}

TEST(Perm, NeighboursArePartedWherePossible) {
  Random random = seeded();
  for (u32 n = 5; n <= 3000; n++) {
    if (n == 6) continue;  // 1 and 5 are the only strides
    dblp_perm p;
    dblp_perm_init(&p, n, random(), false);
    ASSERT_NE(p.a, 1u) << n;
    ASSERT_NE(p.a, n - 1) << n;
  }
}

TEST(Perm, OrderedAndTinyAreIdentity) {
  dblp_perm p;
  dblp_perm_init(&p, 1000, 42, true);
  for (u32 i = 0; i < 1000; i++) ASSERT_EQ(dblp_perm_at(&p, i), i);
  for (u32 n : {1u, 2u}) {
    dblp_perm_init(&p, n, 42, false);
    for (u32 i = 0; i < n; i++) EXPECT_EQ(dblp_perm_at(&p, i), i);
  }
}

TEST(Perm, KeyDecides) {
  dblp_perm p, q;
  dblp_perm_init(&p, 100003, 1, false);
  dblp_perm_init(&q, 100003, 1, false);
  EXPECT_EQ(p.a, q.a);
  EXPECT_EQ(p.b, q.b);
  EXPECT_EQ(dblp_perm_at(&p, 0), p.b);

  // Strides and offsets come from the whole range.
  std::vector<u32> a_quarter(4), b_quarter(4);
  for (u64 key = 0; key < 4000; key++) {
    dblp_perm_init(&p, 100003, key, false);
    a_quarter[p.a * 4ULL / 100003]++;
    b_quarter[p.b * 4ULL / 100003]++;
  }
  for (u32 n : a_quarter) EXPECT_NEAR(n, 1000, 200);
  for (u32 n : b_quarter) EXPECT_NEAR(n, 1000, 200);
}

}  // namespace
}  // namespace dblp::test

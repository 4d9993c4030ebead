// SPDX-License-Identifier: GPL-2.0
//
// The estimators against what a look at all samples says.

#include "dblp/flows_abi.h"
//
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "estimate.h"

namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kWindow = 2000 * kMs;

dblp_sample rtt_sample(std::uint64_t now, std::uint64_t rtt) { return {.now = now, .rtt_ns = rtt}; }

dblp_sample rate_sample(std::uint64_t now, std::uint64_t rate, bool limited = false) {
  dblp_sample s{.now = now, .bytes = rate / 50, .interval_ns = 20 * kMs, .rtt_ns = 20 * kMs};
  s.app_limited = limited ? 1 : 0;
  return s;
}

TEST(Estimate, RtpropIsTheSmallestOfTheWindow) {
  const char* given = std::getenv("DBLP_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoi(given)) : std::random_device{}();
  SCOPED_TRACE("DBLP_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  dblp_flow f{};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
  std::uint64_t now = 12345;
  const auto smallest_since = [&](std::uint64_t since) {
    std::uint64_t v = UINT64_MAX;
    for (const auto& [t, rtt] : all) {
      if (t >= since) v = std::min(v, rtt);
    }
    return v;
  };
  for (int i = 0; i < 3000; ++i) {
    // Gaps from nothing to longer than the window.
    now += random() % 100 == 0 ? random() % (3 * kWindow) : random() % (50 * kMs);
    const std::uint64_t rtt = 1 + random() % (100 * kMs);
    all.emplace_back(now, rtt);
    const auto s = rtt_sample(now, rtt);
    dblp_estimate(&f, &s, kWindow);
    // It must know the last 7/8 and nothing older than 8/8 of the window.
    const std::uint64_t long_ago = now > kWindow ? now - kWindow : 0;
    const std::uint64_t recent = now > kWindow * 7 / 8 ? now - kWindow * 7 / 8 : 0;
    ASSERT_GE(f.rtprop_ns, smallest_since(long_ago)) << i;
    ASSERT_LE(f.rtprop_ns, smallest_since(recent)) << i;
  }
}

TEST(Estimate, BtlbwForgetsAfterTenRoundTrips) {
  dblp_flow f{};
  std::uint64_t now = kMs;
  const auto run = [&](int rounds, std::uint64_t rate) {
    for (int i = 0; i < rounds * 20; ++i, now += kMs) {
      const auto s = rate_sample(now, rate);
      dblp_estimate(&f, &s, kWindow);
    }
  };
  run(20, 5'000'000);
  EXPECT_EQ(f.btlbw, 5'000'000U);
  EXPECT_EQ(f.bdp, 100'000U);
  run(8, 1'000'000);
  EXPECT_EQ(f.btlbw, 5'000'000U);
  run(3, 1'000'000);
  EXPECT_EQ(f.btlbw, 1'000'000U);
  run(1, 2'000'000);
  EXPECT_EQ(f.btlbw, 2'000'000U);
}

TEST(Estimate, LimitedByTheApplicationItOnlyRises) {
  dblp_flow f{};
  auto s = rate_sample(kMs, 5'000'000);
  dblp_estimate(&f, &s, kWindow);
  for (std::uint64_t now = 2 * kMs; now < 5000 * kMs; now += 20 * kMs) {
    s = rate_sample(now, 1'000'000, true);
    dblp_estimate(&f, &s, kWindow);
    ASSERT_EQ(f.btlbw, 5'000'000U);
    ASSERT_EQ(f.rate, 1'000'000U);
  }
  s = rate_sample(5001 * kMs, 6'000'000, true);
  dblp_estimate(&f, &s, kWindow);
  EXPECT_EQ(f.btlbw, 6'000'000U);
}

TEST(Estimate, SilenceIsNoRoundTrip) {
  dblp_flow f{};
  auto s = rate_sample(kMs, 5'000'000);
  dblp_estimate(&f, &s, kWindow);
  s = rate_sample(60'000 * kMs, 1'000'000);
  dblp_estimate(&f, &s, kWindow);
  EXPECT_EQ(f.btlbw, 5'000'000U);
}

TEST(Estimate, NoSampleNoRate) {
  dblp_flow f{};
  const dblp_sample s{.now = kMs, .bytes = 1000};
  dblp_estimate(&f, &s, kWindow);
  EXPECT_EQ(f.btlbw, 0U);
  EXPECT_EQ(f.rtprop_ns, 0U);
  EXPECT_EQ(f.bdp, 0U);
}

TEST(Estimate, SharesAreOfTheLastSeconds) {
  dblp_flow f{};
  std::uint64_t now = 10'000 * kMs;
  for (int i = 0; i < 100; ++i, now += 10 * kMs) {
    const dblp_sample s{.now = now, .acked = 95, .lost = 5, .ce = 19};
    dblp_estimate(&f, &s, kWindow);
  }
  EXPECT_EQ(f.loss_ppm, 50'000U);
  EXPECT_EQ(f.ecn_ppm, 200'000U);
  for (int i = 0; i < 201; ++i, now += 10 * kMs) {
    const dblp_sample s{.now = now, .acked = 100};
    dblp_estimate(&f, &s, kWindow);
  }
  EXPECT_EQ(f.loss_ppm, 0U);
  EXPECT_EQ(f.ecn_ppm, 0U);
}

TEST(Estimate, ChangeIsBeyondTheThreshold) {
  EXPECT_TRUE(dblp_changed(0, 1, 10));
  EXPECT_FALSE(dblp_changed(0, 0, 10));
  EXPECT_FALSE(dblp_changed(100, 110, 10));
  EXPECT_TRUE(dblp_changed(100, 111, 10));
  EXPECT_TRUE(dblp_changed(100, 89, 10));
}

}  // namespace

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// What every codec promises: any subset of segments decodes to what all of them
// decode to, with the lost coordinates zero.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "compress/tests/harness.hpp"

namespace dblp::compress::test {
namespace {

constexpr Key kKey{0x0123456789abcdef, 42};

class EveryCodec : public testing::TestWithParam<CodecOptions> {
 protected:
  [[nodiscard]] bool topk() const { return GetParam().scheme == Scheme::kTopK; }
  [[nodiscard]] bool rotated() const { return GetParam().scheme == Scheme::kHadamard; }
};

std::vector<std::uint64_t> all_but(std::uint32_t segments, std::uint32_t kept) {
  std::vector<std::uint64_t> missing((segments + 63) / 64, ~std::uint64_t{0});
  missing[kept / 64] &= ~(std::uint64_t{1} << (kept % 64));
  return missing;
}

// In the domain of the wire: for the transform, dense coordinates.
struct Wire {
  Harness harness;
  Message message;
};

Wire encode_one(const CodecOptions& options, std::size_t n, std::uint32_t segment_bytes,
                std::uint64_t selected, const std::vector<float>& g) {
  Wire wire{
      Harness(options, {.elements = n, .segment_bytes = segment_bytes, .max_selected = selected}),
      {}};
  wire.message = wire.harness.encode(g, kKey, selected);
  return wire;
}

TEST_P(EveryCodec, AnySubsetIsAllWithHoles) {
  Rng rng(1);
  int checked = 0;
  // Several tensors, so that rows, tails and widths of distances differ.
  for (const std::size_t n : {std::size_t{521}, std::size_t{1536}, std::size_t{3001}}) {
    for (const std::uint32_t segment_bytes : {128U, 256U, 640U}) {
      const std::vector<float> g = gradient(rng, n);
      const std::uint64_t selected = topk() ? n / (rng.chance(0.5) ? 7 : 300) + 1 : 0;
      Wire wire = encode_one(GetParam(), n, segment_bytes, selected, g);
      const std::uint32_t segments = wire.message.result.segments;

      // Which segment carries what, from each of them alone.
      const std::vector<float> everything = wire.harness.decode(wire.message.bytes, kKey);
      std::vector<std::uint32_t> owner(n, segments);
      if (!rotated()) {
        for (std::uint32_t i = 0; i < segments; ++i) {
          const std::vector<float> alone =
              wire.harness.decode(wire.message.bytes, kKey, all_but(segments, i));
          for (std::size_t at = 0; at < n; ++at) {
            if (alone[at] == 0.0F) continue;
            ASSERT_EQ(owner[at], segments) << "coordinate " << at << " is in two segments";
            ASSERT_EQ(alone[at], everything[at]) << at;
            owner[at] = i;
          }
        }
        for (std::size_t at = 0; at < n; ++at)
          ASSERT_EQ(owner[at] == segments, everything[at] == 0.0F) << at;
      }

      for (int round = 0; round < 1120; ++round, ++checked) {
        std::vector<std::uint64_t> missing((segments + 63) / 64);
        const double loss = rng.chance(0.2) ? 0.95 : 0.4;
        std::uint32_t lost = 0;
        for (std::uint32_t i = 0; i < segments; ++i)
          if (rng.chance(loss)) missing[i / 64] |= std::uint64_t{1} << (i % 64), ++lost;
        // A lost segment's bytes are never looked at.
        std::vector<std::byte> bytes = wire.message.bytes;
        for (std::uint32_t i = 0; i < segments; ++i)
          if ((missing[i / 64] >> (i % 64) & 1) != 0)
            for (std::size_t at = std::size_t{i} * segment_bytes;
                 at < std::min(bytes.size(), std::size_t{i + 1} * segment_bytes); ++at)
              bytes[at] = std::byte{0x5a};
        DecodeResult result;
        const std::vector<float> got = wire.harness.decode(bytes, kKey, missing, nullptr, &result);
        ASSERT_EQ(result.missing, lost);
        ASSERT_EQ(result.decoded, segments - lost);
        ASSERT_EQ(result.refused, 0U);
        if (rotated()) {
          // The holes are in the rotated domain: the transform is linear, and
          // what the lost segments would have carried is the difference.
          std::vector<std::uint64_t> other(missing.size());
          for (std::size_t w = 0; w < missing.size(); ++w) other[w] = ~missing[w];
          const std::vector<float> rest = wire.harness.decode(wire.message.bytes, kKey, other);
          double norm = 0;
          double error = 0;
          for (std::size_t i = 0; i < n; ++i) {
            norm += static_cast<double>(everything[i]) * everything[i];
            const double d = static_cast<double>(got[i]) + rest[i] - everything[i];
            error += d * d;
          }
          ASSERT_LE(error, norm * 1e-11) << seed_note();
          continue;
        }
        for (std::size_t at = 0; at < n; ++at) {
          const std::uint32_t i = owner[at];
          const bool kept = i < segments && (missing[i / 64] >> (i % 64) & 1) == 0;
          if (got[at] != (kept ? everything[at] : 0.0F)) FAIL() << at << " " << seed_note();
        }
      }
    }
  }
  EXPECT_GE(checked, 10000);
}

TEST_P(EveryCodec, AllInstructionSetsGiveTheSameBytes) {
  Rng rng(2);
  for (const std::size_t n : {1U, 15U, 16U, 1000U, 5003U, 70001U}) {
    const std::vector<float> g = gradient(rng, n);
    const std::uint64_t selected = topk() ? (n + 9) / 10 : 0;
    const Shape shape{.elements = n, .segment_bytes = 1024, .max_selected = selected};
    Harness scalar(scalar_kernels(), GetParam(), shape);
    std::vector<float> residual = gradient(rng, n);
    std::vector<float> rest = residual;
    const Message want = scalar.encode(g, kKey, selected, &rest);
    const std::vector<float> output = scalar.decode(want.bytes, kKey);
    for (const Kernels* kernels : {avx2_kernels(), avx512_kernels()}) {
      if (kernels == nullptr || !supports(*kernels)) continue;
      Harness other(*kernels, GetParam(), shape);
      std::vector<float> other_rest = residual;
      const Message got = other.encode(g, kKey, selected, &other_rest);
      ASSERT_EQ(got.bytes, want.bytes) << kernels->name << " n " << n << " " << seed_note();
      ASSERT_TRUE(same_bits(other_rest, rest)) << kernels->name << " n " << n;
      ASSERT_TRUE(same_bits(other.decode(want.bytes, kKey), output)) << kernels->name;
    }
  }
}

TEST_P(EveryCodec, ResidualIsWhatWasNotSent) {
  Rng rng(3);
  const std::size_t n = 5000;
  const std::uint64_t selected = topk() ? 400 : 0;
  Harness harness(GetParam(), {.elements = n, .segment_bytes = 512, .max_selected = selected});
  std::vector<float> residual = gradient(rng, n);
  for (int round = 0; round < 3; ++round) {
    const std::vector<float> g = gradient(rng, n);
    std::vector<float> u(n);
    for (std::size_t i = 0; i < n; ++i) u[i] = g[i] + residual[i];
    const Message message =
        harness.encode(g, {7, static_cast<std::uint64_t>(round)}, selected, &residual);
    const std::vector<float> sent =
        harness.decode(message.bytes, {7, static_cast<std::uint64_t>(round)});
    double norm = 0;
    double error = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!rotated()) {
        ASSERT_EQ(residual[i], u[i] - sent[i]) << i;
      }
      const double d = static_cast<double>(residual[i]) + sent[i] - u[i];
      error += d * d;
      norm += static_cast<double>(u[i]) * u[i];
    }
    ASSERT_LE(error, norm * 1e-12);
  }
}

TEST_P(EveryCodec, AccumulateAdds) {
  Rng rng(4);
  const std::size_t n = 3001;
  const std::uint64_t selected = topk() ? 300 : 0;
  Harness harness(GetParam(), {.elements = n, .segment_bytes = 256, .max_selected = selected});
  const Message message = harness.encode(gradient(rng, n), kKey, selected);
  const std::vector<float> decoded = harness.decode(message.bytes, kKey);
  const std::vector<float> before = gradient(rng, n);
  std::vector<float> sum = before;
  ASSERT_EQ(harness.decode_into(sum, message.bytes, kKey, {}, true), Status::kOk);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(sum[i], before[i] + decoded[i]) << i;
}

TEST_P(EveryCodec, NanIsNeverHidden) {
  Rng rng(5);
  const std::size_t n = 2000;
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    std::vector<float> g = gradient(rng, n);
    g[777] = bad;
    const std::uint64_t selected = topk() ? 100 : 0;
    Harness harness(GetParam(), {.elements = n, .segment_bytes = 256, .max_selected = selected});
    const Message message = harness.encode(g, kKey, selected);
    EXPECT_FALSE(std::isfinite(harness.decode(message.bytes, kKey)[777])) << bad;
  }
}

TEST_P(EveryCodec, SmallAndEmptyTensors) {
  for (const std::size_t n : {1U, 2U, 15U, 17U, 31U, 1024U, 1025U}) {
    const std::vector<float> zero(n, 0.0F);
    const std::uint64_t selected = topk() ? n : 0;
    Harness harness(GetParam(), {.elements = n, .segment_bytes = 128, .max_selected = selected});
    const Message message = harness.encode(zero, kKey, selected);
    EXPECT_LE(message.bytes.size(), harness.codec().max_message_bytes());
    EXPECT_EQ(harness.decode(message.bytes, kKey), zero);
    if (topk()) {
      EXPECT_EQ(message.result.selected, 0U);
    }
  }
}

TEST_P(EveryCodec, PrunedElementsStayBehind) {
  Rng rng(6);
  const std::size_t n = 4000;
  const std::uint64_t selected = topk() ? 1000 : 0;
  CodecOptions options = GetParam();
  options.prune = true;
  Harness harness(options, {.elements = n, .segment_bytes = 512, .max_selected = selected});
  const std::vector<float> g = gradient(rng, n);
  const std::vector<float> weights = gradient(rng, n);
  std::vector<float> residual(n, 0.0F);
  std::vector<std::byte> memory(harness.codec().encode_workspace());
  std::vector<std::byte> message(harness.codec().max_message_bytes());
  EncodeResult result;
  ASSERT_EQ(harness.codec().encode({.input = g.data(),
                                    .residual = residual.data(),
                                    .weights = weights.data(),
                                    .prune_below = 0.05F,
                                    .selected = selected,
                                    .key = kKey,
                                    .message = message,
                                    .workspace = memory,
                                    .result = &result}),
            Status::kOk);
  message.resize(result.message_bytes);
  const std::vector<float> sent = harness.decode(message, kKey);
  for (std::size_t i = 0; i < n; ++i) {
    if (rotated()) {
      ASSERT_NEAR(sent[i] + residual[i], g[i], 1e-5 * 40) << i;
    } else {
      if (std::fabs(weights[i]) < 0.05F) {
        ASSERT_EQ(sent[i], 0.0F) << i;
      }
      ASSERT_EQ(residual[i], g[i] - sent[i]) << i;
    }
  }
}

TEST_P(EveryCodec, NewRoundsRoundDifferently) {
  Rng rng(7);
  const std::size_t n = 2048;
  const std::uint64_t selected = topk() ? 500 : 0;
  Harness harness(GetParam(), {.elements = n, .segment_bytes = 512, .max_selected = selected});
  const std::vector<float> g = gradient(rng, n);
  const Message first = harness.encode(g, {1, 1}, selected);
  EXPECT_EQ(harness.encode(g, {1, 1}, selected).bytes, first.bytes);
  const bool random = !topk() || is_scaled(GetParam().value);
  EXPECT_EQ(harness.encode(g, {1, 2}, selected).bytes != first.bytes, random);
  EXPECT_EQ(harness.encode(g, {2, 1}, selected).bytes != first.bytes, random);
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec, testing::ValuesIn(all_codecs()),
                         [](const auto& info) { return name_of(info.param); });

// ---- dense -----------------------------------------------------------------

TEST(Dense, LostSegmentsThinEveryStretch) {
  const std::size_t n = 200000;
  Harness harness({.scheme = Scheme::kDense, .value = Value::kI8},
                  {.elements = n, .segment_bytes = 1024});
  const std::vector<float> ones(n, 1.0F);
  const Message message = harness.encode(ones, kKey);
  const std::uint32_t segments = message.result.segments;
  for (std::uint32_t lost = 0; lost < segments; lost += 17) {
    std::vector<std::uint64_t> missing((segments + 63) / 64);
    missing[lost / 64] |= std::uint64_t{1} << (lost % 64);
    const std::vector<float> got = harness.decode(message.bytes, kKey, missing);
    // A row of `segments` groups loses one: two in any stretch of that length.
    for (std::size_t begin = 0; begin + segments * 16 <= n; begin += 1600) {
      const auto holes =
          std::count(got.begin() + static_cast<std::ptrdiff_t>(begin),
                     got.begin() + static_cast<std::ptrdiff_t>(begin + segments * 16), 0.0F);
      ASSERT_LE(holes, 48);
    }
  }
}

TEST(Dense, ABurstTakesNoNeighbours) {
  const std::size_t n = 200000;
  Harness harness({.scheme = Scheme::kDense, .value = Value::kI8},
                  {.elements = n, .segment_bytes = 1024});
  const Message message = harness.encode(std::vector<float>(n, 1.0F), kKey);
  std::vector<std::uint64_t> missing(4);
  missing[1] = 0xfffff;  // 20 segments in a row of 199
  const std::vector<float> got = harness.decode(message.bytes, kKey, missing);
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const float x : got) longest = std::max(longest, run = x == 0.0F ? run + 1 : 0);
  EXPECT_LE(longest, 64U);
}

TEST(Dense, StochasticRoundingIsUnbiased) {
  const std::size_t n = 4096;
  Harness harness({.scheme = Scheme::kDense, .value = Value::kI4},
                  {.elements = n, .segment_bytes = 1024});
  std::vector<float> g(n);
  for (std::size_t i = 0; i < n; ++i) g[i] = std::sin(static_cast<float>(i)) * 0.9F;
  std::vector<double> mean(n);
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    const Key key{9, static_cast<std::uint64_t>(round)};
    const std::vector<float> got = harness.decode(harness.encode(g, key).bytes, key);
    for (std::size_t i = 0; i < n; ++i) mean[i] += got[i] / kRounds;
  }
  double bias = 0;
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    bias += (mean[i] - g[i]) / static_cast<double>(n);
    worst = std::max(worst, std::fabs(mean[i] - g[i]));
  }
  // A level is 0.9/7; its deviation is at most half a level a round.
  EXPECT_LT(std::fabs(bias), 0.9 / 7 / 2 / std::sqrt(double{kRounds} * n) * 5);
  EXPECT_LT(worst, 0.9 / 7 / 2 / std::sqrt(double{kRounds}) * 6);
}

TEST(Dense, FiniteValuesStayFinite) {
  for (const Value value : {Value::kF16, Value::kBF16}) {
    Harness harness({.scheme = Scheme::kDense, .value = value},
                    {.elements = 4, .segment_bytes = 128});
    const std::vector<float> got =
        harness.decode(harness.encode({3e38F, -3.402823e38F, 65519.0F, 1e-40F}, kKey).bytes, kKey);
    for (const float x : got) EXPECT_TRUE(std::isfinite(x));
  }
}

// ---- TopK ------------------------------------------------------------------

TEST(TopK, BytesOnTheWire) {
  Rng rng(8);
  const std::size_t n = 200000;
  std::vector<float> g(n);
  for (float& x : g) x = rng.normal();
  for (const std::uint32_t segment_bytes : {512U, 1024U, 1400U, 8960U}) {
    Harness harness({.scheme = Scheme::kTopK, .value = Value::kF16},
                    {.elements = n, .segment_bytes = segment_bytes, .max_selected = n / 10});
    const Message message = harness.encode(g, kKey, n / 10);
    ASSERT_EQ(message.result.selected, n / 10);
    EXPECT_LE(static_cast<double>(message.bytes.size()) / static_cast<double>(n / 10), 3.2)
        << segment_bytes;
  }
}

TEST(TopK, ClusteredElementsStayWithinTheBound) {
  const std::size_t n = 1 << 20;
  std::vector<float> g(n, 0.0F);
  // All at the two ends: the steps between cost most.
  const std::size_t k = n / 100;
  for (std::size_t i = 0; i < k; ++i) g[i % 2 == 0 ? i : n - i] = 1.0F + static_cast<float>(i);
  for (const Value value : {Value::kF32, Value::kF16, Value::kI8, Value::kI4}) {
    Harness harness({.scheme = Scheme::kTopK, .value = value},
                    {.elements = n, .segment_bytes = 1024, .max_selected = k});
    for (const std::size_t selected : {k, k / 2, k / 5, std::size_t{10}, std::size_t{2}}) {
      const Message message = harness.encode(g, kKey, selected);
      EXPECT_EQ(message.result.selected, selected);
      const std::vector<float> got = harness.decode(message.bytes, kKey);
      if (value == Value::kF32) {
        EXPECT_EQ(n - static_cast<std::size_t>(std::count(got.begin(), got.end(), 0.0F)), selected);
      }
    }
  }
}

TEST(TopK, LowestIndicesWinTies) {
  const std::size_t n = 1000;
  std::vector<float> g(n, 1.0F);
  g[500] = -2.0F;
  Harness harness({.scheme = Scheme::kTopK, .value = Value::kF32},
                  {.elements = n, .segment_bytes = 128, .max_selected = n});
  const std::vector<float> got = harness.decode(harness.encode(g, kKey, 10).bytes, kKey);
  for (std::size_t i = 0; i < n; ++i)
    EXPECT_EQ(got[i], i < 9 ? 1.0F : i == 500 ? -2.0F : 0.0F) << i;
}

}  // namespace
}  // namespace dblp::compress::test

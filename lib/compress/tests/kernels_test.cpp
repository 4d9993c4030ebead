// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// Each instruction set's loops against the scalar ones, bit for bit, and those
// against first principles.

#include "compress/cpu/kernels.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "compress/layout.hpp"
#include "compress/tests/random.hpp"

namespace dblp::compress::test {
namespace {

std::vector<const Kernels*> vector_kernels() {
  std::vector<const Kernels*> all;
  for (const Kernels* kernels : {avx2_kernels(), avx512_kernels()})
    if (kernels != nullptr && supports(*kernels)) all.push_back(kernels);
  return all;
}

// Every exponent and sign, edges of rounding, NaNs.
std::vector<float> awkward_floats(Rng& rng, std::size_t n) {
  std::vector<float> x(n);
  for (float& v : x) {
    u32 bits = static_cast<u32>(rng());
    if (rng.chance(0.3)) bits &= 0xffffe000U;                   // representable in fp16
    if (rng.chance(0.3)) bits = (bits & 0xffffe000U) | 0x1000;  // ties
    if (rng.chance(0.5)) bits = (bits & 0x8fffffffU) | 0x30000000U;
    v = float_of(bits);
  }
  return x;
}

TEST(Philox, KnownAnswers) {
  // Of the generator's authors: all zero, all one, digits of pi.
  const Block zero = philox(Block{{0, 0, 0, 0}}, 0, 0);
  EXPECT_EQ(zero.w[0], 0x6627e8d5U);
  EXPECT_EQ(zero.w[1], 0xe169c58dU);
  EXPECT_EQ(zero.w[2], 0xbc57ac4cU);
  EXPECT_EQ(zero.w[3], 0x9b00dbd8U);
  const u32 f = 0xffffffff;
  const Block ones = philox(Block{{f, f, f, f}}, f, f);
  EXPECT_EQ(ones.w[0], 0x408f276dU);
  EXPECT_EQ(ones.w[1], 0x41c83b0eU);
  EXPECT_EQ(ones.w[2], 0xa20bc7c6U);
  EXPECT_EQ(ones.w[3], 0x6d5451fdU);
  const Block pi =
      philox(Block{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0);
  EXPECT_EQ(pi.w[0], 0xd16cfe09U);
  EXPECT_EQ(pi.w[1], 0x94fdccebU);
  EXPECT_EQ(pi.w[2], 0x5001e420U);
  EXPECT_EQ(pi.w[3], 0x24126ea1U);
}

TEST(Half, AllValuesThereAndBack) {
  for (u32 h = 0; h < 65536; ++h) {
    const u16 half = static_cast<u16>(h);
    const bool nan = (h & 0x7fff) > 0x7c00;
    EXPECT_EQ(f16_of(float_of_f16(half)), nan ? 0x7e00 : h);
    const bool bnan = (h & 0x7fff) > 0x7f80;
    EXPECT_EQ(bf16_of(float_of_bf16(half)), bnan ? 0x7fc0 : h);
  }
}

TEST(Half, RoundsToNearestEven) {
  Rng rng(20);
  for (int i = 0; i < 200000; ++i) {
    const float x = float_of(static_cast<u32>(rng()) & 0xf7ffffff);
    if (!(std::fabs(x) <= 65504.0F)) continue;
    const u16 h = f16_of(x);
    // Neither neighbour is nearer, and of two equally near ones it is the even.
    const double d = std::fabs(static_cast<double>(float_of_f16(h)) - x);
    for (const int step : {-1, 1}) {
      const u16 other = static_cast<u16>(h + step);
      if ((other & 0x7fff) >= 0x7c00 || (other & 0x8000) != (h & 0x8000)) continue;
      const double e = std::fabs(static_cast<double>(float_of_f16(other)) - x);
      ASSERT_TRUE(d < e || (d == e && h % 2 == 0)) << x;
    }
  }
}

TEST(Kernels, ConversionsMatchScalar) {
  const Kernels& scalar = scalar_kernels();
  for (const Kernels* kernels : vector_kernels()) {
    Rng rng(21);
    for (const std::size_t n : {1U, 7U, 8U, 15U, 16U, 17U, 33U, 100000U}) {
      const std::vector<float> x = awkward_floats(rng, n);
      std::vector<u8> a(2 * n);
      std::vector<u8> b(2 * n);
      scalar.to_f16(x.data(), n, a.data());
      kernels->to_f16(x.data(), n, b.data());
      ASSERT_EQ(a, b) << kernels->name << n;
      scalar.to_bf16(x.data(), n, a.data());
      kernels->to_bf16(x.data(), n, b.data());
      ASSERT_EQ(a, b) << kernels->name << n;
      for (u8& byte : a) byte = static_cast<u8>(rng());
      std::vector<float> c(n);
      std::vector<float> d(n);
      scalar.from_f16(a.data(), n, c.data());
      kernels->from_f16(a.data(), n, d.data());
      ASSERT_EQ(std::memcmp(c.data(), d.data(), n * 4), 0) << kernels->name;
      scalar.from_bf16(a.data(), n, c.data());
      kernels->from_bf16(a.data(), n, d.data());
      ASSERT_EQ(std::memcmp(c.data(), d.data(), n * 4), 0) << kernels->name;
      ASSERT_EQ(scalar.max_key(x.data(), n), kernels->max_key(x.data(), n));
    }
  }
}

TEST(Kernels, QuantiseMatchesScalar) {
  const Kernels& scalar = scalar_kernels();
  for (const Kernels* kernels : vector_kernels()) {
    Rng rng(22);
    for (int round = 0; round < 300; ++round) {
      const std::size_t n = 1 + rng.below(300);
      std::vector<float> x(n);
      for (float& v : x) v = rng.normal();
      if (rng.chance(0.2)) x[rng.below(n)] = std::nanf("");
      if (rng.chance(0.2)) x[rng.below(n)] *= 1e30F;
      const Random random = make_random(rng(), rng());
      const i32 levels = rng.chance(0.5) ? 127 : 7;
      const Scale scale = make_scale(scalar.max_key(x.data(), n), static_cast<float>(levels));
      const u32 block = static_cast<u32>(rng());
      const float fine = fine_rounding(random, static_cast<u32>(rng()));
      std::vector<i8> a(n);
      std::vector<i8> b(n);
      scalar.quantise(x.data(), n, scale.inverse, levels, random, block, fine, Ahead{}, a.data());
      kernels->quantise(x.data(), n, scale.inverse, levels, random, block, fine, Ahead{}, b.data());
      ASSERT_EQ(a, b) << kernels->name << " " << seed_note();
      std::vector<float> c(n);
      std::vector<float> d(n);
      scalar.dequantise(a.data(), n, scale.scale, c.data());
      kernels->dequantise(a.data(), n, scale.scale, d.data());
      if (scale.scale == scale.scale) {
        ASSERT_EQ(std::memcmp(c.data(), d.data(), n * 4), 0);
      }
      std::vector<u8> p((n + 1) / 2);
      std::vector<u8> q((n + 1) / 2);
      for (i8& v : a) v = static_cast<i8>(nibble(static_cast<u8>(v), 0));
      scalar.pack_i4(a.data(), n, p.data());
      kernels->pack_i4(a.data(), n, q.data());
      ASSERT_EQ(p, q);
      kernels->unpack_i4(p.data(), n, b.data());
      ASSERT_EQ(a, b);
    }
  }
}

TEST(Kernels, HadamardMatchesScalarAndIsItsOwnInverse) {
  Rng rng(23);
  std::vector<float> x(kTransform);
  for (float& v : x) v = rng.normal();
  std::vector<float> once = x;
  scalar_kernels().hadamard(once.data());
  for (const Kernels* kernels : vector_kernels()) {
    std::vector<float> other = x;
    kernels->hadamard(other.data());
    EXPECT_EQ(std::memcmp(once.data(), other.data(), kTransform * 4), 0) << kernels->name;
  }
  double before = 0;
  double after = 0;
  for (std::size_t i = 0; i < kTransform; ++i) {
    before += static_cast<double>(x[i]) * x[i];
    after += static_cast<double>(once[i]) * once[i];
  }
  EXPECT_NEAR(after / before, 1.0, 1e-6);
  scalar_kernels().hadamard(once.data());
  for (std::size_t i = 0; i < kTransform; ++i) EXPECT_NEAR(once[i], x[i], 1e-5);
  // Row 3 of the matrix, from its definition.
  std::vector<float> unit(kTransform, 0.0F);
  unit[3] = 32.0F;
  scalar_kernels().hadamard(unit.data());
  for (u32 i = 0; i < kTransform; ++i)
    EXPECT_EQ(unit[i], __builtin_popcount(i & 3) % 2 == 0 ? 1.0F : -1.0F);
}

}  // namespace
}  // namespace dblp::compress::test

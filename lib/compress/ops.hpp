// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Arithmetic on one value, shared by the scalar code, the tails of the vector
// code and the CUDA kernels: their agreement bit for bit starts here. Nothing
// depends on contraction (fmaf where one is meant), on flushing of denormals,
// or on a sum's order.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define DBLP_HD static __host__ __device__ __forceinline__
#else
// Internal linkage: this is compiled for several instruction sets, and the
// linker must not share one copy among them.
#define DBLP_HD static inline __attribute__((always_inline))
#endif

namespace dblp::compress {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i8 = std::int8_t;
using i32 = std::int32_t;

#if defined(__CUDA_ARCH__)
DBLP_HD u32 bits_of(float x) { return __float_as_uint(x); }
DBLP_HD float float_of(u32 bits) { return __uint_as_float(bits); }
DBLP_HD float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DBLP_HD float rounded_down(float x) { return floorf(x); }
#else
DBLP_HD u32 bits_of(float x) {
  u32 bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
DBLP_HD float float_of(u32 bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
DBLP_HD float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DBLP_HD float rounded_down(float x) { return __builtin_floorf(x); }
#endif

constexpr u32 kInfBits = 0x7f800000;
constexpr u32 kNanBits = 0x7fc00000;  // the only NaN that is written

// Orders magnitudes; all NaNs are equal and larger than infinity.
constexpr u32 kNanKey = kInfBits + 1;
DBLP_HD u32 magnitude_key(float x) {
  const u32 key = bits_of(x) & 0x7fffffff;
  return key < kNanKey ? key : kNanKey;
}

// Philox 4x32, 10 rounds: out is a function of counter and key.
struct Block {
  u32 w[4];
};

DBLP_HD Block philox(Block c, u32 k0, u32 k1) {
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = u64{0xD2511F53} * c.w[0];
    const u64 p1 = u64{0xCD9E8D57} * c.w[2];
    c = Block{{static_cast<u32>(p1 >> 32) ^ c.w[1] ^ k0, static_cast<u32>(p1),
               static_cast<u32>(p0 >> 32) ^ c.w[3] ^ k1, static_cast<u32>(p0)}};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// What random numbers are for: the second word of the counter.
constexpr u32 kForRounding = 0;
constexpr u32 kForStripe = 1;
constexpr u32 kForSigns = 2;
constexpr u32 kForStride = 3;
constexpr u32 kForFineRounding = 4;

struct Random {
  u32 key[2];
  u32 round[2];
};

DBLP_HD Random make_random(u64 seed, u64 round) {
  return Random{{static_cast<u32>(seed), static_cast<u32>(seed >> 32)},
                {static_cast<u32>(round), static_cast<u32>(round >> 32)}};
}

DBLP_HD Block random_block(const Random& random, u32 purpose, u32 block) {
  return philox(Block{{block, purpose, random.round[0], random.round[1]}}, random.key[0],
                random.key[1]);
}

// Stochastic rounding adds a number from (0, 1) and rounds down. Its upper 8
// bits are each element's own: 16 elements share a block. The lower 15 bits are
// the segment's. So the mean over rounds is exact for every element, at half a
// block's cost for each.
constexpr u32 kRoundingLanes = 16;
DBLP_HD u32 rounding_bits(const Block& block, u32 element) {
  return block.w[element % 16 / 4] >> (element % 4 * 8) & 0xff;
}

DBLP_HD float fine_rounding(const Random& random, u32 segment) {
  const Block block = random_block(random, kForFineRounding, segment / 4);
  return fused(static_cast<float>(block.w[segment % 4] >> 17), 0x1p-23F, 0x1p-24F);
}

DBLP_HD float rounding_offset(u32 bits8, float fine) {
  return fused(static_cast<float>(bits8), 0x1p-8F, fine);
}

// Below this the largest magnitude has no usable reciprocal; all is zero then.
constexpr u32 kMinScaleBits = 0x0d800000;  // 2^-100

struct Scale {
  float scale;    // value of one level; NaN if the segment has a NaN or infinity
  float inverse;  // levels in one
};

// max_key is the largest magnitude_key() of the segment.
DBLP_HD Scale make_scale(u32 max_key, float levels) {
  if (max_key >= kInfBits) return {float_of(kNanBits), 0.0F};
  if (max_key < kMinScaleBits) return {0.0F, 0.0F};
  const float max = float_of(max_key);
  return {max / levels, levels / max};
}

DBLP_HD i32 quantise(float x, float inverse, float offset, i32 levels) {
  // NaN and infinity have inverse 0 and a NaN scale: the level does not matter,
  // but must be the same everywhere.
  if (inverse == 0.0F) return 0;
  const float level = rounded_down(fused(x, inverse, offset));
  const i32 q = static_cast<i32>(level);
  return q > levels ? levels : q < -levels ? -levels : q;
}

DBLP_HD u16 f16_of(float x) {
  const u32 bits = bits_of(x);
  const u32 sign = bits >> 16 & 0x8000;
  const u32 a = bits & 0x7fffffff;
  if (a > kInfBits) return 0x7e00;
  if (a == kInfBits) return static_cast<u16>(sign | 0x7c00);
  if (a > 0x477fe000) return static_cast<u16>(sign | 0x7bff);
  if (a <= 0x33000000) return static_cast<u16>(sign);
  if (a < 0x38800000) {
    const u32 mantissa = (a & 0x7fffff) | 0x800000;
    const u32 shift = 126 - (a >> 23);
    u32 q = mantissa >> shift;
    const u32 rest = mantissa & ((u32{1} << shift) - 1);
    const u32 half = u32{1} << (shift - 1);
    q += rest > half || (rest == half && (q & 1) != 0) ? 1 : 0;
    return static_cast<u16>(sign | q);
  }
  const u32 q = a - 0x38000000;
  return static_cast<u16>(sign | (q + 0xfff + (q >> 13 & 1)) >> 13);
}

DBLP_HD float float_of_f16(u16 half) {
  const u32 sign = u32{half & 0x8000U} << 16;
  const u32 a = half & 0x7fff;
  if (a > 0x7c00) return float_of(sign | a << 13 | kNanBits);
  if (a == 0x7c00) return float_of(sign | kInfBits);
  if (a >= 0x400) return float_of(sign | ((a << 13) + 0x38000000));
  const float magnitude = static_cast<float>(a) * 0x1p-24F;
  return float_of(sign | bits_of(magnitude));
}

DBLP_HD u16 bf16_of(float x) {
  const u32 bits = bits_of(x);
  const u32 a = bits & 0x7fffffff;
  if (a > kInfBits) return kNanBits >> 16;
  if (a > 0x7f7f0000 && a < kInfBits) return static_cast<u16>((bits >> 16 & 0x8000) | 0x7f7f);
  return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

DBLP_HD float float_of_bf16(u16 b) { return float_of(u32{b} << 16); }

DBLP_HD u32 f32_wire(float x) {
  const u32 bits = bits_of(x);
  return (bits & 0x7fffffff) > kInfBits ? kNanBits : bits;
}

DBLP_HD i32 nibble(u32 byte, u32 which) {
  const u32 n = byte >> (which * 4) & 0xf;
  return static_cast<i32>(n ^ 8) - 8;
}

}  // namespace dblp::compress

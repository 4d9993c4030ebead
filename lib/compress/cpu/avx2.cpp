// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Compiled for AVX2, FMA, F16C and BMI; runs only where choose_kernels() has
// found them.

#include "compress/cpu/kernels.hpp"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

#include "compress/layout.hpp"

namespace dblp::compress {
namespace {

#include "compress/cpu/generic.hpp"

inline __m256i load(const u8* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

void gather_256(const float* x, const float* y, const u32* groups, u32 rows, std::size_t pitch,
                float* out, u32* keys) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i max[kLanes];
  for (__m256i& lane : max) lane = _mm256_setzero_si256();
  for (u32 row = 0; row < rows; ++row) {
    for (u32 i = 0; i < kLanes; ++i) {
      const std::size_t from = std::size_t{groups[row * kLanes + i]} * kGroup;
      __m256 low = _mm256_loadu_ps(x + from);
      __m256 high = _mm256_loadu_ps(x + from + 8);
      if (y != nullptr) {
        low = _mm256_add_ps(low, _mm256_loadu_ps(y + from));
        high = _mm256_add_ps(high, _mm256_loadu_ps(y + from + 8));
      }
      float* const to = out + i * pitch + std::size_t{row} * kGroup;
      _mm256_storeu_ps(to, low);
      _mm256_storeu_ps(to + 8, high);
      max[i] = _mm256_max_epi32(max[i], _mm256_and_si256(_mm256_castps_si256(low), magnitude));
      max[i] = _mm256_max_epi32(max[i], _mm256_and_si256(_mm256_castps_si256(high), magnitude));
    }
  }
  for (u32 i = 0; i < kLanes; ++i) {
    u32 lanes[8];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), max[i]);
    u32 key = 0;
    for (const u32 lane : lanes) key = lane > key ? lane : key;
    keys[i] = key < kNanKey ? key : kNanKey;
  }
}

// The bytes of 4 blocks in order, for 64 elements; see avx512.cpp.
struct Numbers {
  __m256i low;   // 0 to 31
  __m256i high;  // 32 to 63
};

Numbers numbers_256(const Random& random, u32 block) {
  const __m256i m0 = _mm256_set1_epi64x(0xD2511F53);
  const __m256i m1 = _mm256_set1_epi64x(0xCD9E8D57);
  __m256i c0 = _mm256_add_epi64(_mm256_set1_epi64x(block), _mm256_set_epi64x(3, 1, 2, 0));
  __m256i c1 = _mm256_set1_epi64x(kForRounding);
  __m256i c2 = _mm256_set1_epi64x(random.round[0]);
  __m256i c3 = _mm256_set1_epi64x(random.round[1]);
  u32 k0 = random.key[0];
  u32 k1 = random.key[1];
  for (int round = 0; round < 10; ++round) {
    const __m256i p0 = _mm256_mul_epu32(c0, m0);
    const __m256i p1 = _mm256_mul_epu32(c2, m1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1), _mm256_set1_epi64x(k0));
    c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3), _mm256_set1_epi64x(k1));
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const __m256i first = _mm256_blend_epi32(c0, _mm256_slli_epi64(c1, 32), 0xAA);
  const __m256i second = _mm256_blend_epi32(c2, _mm256_slli_epi64(c3, 32), 0xAA);
  return {_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second)};
}

struct Levels {
  __m256 inverse;
  __m256 fine;
  __m256i most;   // in bytes
  __m256i least;  // in bytes
};

inline __m256i levels_8(const float* x, __m128i bits, const Levels& by) {
  const __m256 offset = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bits)),
                                        _mm256_set1_ps(0x1p-8F), by.fine);
  return _mm256_cvttps_epi32(
      _mm256_floor_ps(_mm256_fmadd_ps(_mm256_loadu_ps(x), by.inverse, offset)));
}

inline __m256i levels_32(const float* x, __m256i bits, const Levels& by) {
  const __m128i low = _mm256_castsi256_si128(bits);
  const __m128i high = _mm256_extracti128_si256(bits, 1);
  const __m256i ab =
      _mm256_packs_epi32(levels_8(x, low, by), levels_8(x + 8, _mm_srli_si128(low, 8), by));
  const __m256i cd =
      _mm256_packs_epi32(levels_8(x + 16, high, by), levels_8(x + 24, _mm_srli_si128(high, 8), by));
  // Packing works in halves: back into order.
  const __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
  const __m256i q = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
  return _mm256_max_epi8(_mm256_min_epi8(q, by.most), by.least);
}

void quantise_256(const float* x, std::size_t n, float inverse, i32 levels, const Random& random,
                  u32 block, float fine, const Ahead& ahead, i8* q) {
  if (inverse == 0.0F) {
    fetch(ahead, 0, ahead.count);
    for (std::size_t i = 0; i < n; ++i) q[i] = 0;
    return;
  }
  const Levels by{_mm256_set1_ps(inverse), _mm256_set1_ps(fine),
                  _mm256_set1_epi8(static_cast<char>(levels)),
                  _mm256_set1_epi8(static_cast<char>(-levels))};
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64, block += 4) {
    fetch(ahead, i / kGroup, i / kGroup + 4);
    const Numbers numbers = numbers_256(random, block);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i), levels_32(x + i, numbers.low, by));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i + 32),
                        levels_32(x + i + 32, numbers.high, by));
  }
  fetch(ahead, i / kGroup, ahead.count);
  quantise_all(x + i, n - i, inverse, levels, random, block, fine, Ahead{}, q + i);
}

void to_f16_256(const float* x, std::size_t n, u8* out) {
  const __m256 sign_bit = _mm256_set1_ps(-0.0F);
  const __m256 most = _mm256_set1_ps(65504.0F);
  const __m256 infinity = _mm256_set1_ps(__builtin_inff());
  const __m256 nan = _mm256_set1_ps(__builtin_nanf(""));
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 v = _mm256_loadu_ps(x + i);
    const __m256 sign = _mm256_and_ps(v, sign_bit);
    const __m256 a = _mm256_andnot_ps(sign_bit, v);
    const __m256 large =
        _mm256_and_ps(_mm256_cmp_ps(a, most, _CMP_GT_OQ), _mm256_cmp_ps(a, infinity, _CMP_LT_OQ));
    const __m256 unordered = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    v = _mm256_blendv_ps(v, _mm256_or_ps(most, sign), large);
    v = _mm256_blendv_ps(v, nan, unordered);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * i),
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  to_f16(x + i, n - i, out + 2 * i);
}

void from_f16_256(const u8* in, std::size_t n, float* out) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(
        out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + 2 * i))));
  from_f16(in + 2 * i, n - i, out + i);
}

template <bool kAdd>
std::size_t candidates_256(float* sum, const float* y, const float* x, std::size_t n, u32 threshold,
                           u32* index, u32* key, std::size_t room) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  // Keys are below 2^31, so the signed comparison is right. threshold is >= 1.
  const __m256i below = _mm256_set1_epi32(static_cast<int>(threshold - 1));
  std::size_t count = 0;
  bool full = false;
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    u32 hits = 0;
    for (u32 part = 0; part < 4; ++part) {
      __m256 v = _mm256_loadu_ps(y + i + part * 8);
      if constexpr (kAdd) {
        v = _mm256_add_ps(v, _mm256_loadu_ps(x + i + part * 8));
        _mm256_storeu_ps(sum + i + part * 8, v);
      }
      const __m256i keys = _mm256_and_si256(_mm256_castps_si256(v), magnitude);
      const int mask = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(keys, below)));
      hits |= static_cast<u32>(mask) << (part * 8);
    }
    if (hits == 0 || full) continue;
    if (count + 64 > room) {
      if constexpr (!kAdd) return count + 64;
      full = true;
      continue;
    }
    const float* values = kAdd ? sum : y;
    for (; hits != 0; hits &= hits - 1) {
      const std::size_t at = i + static_cast<std::size_t>(__builtin_ctz(hits));
      index[count] = static_cast<u32>(at);
      key[count] = magnitude_key(values[at]);
      ++count;
    }
  }
  for (; i < n; ++i) {
    float v = y[i];
    if constexpr (kAdd) {
      v += x[i];
      sum[i] = v;
    }
    const u32 k = magnitude_key(v);
    if (k < threshold || full) continue;
    if (count + 64 > room) {
      full = true;
      continue;
    }
    index[count] = static_cast<u32>(i);
    key[count] = k;
    ++count;
  }
  return full ? count + 64 : count;
}

std::size_t plain_candidates_256(const float* y, std::size_t n, u32 threshold, u32* index, u32* key,
                                 std::size_t room) {
  return candidates_256<false>(nullptr, y, nullptr, n, threshold, index, key, room);
}

std::size_t add_candidates_256(float* y, const float* x, std::size_t n, u32 threshold, u32* index,
                               u32* key, std::size_t room) {
  return candidates_256<true>(y, y, x, n, threshold, index, key, room);
}

inline __m256 butterfly_1(__m256 v) {
  const __m256 s = _mm256_permute_ps(v, 0xB1);
  return _mm256_blend_ps(_mm256_add_ps(v, s), _mm256_sub_ps(s, v), 0xAA);
}
inline __m256 butterfly_2(__m256 v) {
  const __m256 s = _mm256_permute_ps(v, 0x4E);
  return _mm256_blend_ps(_mm256_add_ps(v, s), _mm256_sub_ps(s, v), 0xCC);
}
inline __m256 butterfly_4(__m256 v) {
  const __m256 s = _mm256_permute2f128_ps(v, v, 0x01);
  return _mm256_blend_ps(_mm256_add_ps(v, s), _mm256_sub_ps(s, v), 0xF0);
}

void hadamard_256(float* block) {
  for (u32 i = 0; i < kTransform; i += 8)
    _mm256_storeu_ps(block + i, butterfly_4(butterfly_2(butterfly_1(_mm256_loadu_ps(block + i)))));
  for (u32 half = 8; half < kTransform; half *= 2) {
    for (u32 begin = 0; begin < kTransform; begin += 2 * half) {
      for (u32 i = begin; i < begin + half; i += 8) {
        const __m256 a = _mm256_loadu_ps(block + i);
        const __m256 b = _mm256_loadu_ps(block + i + half);
        _mm256_storeu_ps(block + i, _mm256_add_ps(a, b));
        _mm256_storeu_ps(block + i + half, _mm256_sub_ps(a, b));
      }
    }
  }
  for (u32 i = 0; i < kTransform; i += 8)
    _mm256_storeu_ps(block + i,
                     _mm256_mul_ps(_mm256_loadu_ps(block + i), _mm256_set1_ps(kTransformScale)));
}

}  // namespace

const Kernels* avx2_kernels() {
  static constexpr Kernels kKernels{
      .name = "avx2",
      .add = add,
      .subtract = subtract,
      .list_groups = list_groups,
      .gather = gather_256,
      .scatter = scatter,
      .scatter_add = scatter_add,
      .max_key = max_key,
      .quantise = quantise_256,
      .dequantise = dequantise,
      .pack_i4 = pack_i4,
      .unpack_i4 = unpack_i4,
      .to_f16 = to_f16_256,
      .from_f16 = from_f16_256,
      .to_bf16 = to_bf16,
      .from_bf16 = from_bf16,
      .candidates = plain_candidates_256,
      .add_candidates = add_candidates_256,
      .flip = flip,
      .hadamard = hadamard_256,
  };
  return &kKernels;
}

}  // namespace dblp::compress

#else

namespace dblp::compress {

const Kernels* avx2_kernels() { return nullptr; }

}  // namespace dblp::compress

#endif

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Compiled for AVX-512 F, BW, DQ, VL (and what they imply); runs only where
// choose_kernels() has found them.

#include "compress/cpu/kernels.hpp"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#include <immintrin.h>

#include "compress/layout.hpp"

namespace dblp::compress {
namespace {

#include "compress/cpu/generic.hpp"

static_assert(kGroup == 16, "a group is one vector");

void gather_512(const float* x, const float* y, const u32* groups, std::size_t count,
                const u32* next, std::size_t next_count, float* out) {
  for (std::size_t g = 0; g < count; ++g) {
    if (g < next_count) {
      __builtin_prefetch(x + std::size_t{next[g]} * kGroup);
      if (y != nullptr) __builtin_prefetch(y + std::size_t{next[g]} * kGroup, 1);
    }
    __m512 v = _mm512_loadu_ps(x + std::size_t{groups[g]} * kGroup);
    if (y != nullptr) v = _mm512_add_ps(v, _mm512_loadu_ps(y + std::size_t{groups[g]} * kGroup));
    _mm512_storeu_ps(out + g * kGroup, v);
  }
}

// 64 rounding numbers in order, from blocks block .. block + 7. Each 64-bit
// lane computes one block in the low halves of four registers; what collects in
// the high halves is never read.
struct Numbers {
  __m512i low;   // 0 to 31
  __m512i high;  // 32 to 63
};

Numbers numbers_512(const Random& random, u32 block) {
  // Unpacking interleaves lanes 2i and 2i + 1 of its two sources: the blocks are
  // dealt so that they come out in order.
  const __m512i deal = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
  const __m512i m0 = _mm512_set1_epi64(0xD2511F53);
  const __m512i m1 = _mm512_set1_epi64(0xCD9E8D57);
  __m512i c0 = _mm512_add_epi64(_mm512_set1_epi64(block), deal);
  __m512i c1 = _mm512_set1_epi64(kForRounding);
  __m512i c2 = _mm512_set1_epi64(random.round[0]);
  __m512i c3 = _mm512_set1_epi64(random.round[1]);
  u32 k0 = random.key[0];
  u32 k1 = random.key[1];
  for (int round = 0; round < 10; ++round) {
    const __m512i p0 = _mm512_mul_epu32(c0, m0);
    const __m512i p1 = _mm512_mul_epu32(c2, m1);
    c0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p1, 32), c1, _mm512_set1_epi64(k0), 0x96);
    c2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(p0, 32), c3, _mm512_set1_epi64(k1), 0x96);
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  const __m512i first = _mm512_mask_shuffle_epi32(c0, 0xAAAA, c1, _MM_PERM_CCAA);
  const __m512i second = _mm512_mask_shuffle_epi32(c2, 0xAAAA, c3, _MM_PERM_CCAA);
  return {_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second)};
}

// Levels of 16 elements, clamped.
inline __m512i levels_512(__m512 x, __m512 inverse, __m256i bits, __m512i most, __m512i least) {
  const __m512 offset = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(bits)),
                                        _mm512_set1_ps(0x1p-16F), _mm512_set1_ps(0x1p-17F));
  const __m512i q = _mm512_cvt_roundps_epi32(_mm512_fmadd_ps(x, inverse, offset),
                                             _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  return _mm512_max_epi32(_mm512_min_epi32(q, most), least);
}

void quantise_512(const float* x, std::size_t n, float inverse, i32 levels, const Random& random,
                  u32 block, i8* q) {
  if (inverse == 0.0F) {
    for (std::size_t i = 0; i < n; ++i) q[i] = 0;
    return;
  }
  const __m512 by = _mm512_set1_ps(inverse);
  const __m512i most = _mm512_set1_epi32(levels);
  const __m512i least = _mm512_set1_epi32(-levels);
  for (std::size_t i = 0; i < n; i += 64, block += 8) {
    const Numbers numbers = numbers_512(random, block);
    const __m256i bits[4] = {
        _mm512_castsi512_si256(numbers.low), _mm512_extracti64x4_epi64(numbers.low, 1),
        _mm512_castsi512_si256(numbers.high), _mm512_extracti64x4_epi64(numbers.high, 1)};
    for (std::size_t part = 0; part < 4; ++part) {
      const std::size_t at = i + part * 16;
      if (at >= n) break;
      const __mmask16 mask =
          n - at >= 16 ? __mmask16{0xffff} : static_cast<__mmask16>((1U << (n - at)) - 1);
      _mm512_mask_cvtepi32_storeu_epi8(
          q + at, mask,
          levels_512(_mm512_maskz_loadu_ps(mask, x + at), by, bits[part], most, least));
    }
  }
}

void to_f16_512(const float* x, std::size_t n, u8* out) {
  const __m512 most = _mm512_set1_ps(65504.0F);
  const __m512 infinity = _mm512_set1_ps(__builtin_inff());
  const __m512i nan = _mm512_set1_epi32(0x7e00);
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 mask =
        n - i >= 16 ? __mmask16{0xffff} : static_cast<__mmask16>((1U << (n - i)) - 1);
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + i);
    // Finite values saturate; infinities stay.
    const __mmask16 large = _mm512_cmp_ps_mask(_mm512_abs_ps(v), most, _CMP_GT_OQ) &
                            _mm512_cmp_ps_mask(_mm512_abs_ps(v), infinity, _CMP_LT_OQ);
    const __m512 sign = _mm512_and_ps(v, _mm512_set1_ps(-0.0F));
    const __m512 w = _mm512_mask_or_ps(v, large, most, sign);
    __m512i h =
        _mm512_cvtepu16_epi32(_mm512_cvtps_ph(w, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    h = _mm512_mask_mov_epi32(h, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), nan);
    _mm512_mask_cvtepi32_storeu_epi16(out + 2 * i, mask, h);
  }
}

void from_f16_512(const u8* in, std::size_t n, float* out) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(
        out + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + 2 * i))));
  from_f16(in + 2 * i, n - i, out + i);
}

template <bool kAdd>
std::size_t candidates_512(float* sum, const float* y, const float* x, std::size_t n, u32 threshold,
                           u32* index, u32* key, std::size_t room) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const __m512i nan_key = _mm512_set1_epi32(kNanKey);
  const __m512i limit = _mm512_set1_epi32(static_cast<int>(threshold));
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  std::size_t count = 0;
  bool full = false;
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    __m512i keys[4];
    __mmask16 hits[4];
    for (std::size_t part = 0; part < 4; ++part) {
      __m512 v = _mm512_loadu_ps(y + i + part * 16);
      if constexpr (kAdd) {
        v = _mm512_add_ps(v, _mm512_loadu_ps(x + i + part * 16));
        _mm512_storeu_ps(sum + i + part * 16, v);
      }
      keys[part] = _mm512_and_epi32(_mm512_castps_si512(v), magnitude);
      hits[part] = _mm512_cmpge_epi32_mask(keys[part], limit);
    }
    const u64 any = u64{hits[0]} | u64{hits[1]} << 16 | u64{hits[2]} << 32 | u64{hits[3]} << 48;
    if (any == 0 || full) continue;
    if (count + 64 > room) {
      // The sums must be complete all the same.
      if constexpr (!kAdd) return count + 64;
      full = true;
      continue;
    }
    for (std::size_t part = 0; part < 4; ++part) {
      if (hits[part] == 0) continue;
      const __m512i at =
          _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(i + part * 16)));
      _mm512_storeu_si512(index + count, _mm512_maskz_compress_epi32(hits[part], at));
      _mm512_storeu_si512(key + count, _mm512_maskz_compress_epi32(
                                           hits[part], _mm512_min_epi32(keys[part], nan_key)));
      count += static_cast<std::size_t>(__builtin_popcount(hits[part]));
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

std::size_t plain_candidates_512(const float* y, std::size_t n, u32 threshold, u32* index, u32* key,
                                 std::size_t room) {
  return candidates_512<false>(nullptr, y, nullptr, n, threshold, index, key, room);
}

std::size_t add_candidates_512(float* y, const float* x, std::size_t n, u32 threshold, u32* index,
                               u32* key, std::size_t room) {
  return candidates_512<true>(y, y, x, n, threshold, index, key, room);
}

// a + b in the lower half of each pair, a - b in the upper: `swapped` has the
// other one of each lane's pair.
inline __m512 butterfly(__m512 v, __m512 swapped, __mmask16 upper) {
  return _mm512_mask_sub_ps(_mm512_add_ps(v, swapped), upper, swapped, v);
}

inline __m512 hadamard_16(__m512 v) {
  v = butterfly(v, _mm512_permute_ps(v, 0xB1), 0xAAAA);
  v = butterfly(v, _mm512_permute_ps(v, 0x4E), 0xCCCC);
  v = butterfly(v, _mm512_shuffle_f32x4(v, v, 0xB1), 0xF0F0);
  return butterfly(v, _mm512_shuffle_f32x4(v, v, 0x4E), 0xFF00);
}

// Eight vectors, `step` vectors apart: three stages.
template <bool kFirst, bool kLast>
void hadamard_8(float* block, std::size_t step) {
  __m512 v[8];
  for (std::size_t i = 0; i < 8; ++i) {
    v[i] = _mm512_loadu_ps(block + i * step * 16);
    if constexpr (kFirst) v[i] = hadamard_16(v[i]);
  }
  for (std::size_t half = 1; half < 8; half *= 2) {
    for (std::size_t i = 0; i < 8; ++i) {
      if ((i & half) != 0) continue;
      const __m512 a = v[i];
      const __m512 b = v[i + half];
      v[i] = _mm512_add_ps(a, b);
      v[i + half] = _mm512_sub_ps(a, b);
    }
  }
  for (std::size_t i = 0; i < 8; ++i) {
    if constexpr (kLast) v[i] = _mm512_mul_ps(v[i], _mm512_set1_ps(kTransformScale));
    _mm512_storeu_ps(block + i * step * 16, v[i]);
  }
}

void hadamard_512(float* block) {
  static_assert(kTransform == 1024);
  for (std::size_t i = 0; i < 8; ++i) hadamard_8<true, false>(block + i * 128, 1);
  for (std::size_t i = 0; i < 8; ++i) hadamard_8<false, true>(block + i * 16, 8);
}

}  // namespace

const Kernels* avx512_kernels() {
  static constexpr Kernels kKernels{
      .name = "avx512",
      .add = add,
      .subtract = subtract,
      .gather = gather_512,
      .scatter = scatter,
      .scatter_add = scatter_add,
      .max_key = max_key,
      .quantise = quantise_512,
      .dequantise = dequantise,
      .pack_i4 = pack_i4,
      .unpack_i4 = unpack_i4,
      .to_f16 = to_f16_512,
      .from_f16 = from_f16_512,
      .to_bf16 = to_bf16,
      .from_bf16 = from_bf16,
      .candidates = plain_candidates_512,
      .add_candidates = add_candidates_512,
      .hadamard = hadamard_512,
  };
  return &kKernels;
}

}  // namespace dblp::compress

#else

namespace dblp::compress {

const Kernels* avx512_kernels() { return nullptr; }

}  // namespace dblp::compress

#endif

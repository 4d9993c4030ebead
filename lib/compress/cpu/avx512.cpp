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

void gather_512(const float* x, const float* y, const u32* groups, u32 rows, std::size_t pitch,
                float* out, u32* keys) {
  __m512i max[kLanes];
  for (__m512i& lane : max) lane = _mm512_setzero_si512();
  for (u32 row = 0; row < rows; ++row) {
    for (u32 i = 0; i < kLanes; ++i) {
      const std::size_t from = std::size_t{groups[row * kLanes + i]} * kGroup;
      __m512 v = _mm512_loadu_ps(x + from);
      if (y != nullptr) v = _mm512_add_ps(v, _mm512_loadu_ps(y + from));
      _mm512_storeu_ps(out + i * pitch + std::size_t{row} * kGroup, v);
      max[i] = _mm512_max_epi32(
          max[i], _mm512_and_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff)));
    }
  }
  for (u32 i = 0; i < kLanes; ++i) {
    const u32 key = static_cast<u32>(_mm512_reduce_max_epi32(max[i]));
    keys[i] = key < kNanKey ? key : kNanKey;
  }
}

// The bytes of 8 blocks in order, for 128 elements. Each 64-bit lane computes
// one block in the low halves of four registers; what collects in the high
// halves is never read.
struct Numbers {
  __m512i low;   // 0 to 63
  __m512i high;  // 64 to 127
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

struct Levels {
  __m512 inverse;
  __m512 fine;
  __m512i most;   // in bytes
  __m512i least;  // in bytes
};

inline __m512i levels_16(const float* x, __m128i bits, const Levels& by) {
  const __m512 offset = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bits)),
                                        _mm512_set1_ps(0x1p-8F), by.fine);
  return _mm512_cvt_roundps_epi32(_mm512_fmadd_ps(_mm512_loadu_ps(x), by.inverse, offset),
                                  _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

inline __m512i levels_64(const float* x, __m512i bits, const Levels& by) {
  const __m512i ab = _mm512_packs_epi32(levels_16(x, _mm512_castsi512_si128(bits), by),
                                        levels_16(x + 16, _mm512_extracti32x4_epi32(bits, 1), by));
  const __m512i cd = _mm512_packs_epi32(levels_16(x + 32, _mm512_extracti32x4_epi32(bits, 2), by),
                                        levels_16(x + 48, _mm512_extracti32x4_epi32(bits, 3), by));
  // Packing works in quarters: back into order.
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i q = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(ab, cd));
  return _mm512_max_epi8(_mm512_min_epi8(q, by.most), by.least);
}

void quantise_512(const float* x, std::size_t n, float inverse, i32 levels, const Random& random,
                  u32 block, float fine, const Ahead& ahead, i8* q) {
  if (inverse == 0.0F) {
    fetch(ahead, 0, ahead.count);
    for (std::size_t i = 0; i < n; ++i) q[i] = 0;
    return;
  }
  const Levels by{_mm512_set1_ps(inverse), _mm512_set1_ps(fine),
                  _mm512_set1_epi8(static_cast<char>(levels)),
                  _mm512_set1_epi8(static_cast<char>(-levels))};
  std::size_t i = 0;
  for (; i + 128 <= n; i += 128, block += 8) {
    fetch(ahead, i / kGroup, i / kGroup + 8);
    const Numbers numbers = numbers_512(random, block);
    _mm512_storeu_si512(q + i, levels_64(x + i, numbers.low, by));
    _mm512_storeu_si512(q + i + 64, levels_64(x + i + 64, numbers.high, by));
  }
  fetch(ahead, i / kGroup, ahead.count);
  if (i == n) return;
  alignas(64) float rest[128] = {};
  __builtin_memcpy(rest, x + i, (n - i) * sizeof(float));
  const Numbers numbers = numbers_512(random, block);
  const std::size_t left = n - i;
  const __mmask64 first = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
  _mm512_mask_storeu_epi8(q + i, first, levels_64(rest, numbers.low, by));
  if (left > 64)
    _mm512_mask_storeu_epi8(q + i + 64, (__mmask64{1} << (left - 64)) - 1,
                            levels_64(rest + 64, numbers.high, by));
}

void to_f16_512(const float* x, std::size_t n, u8* out) {
  const __m512 most = _mm512_set1_ps(65504.0F);
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  const __m512i range = _mm512_set1_epi32(static_cast<int>(kInfBits - 0x477fe001));
  const __m512 nan = _mm512_set1_ps(__builtin_nanf(""));
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m512 v = _mm512_loadu_ps(x + i);
    const __m512i a = _mm512_and_epi32(_mm512_castps_si512(v), magnitude);
    // Finite values above 65504 saturate; infinities stay.
    const __mmask16 large =
        _mm512_cmplt_epu32_mask(_mm512_sub_epi32(a, _mm512_set1_epi32(0x477fe001)), range);
    const __mmask16 unordered = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    v = _mm512_mask_or_ps(v, large, most, _mm512_and_ps(v, _mm512_set1_ps(-0.0F)));
    v = _mm512_mask_mov_ps(v, unordered, nan);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i),
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  to_f16(x + i, n - i, out + 2 * i);
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
  __m512i at = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  std::size_t count = 0;
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    if (count + 64 > room) break;
    // Without a branch: whether one of 16 is a candidate cannot be predicted.
    for (std::size_t part = 0; part < 4; ++part) {
      __m512 v = _mm512_loadu_ps(y + i + part * 16);
      if constexpr (kAdd) {
        v = _mm512_add_ps(v, _mm512_loadu_ps(x + i + part * 16));
        _mm512_storeu_ps(sum + i + part * 16, v);
      }
      const __m512i keys = _mm512_and_epi32(_mm512_castps_si512(v), magnitude);
      const __mmask16 hits = _mm512_cmpge_epi32_mask(keys, limit);
      _mm512_storeu_si512(index + count, _mm512_maskz_compress_epi32(hits, at));
      _mm512_storeu_si512(key + count,
                          _mm512_maskz_compress_epi32(hits, _mm512_min_epi32(keys, nan_key)));
      count += static_cast<std::size_t>(__builtin_popcount(hits));
      at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
    }
  }
  bool full = false;
  for (; i < n; ++i) {
    float v = y[i];
    if constexpr (kAdd) {
      // The sums must be complete even when there is no room for more.
      v += x[i];
      sum[i] = v;
    } else if (full) {
      break;
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
      .list_groups = list_groups,
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
      .flip = flip,
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

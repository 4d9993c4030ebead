// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// The loops in plain C++. Included once by each instruction set's file, inside
// an anonymous namespace there, and vectorised by the compiler as far as it
// can; what it cannot is replaced by that file. No code of the standard library
// here: the linker could keep the copy that was made for a larger processor.
//
// No include guard on purpose; the includes are the including file's.

void add(float* y, const float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += x[i];
}

void subtract(float* y, const float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] -= x[i];
}

void list_groups(const u32* bases, const u32* offsets, u32 rows, u32 place, u32 segments,
                 u32* groups) {
  u32 places[kLanes];
  for (u32 i = 0; i < kLanes; ++i) places[i] = place + i < segments ? place + i : segments - 1;
  for (u32 row = 0; row < rows; ++row) {
    for (u32 i = 0; i < kLanes; ++i) {
      const u32 at = places[i] + offsets[row];
      groups[row * kLanes + i] = bases[row] + at - (at >= segments ? segments : 0);
    }
  }
}

void gather(const float* x, const float* y, const u32* groups, u32 rows, std::size_t pitch,
            float* out, u32* keys) {
  for (u32 i = 0; i < kLanes; ++i) {
    u32 max = 0;
    for (u32 row = 0; row < rows; ++row) {
      const std::size_t from = std::size_t{groups[row * kLanes + i]} * kGroup;
      float* to = out + i * pitch + std::size_t{row} * kGroup;
      for (u32 e = 0; e < kGroup; ++e) {
        to[e] = y != nullptr ? x[from + e] + y[from + e] : x[from + e];
        const u32 key = magnitude_key(to[e]);
        max = key > max ? key : max;
      }
    }
    keys[i] = max;
  }
}

void scatter(const float* in, std::size_t pitch, const u32* groups, u32 rows, u32 lanes,
             float* out) {
  for (u32 row = 0; row < rows; ++row) {
    for (u32 i = 0; i < lanes; ++i) {
      float* to = out + std::size_t{groups[row * kLanes + i]} * kGroup;
      const float* from = in + i * pitch + std::size_t{row} * kGroup;
      for (u32 e = 0; e < kGroup; ++e) to[e] = from[e];
    }
  }
}

void scatter_add(const float* in, std::size_t pitch, const u32* groups, u32 rows, u32 lanes,
                 float* out) {
  for (u32 row = 0; row < rows; ++row) {
    for (u32 i = 0; i < lanes; ++i) {
      float* to = out + std::size_t{groups[row * kLanes + i]} * kGroup;
      const float* from = in + i * pitch + std::size_t{row} * kGroup;
      for (u32 e = 0; e < kGroup; ++e) to[e] += from[e];
    }
  }
}

u32 max_key(const float* x, std::size_t n) {
  u32 max = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const u32 key = magnitude_key(x[i]);
    max = key > max ? key : max;
  }
  return max;
}

void quantise_all(const float* x, std::size_t n, float inverse, i32 levels, const Random& random,
                  u32 block, float fine, const Ahead& ahead, i8* q) {
  fetch(ahead, 0, ahead.count);
  Block bits{};
  for (std::size_t i = 0; i < n; ++i) {
    const u32 lane = static_cast<u32>(i % kRoundingLanes);
    if (lane == 0)
      bits = random_block(random, kForRounding, block + static_cast<u32>(i / kRoundingLanes));
    q[i] = static_cast<i8>(
        quantise(x[i], inverse, rounding_offset(rounding_bits(bits, lane), fine), levels));
  }
}

void dequantise(const i8* q, std::size_t n, float scale, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(q[i]) * scale;
}

void pack_i4(const i8* q, std::size_t n, u8* out) {
  for (std::size_t i = 0; i < n / 2; ++i)
    out[i] = static_cast<u8>((q[2 * i] & 0xf) | (q[2 * i + 1] & 0xf) << 4);
  if (n % 2 != 0) out[n / 2] = static_cast<u8>(q[n - 1] & 0xf);
}

void unpack_i4(const u8* in, std::size_t n, i8* q) {
  for (std::size_t i = 0; i < n / 2; ++i) {
    q[2 * i] = static_cast<i8>(static_cast<i8>(in[i] << 4) >> 4);
    q[2 * i + 1] = static_cast<i8>(static_cast<i8>(in[i]) >> 4);
  }
  if (n % 2 != 0) q[n - 1] = static_cast<i8>(nibble(in[n / 2], 0));
}

void to_f16(const float* x, std::size_t n, u8* out) {
  for (std::size_t i = 0; i < n; ++i) put_u16(out + 2 * i, f16_of(x[i]));
}

void from_f16(const u8* in, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = float_of_f16(static_cast<u16>(get_u16(in + 2 * i)));
}

void to_bf16(const float* x, std::size_t n, u8* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const u16 half = bf16_of(x[i]);
    __builtin_memcpy(out + 2 * i, &half, sizeof half);
  }
}

void from_bf16(const u8* in, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    u16 half;
    __builtin_memcpy(&half, in + 2 * i, sizeof half);
    out[i] = float_of_bf16(half);
  }
}

std::size_t candidates(const float* y, std::size_t n, u32 threshold, u32* index, u32* key,
                       std::size_t room) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const u32 k = magnitude_key(y[i]);
    if (k < threshold) continue;
    if (count + 64 > room) return count + 64;
    index[count] = static_cast<u32>(i);
    key[count] = k;
    ++count;
  }
  return count;
}

std::size_t add_candidates(float* y, const float* x, std::size_t n, u32 threshold, u32* index,
                           u32* key, std::size_t room) {
  add(y, x, n);
  return candidates(y, n, threshold, index, key, room);
}

void flip(float* x, std::size_t n, const u32* signs) {
  for (std::size_t begin = 0; begin < n; begin += 32) {
    const u32 word = signs[begin / 32];
    for (u32 i = 0; i < 32; ++i)
      x[begin + i] = float_of(bits_of(x[begin + i]) ^ (word >> i & 1) << 31);
  }
}

// The order of the stages is part of the result: rounding differs otherwise.
void hadamard(float* block) {
  for (u32 half = 1; half < kTransform; half *= 2) {
    for (u32 begin = 0; begin < kTransform; begin += 2 * half) {
      for (u32 i = begin; i < begin + half; ++i) {
        const float a = block[i];
        const float b = block[i + half];
        block[i] = a + b;
        block[i + half] = a - b;
      }
    }
  }
  for (u32 i = 0; i < kTransform; ++i) block[i] *= kTransformScale;
}

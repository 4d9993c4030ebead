// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// The loops that are worth vector instructions, once for each instruction set.
// All sets give the same bits; scalar is the reference. Wire memory (u8*) needs
// no alignment.
#pragma once

#include <cstddef>

#include "compress/ops.hpp"
#include "dblp/result.hpp"

namespace dblp::compress {

// So many segments are worked on at once, those at neighbouring places: their
// groups are neighbours in memory, while the segments are far apart on the wire.
constexpr u32 kLanes = 8;

// Groups that will be read next.
struct Ahead {
  const float* x;
  const float* y;  // may be null
  const u32* groups;
  std::size_t count;
};

static inline __attribute__((always_inline)) void fetch(const Ahead& ahead, std::size_t from,
                                                        std::size_t to) {
  for (std::size_t i = from; i < to && i < ahead.count; ++i) {
    // To the second level: the first has no room for it yet.
    __builtin_prefetch(ahead.x + std::size_t{ahead.groups[i]} * 16, 0, 2);
    if (ahead.y != nullptr) __builtin_prefetch(ahead.y + std::size_t{ahead.groups[i]} * 16, 0, 2);
  }
}

struct Kernels {
  const char* name;

  // y[i] += x[i], y[i] -= x[i]
  void (*add)(float* y, const float* x, std::size_t n);
  void (*subtract)(float* y, const float* x, std::size_t n);

  // Dense: groups[row * kLanes + i] is the group of `row` at place + i, or at the
  // last place if that is less; bases[row] = row * segments.
  void (*list_groups)(const u32* bases, const u32* offsets, u32 rows, u32 place, u32 segments,
                      u32* groups);
  // out[i * pitch + row * kGroup ...] = x at groups[row * kLanes + i], plus y if
  // there is one; keys[i] becomes the largest magnitude_key() of lane i.
  void (*gather)(const float* x, const float* y, const u32* groups, u32 rows, std::size_t pitch,
                 float* out, u32* keys);
  // The reverse, for the first `lanes` lanes.
  void (*scatter)(const float* in, std::size_t pitch, const u32* groups, u32 rows, u32 lanes,
                  float* out);
  void (*scatter_add)(const float* in, std::size_t pitch, const u32* groups, u32 rows, u32 lanes,
                      float* out);

  u32 (*max_key)(const float* x, std::size_t n);

  // The rounding numbers start at the beginning of `block`. Meanwhile fetches
  // what is ahead.
  void (*quantise)(const float* x, std::size_t n, float inverse, i32 levels, const Random& random,
                   u32 block, float fine, const Ahead& ahead, i8* q);
  void (*dequantise)(const i8* q, std::size_t n, float scale, float* out);
  void (*pack_i4)(const i8* q, std::size_t n, u8* out);
  void (*unpack_i4)(const u8* in, std::size_t n, i8* q);

  void (*to_f16)(const float* x, std::size_t n, u8* out);
  void (*from_f16)(const u8* in, std::size_t n, float* out);
  void (*to_bf16)(const float* x, std::size_t n, u8* out);
  void (*from_bf16)(const u8* in, std::size_t n, float* out);

  // Appends index and key of each element with key >= threshold, in order, and
  // returns how many; more than `room` - 64 of them may end it early, and then
  // the result is above that. add_candidates() does y += x first.
  std::size_t (*candidates)(const float* y, std::size_t n, u32 threshold, u32* index, u32* key,
                            std::size_t room);
  std::size_t (*add_candidates)(float* y, const float* x, std::size_t n, u32 threshold, u32* index,
                                u32* key, std::size_t room);

  // Flips the sign of element i if bit i % 32 of signs[i / 32] is set.
  void (*flip)(float* x, std::size_t n, const u32* signs);
  // One block of kTransform elements, in place, normalised; its own inverse.
  void (*hadamard)(float* block);
};

const Kernels& scalar_kernels();
// Null if the compiler does not know these instructions.
const Kernels* avx2_kernels();
const Kernels* avx512_kernels();

// Those that this processor runs, best first.
bool supports(const Kernels& kernels);
// The best, or what DBLP_ISA asks for; ENOTSUP if that is not to be had.
Result<const Kernels*> choose_kernels();

}  // namespace dblp::compress

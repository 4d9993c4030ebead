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

struct Kernels {
  const char* name;

  // y[i] += x[i], y[i] -= x[i]
  void (*add)(float* y, const float* x, std::size_t n);
  void (*subtract)(float* y, const float* x, std::size_t n);

  // Dense: the groups of a segment at `place`: bases[row] = row * segments +
  // offsets[row].
  void (*list_groups)(const u32* bases, const u32* offsets, u32 rows, u32 place, u32 segments,
                      u32* groups);
  // out = x at each group, plus y if there is one. `next` are fetched ahead.
  // The largest magnitude_key().
  u32 (*gather)(const float* x, const float* y, const u32* groups, std::size_t count,
                const u32* next, std::size_t next_count, float* out);
  void (*scatter)(const float* in, const u32* groups, std::size_t count, const u32* next,
                  std::size_t next_count, float* out);
  void (*scatter_add)(const float* in, const u32* groups, std::size_t count, const u32* next,
                      std::size_t next_count, float* out);

  u32 (*max_key)(const float* x, std::size_t n);

  // The rounding numbers start at the beginning of `block`.
  void (*quantise)(const float* x, std::size_t n, float inverse, i32 levels, const Random& random,
                   u32 block, float fine, i8* q);
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

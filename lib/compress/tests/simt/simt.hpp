// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Runs CUDA kernel source on the CPU: each thread of a block is a fiber, a
// barrier is a yield, and the order in which fibers and blocks run is drawn
// from a seed. A barrier that not all threads of the block (or warp) reach is
// an error, as it is undefined on a GPU.
//
// Only what the kernels here use: one dimension, static shared memory,
// __syncthreads, ballot and shuffle over full warps, atomics on integers.
#pragma once

#include <cstdint>
#include <functional>

namespace simt {

struct Index {
  unsigned x = 0;
};

// Of the thread that runs; set at every switch.
extern Index thread_index;
extern Index block_index;
extern Index block_size;
extern Index grid_size;

// The order of everything that follows.
void set_seed(std::uint64_t seed);
// Switches between fibers since the start, to see that a test tests something.
std::uint64_t switches();

void launch(unsigned grid, unsigned block, const std::function<void()>& kernel);

void block_barrier();
// Gives each lane of the warp what all have put in.
const std::uint32_t* warp_exchange(std::uint32_t value);
// Another fiber may run here.
void maybe_yield();

}  // namespace simt

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define threadIdx (::simt::thread_index)
#define blockIdx (::simt::block_index)
#define blockDim (::simt::block_size)
#define gridDim (::simt::grid_size)

inline void __syncthreads() { simt::block_barrier(); }

inline unsigned __ballot_sync(unsigned /*mask*/, bool predicate) {
  const std::uint32_t* all = simt::warp_exchange(predicate ? 1 : 0);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) bits |= all[lane] << lane;
  return bits;
}

inline unsigned __shfl_up_sync(unsigned /*mask*/, unsigned value, unsigned delta) {
  const std::uint32_t* all = simt::warp_exchange(value);
  const unsigned lane = simt::thread_index.x % 32;
  return lane >= delta ? all[lane - delta] : value;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }

template <class T>
T atomicAdd(T* at, T value) {
  simt::maybe_yield();
  const T before = *at;
  *at = before + value;
  return before;
}
template <class T>
T atomicMax(T* at, T value) {
  simt::maybe_yield();
  const T before = *at;
  if (value > before) *at = value;
  return before;
}
template <class T>
T atomicMin(T* at, T value) {
  simt::maybe_yield();
  const T before = *at;
  if (value < before) *at = value;
  return before;
}

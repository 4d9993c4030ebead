// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// The k elements of largest magnitude, exactly, in index order; of equal ones
// the lowest indices. Zeros are never selected. One pass over the tensor:
//
//   sample -> threshold a little too low -> candidates (index, key) in one pass
//          -> exact threshold among them by radix -> the selected, in order
//
// A sample that misleads costs time, never exactness: too few candidates are
// looked for again with a lower threshold, too many fall back to a radix
// selection over the whole tensor.
#pragma once

#include <cstddef>
#include <span>

#include "compress/cpu/kernels.hpp"

namespace dblp::compress {

// Candidates that a workspace for up to k of n must hold.
std::size_t candidate_room(std::size_t n, std::size_t k);

struct SelectMemory {
  std::span<u32> index;  // candidate_room(); the result
  std::span<u32> key;    // candidate_room()
};

// Returns how many were selected: at most k, fewer only if the rest is zero.
// Their indices are at the front of memory.index.
std::size_t select_top(const Kernels& kernels, const float* values, std::size_t n, std::size_t k,
                       const SelectMemory& memory);
// values += addend first, in the same pass.
std::size_t add_and_select_top(const Kernels& kernels, float* values, const float* addend,
                               std::size_t n, std::size_t k, const SelectMemory& memory);

}  // namespace dblp::compress

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "compress/cpu/kernels.hpp"
#include "compress/layout.hpp"

namespace dblp::compress {
namespace {

#include "compress/cpu/generic.hpp"

}  // namespace

const Kernels& scalar_kernels() {
  static constexpr Kernels kKernels{
      .name = "scalar",
      .add = add,
      .subtract = subtract,
      .list_groups = list_groups,
      .gather = gather,
      .scatter = scatter,
      .scatter_add = scatter_add,
      .max_key = max_key,
      .quantise = quantise_all,
      .dequantise = dequantise,
      .pack_i4 = pack_i4,
      .unpack_i4 = unpack_i4,
      .to_f16 = to_f16,
      .from_f16 = from_f16,
      .to_bf16 = to_bf16,
      .from_bf16 = from_bf16,
      .candidates = candidates,
      .add_candidates = add_candidates,
      .flip = flip,
      .hadamard = hadamard,
  };
  return kKernels;
}

}  // namespace dblp::compress

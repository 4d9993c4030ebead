// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
#pragma once

#include "compress/cpu/kernels.hpp"
#include "compress/shape.hpp"

namespace dblp::compress {

// With these kernels; tests compare several. EINVAL as make_codec().
Result<std::unique_ptr<Codec>> make_cpu_codec(const Kernels& kernels, const CodecOptions& options,
                                              const Shape& shape);

}  // namespace dblp::compress

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Between libdblp and its CUDA part.
#pragma once

#include <cstdint>
#include <memory>

#include "dblp/compress/device.hpp"

namespace dblp::compress {

// Anything that both sides compile in changes it.
constexpr std::uint32_t kCudaPluginVersion = 1;

// kNoDevice: no driver or no such device. Exported as dblp_cuda_open.
using CudaOpen = Status (*)(std::uint32_t version, int ordinal, std::unique_ptr<Device>* device);

}  // namespace dblp::compress

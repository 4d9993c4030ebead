// SPDX-License-Identifier: GPL-2.0
//
// What a report says of the machine, and what tells whether two hosts share a clock.
#pragma once

#include <string>

#include "frame.hpp"

namespace perf {

std::string byte_order();
// {"name", "kernel", "cpus", "clock"}. Hosts whose "clock" is equal have one
// CLOCK_MONOTONIC: the same boot of the same machine, the same time namespace.
Json describe_host();

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0
//
// CLOCK_MONOTONIC in nanoseconds: one clock for all processes of a machine, whatever
// network namespace they are in.
#pragma once

#include <cstdint>
#include <limits>

namespace perf {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::int64_t now_ns();

}  // namespace perf

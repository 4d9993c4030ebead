// SPDX-License-Identifier: GPL-2.0
//
// The percentile ladder: p50, p90, p99, p99.9, the greatest. A percentile is the
// smallest value that so many of the values do not exceed; it is a value that
// occurred, nothing is interpolated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace perf {

struct Ladder {
  std::size_t count = 0;
  double mean = 0;
  double stddev = 0;  // of the sample
  std::int64_t min = 0;
  std::int64_t p50 = 0;
  std::int64_t p90 = 0;
  std::int64_t p99 = 0;
  std::int64_t p999 = 0;
  std::int64_t max = 0;
};

Ladder make_ladder(std::span<const std::int64_t> values);

// Value at `per_mille` of values in ascending order; there is at least one.
std::int64_t percentile(std::span<const std::int64_t> ascending, unsigned per_mille);

}  // namespace perf

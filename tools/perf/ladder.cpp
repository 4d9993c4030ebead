// SPDX-License-Identifier: GPL-2.0

#include "ladder.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace perf {

std::int64_t percentile(std::span<const std::int64_t> ascending, unsigned per_mille) {
  // In integers: 0.9 × 10 is not 9 in floating point.
  const std::size_t rank = (ascending.size() * per_mille + 999) / 1000;
  return ascending[std::max<std::size_t>(rank, 1) - 1];
}

Ladder make_ladder(std::span<const std::int64_t> values) {
  Ladder ladder;
  if (values.empty()) return ladder;
  std::vector<std::int64_t> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const auto count = static_cast<double>(sorted.size());
  double sum = 0;
  for (const auto value : sorted) sum += static_cast<double>(value);
  ladder.mean = sum / count;
  double squares = 0;
  for (const auto value : sorted) {
    const double off = static_cast<double>(value) - ladder.mean;
    squares += off * off;
  }
  ladder.stddev = sorted.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  ladder.count = sorted.size();
  ladder.min = sorted.front();
  ladder.p50 = percentile(sorted, 500);
  ladder.p90 = percentile(sorted, 900);
  ladder.p99 = percentile(sorted, 990);
  ladder.p999 = percentile(sorted, 999);
  ladder.max = sorted.back();
  return ladder;
}

}  // namespace perf

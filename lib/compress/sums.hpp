// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
#pragma once

#include <cstddef>

namespace dblp::compress {

// Sum of squares in a fixed order, whatever the processor: eight lanes, then
// pairs. Not finite if and only if one of x is not.
inline double energy_of(const float* x, std::size_t n) {
  double lanes[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const double v = x[i + lane];
      lanes[lane] += v * v;
    }
  for (std::size_t lane = 0; i < n; ++i, ++lane) {
    const double v = x[i];
    lanes[lane] += v * v;
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace dblp::compress

// SPDX-License-Identifier: GPL-2.0
//
// How well a mean is known, by Student's t.
#pragma once

#include <span>

namespace perf {

// Half the width of the confidence interval of the mean, in percent of it. `level` is
// in percent; of fewer than two values, or a mean of 0, it is infinite.
double confidence_width(std::span<const double> values, double level);

// The quantile of Student's distribution: |t| is below it with a probability of
// `level` percent.
double student_t(double level, unsigned degrees);

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "confidence.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace perf {
namespace {

// P(|T| < t), in closed form for whole degrees of freedom: a finite series in the
// cosine of theta = atan(t / sqrt(degrees)).
double two_sided(double t, unsigned degrees) {
  const double theta = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(theta);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1;
  double sum = degrees == 1 ? 0 : term;
  for (unsigned k = odd ? 3 : 2; k < degrees; k += 2) {
    term *= cosine * cosine * (k - 1) / k;
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (theta + std::sin(theta) * sum) : std::sin(theta) * sum;
}

}  // namespace

double student_t(double level, unsigned degrees) {
  double low = 0;
  double high = 1;
  while (two_sided(high, degrees) < level / 100) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (two_sided(middle, degrees) < level / 100 ? low : high) = middle;
  }
  return high;
}

double confidence_width(std::span<const double> values, double level) {
  const auto count = static_cast<double>(values.size());
  if (values.size() < 2) return std::numeric_limits<double>::infinity();
  double mean = 0;
  for (const double value : values) mean += value / count;
  if (mean == 0) return std::numeric_limits<double>::infinity();
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  return student_t(level, static_cast<unsigned>(values.size() - 1)) * error / std::abs(mean) * 100;
}

}  // namespace perf

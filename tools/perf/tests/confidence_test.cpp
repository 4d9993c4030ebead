// SPDX-License-Identifier: GPL-2.0

#include "confidence.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace perf {
namespace {

// Of the tables that statistics books end with.
TEST(Confidence, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_t(95, 1), 12.706, 0.001);
  EXPECT_NEAR(student_t(95, 2), 4.303, 0.001);
  EXPECT_NEAR(student_t(95, 3), 3.182, 0.001);
  EXPECT_NEAR(student_t(95, 9), 2.262, 0.001);
  EXPECT_NEAR(student_t(99, 2), 9.925, 0.001);
  EXPECT_NEAR(student_t(99, 4), 4.604, 0.001);
  EXPECT_NEAR(student_t(99, 29), 2.756, 0.001);
  EXPECT_NEAR(student_t(99.9, 10), 4.587, 0.001);
}

TEST(Confidence, WidthIsThatOfTheWholeInterval) {
  // Mean 10, standard deviation 1, standard error 1/√3; t is 4.303.
  const std::vector<double> values{9, 10, 11};
  EXPECT_NEAR(confidence_width(values, 95), 2 * 4.3027 / std::sqrt(3.0) / 10 * 100, 0.01);
}

TEST(Confidence, EqualValuesAreKnownExactly) {
  const std::vector<double> values{4, 4, 4, 4};
  EXPECT_EQ(confidence_width(values, 99), 0);
}

TEST(Confidence, OneValueOrAMeanOfNothingSaysNothing) {
  EXPECT_TRUE(std::isinf(confidence_width(std::vector<double>{5}, 95)));
  EXPECT_TRUE(std::isinf(confidence_width(std::vector<double>{0, 0}, 95)));
}

}  // namespace
}  // namespace perf

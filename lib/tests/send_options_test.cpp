// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/send_options.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace {

using dblp::Tolerance;

TEST(Tolerance, IsAShareOrMillionths) {
  EXPECT_EQ(Tolerance(0.408).ppm(), 408000U);
  EXPECT_EQ(Tolerance(0.008).ppm(), 8000U);
  EXPECT_EQ(Tolerance(1.0).ppm(), 1000000U);
  EXPECT_EQ(Tolerance::ppm(1).ppm(), 1U);
  EXPECT_EQ(Tolerance(0.0000004).ppm(), 0U);
  EXPECT_EQ(Tolerance(0.0000006).ppm(), 1U);
}

TEST(Tolerance, IsReliableUnlessSet) {
  EXPECT_TRUE(Tolerance().reliable());
  EXPECT_TRUE(dblp::SendOptions{}.tolerance.reliable());
  EXPECT_FALSE(Tolerance(0.01).reliable());
}

TEST(Tolerance, KnowsWhatIsNoShare) {
  EXPECT_FALSE(Tolerance(-0.001).ppm());
  EXPECT_FALSE(Tolerance(1.001).ppm());
  EXPECT_FALSE(Tolerance(std::numeric_limits<double>::quiet_NaN()).ppm());
  EXPECT_FALSE(Tolerance(std::numeric_limits<double>::infinity()).ppm());
  EXPECT_FALSE(Tolerance::ppm(1000001).ppm());
  EXPECT_FALSE(Tolerance(-1.0).reliable());
}

}  // namespace

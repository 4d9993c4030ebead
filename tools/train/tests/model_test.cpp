// SPDX-License-Identifier: GPL-2.0

#include "model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "policy.hpp"
#include "synthetic.hpp"

namespace {

using train::checksum;
using train::Dataset;
using train::kParameters;
using train::Model;

// Where the parts begin, after the weights of the first layer.
constexpr std::uint32_t kB1 = train::kHidden * train::kPixels;
constexpr std::uint32_t kW2 = kB1 + train::kHidden;
constexpr std::uint32_t kB2 = kW2 + train::kClasses * train::kHidden;

std::vector<std::uint32_t> everything(const Dataset& data) {
  std::vector<std::uint32_t> all(data.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(Model, GradientAgreesWithDifferences) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  const Dataset data = train::synthetic(8, kSeed);
  const auto all = everything(data);
  Model model(kSeed);
  std::vector<float> gradient(kParameters);
  std::vector<float> ignored(kParameters);
  model.gradient(data, all, gradient);

  // All biases, and some weights of both layers, the last ones among them.
  // evaluate() sums in double, so that the step can be small.
  train::Random random(kSeed);
  std::vector<std::size_t> places{kW2 - 1, kB2 - 1};
  for (std::size_t i = kB1; i < kW2; ++i) places.push_back(i);
  for (std::size_t i = kB2; i < kParameters; ++i) places.push_back(i);
  for (std::uint32_t i = 0; i < 30; ++i) {
    places.push_back(random.below(kB1));
    places.push_back(kW2 + random.below(kB2 - kW2));
  }
  const double here = model.evaluate(data).loss;
  double largest = 0;
  for (const std::size_t i : places) {
    constexpr float kStep = 2e-3F;
    const float before = model.parameters()[i];
    model.parameters()[i] = before + kStep;
    const double above = model.evaluate(data).loss;
    model.parameters()[i] = before - kStep;
    const double below = model.evaluate(data).loss;
    model.parameters()[i] = before;
    // The loss has kinks: where one lies within a step, the slope of the other side holds.
    const double right = (above - here) / kStep;
    const double left = (here - below) / kStep;
    const double slope =
        std::fabs(gradient[i] - right) < std::fabs(gradient[i] - left) ? right : left;
    EXPECT_NEAR(gradient[i], slope, 1e-3 + 0.01 * std::fabs(slope)) << "parameter " << i;
    largest = std::max(largest, std::fabs(slope));
  }
  EXPECT_GT(largest, 0.02) << "nothing was compared";
}

TEST(Model, LossOfTheGradientIsTheLossThatIsMeasured) {
  const Dataset data = train::synthetic(50, 3);
  const Model model(3);
  std::vector<float> gradient(kParameters);
  EXPECT_NEAR(model.gradient(data, everything(data), gradient), model.evaluate(data).loss, 1e-4);
}

TEST(Model, FollowsTheSeed) {
  EXPECT_EQ(checksum(Model(5).parameters()), checksum(Model(5).parameters()));
  EXPECT_NE(checksum(Model(5).parameters()), checksum(Model(6).parameters()));
}

TEST(Descent, KeepsItsMomentumAndSlowsDown) {
  std::vector<float> parameters(kParameters, 1.0F);
  const std::vector<float> gradient(kParameters, 2.0F);
  train::Descent descent(0.1F, 0.5F, 2);
  descent.step(parameters, gradient);
  EXPECT_FLOAT_EQ(parameters.front(), 0.8F);
  descent.step(parameters, gradient);  // speed 0.5 * 2 + 2, half of the rate
  EXPECT_FLOAT_EQ(parameters.front(), 0.65F);
  EXPECT_EQ(parameters.front(), parameters.back());
}

TEST(Checksum, SeesEveryBitAndTheOrder) {
  const std::vector<float> values{1, 2, 0.0F};
  EXPECT_NE(train::checksum(values), train::checksum(std::vector<float>{2, 1, 0.0F}));
  EXPECT_NE(train::checksum(values), train::checksum(std::vector<float>{1, 2, -0.0F}));
}

TEST(Schedule, IsStrictInTheFirstRounds) {
  const train::Schedule schedule{};
  EXPECT_EQ(schedule.at(0, 200).ppm(), 8000U);
  EXPECT_EQ(schedule.at(19, 200).ppm(), 8000U);
  EXPECT_EQ(schedule.at(20, 200).ppm(), 408000U);
  EXPECT_EQ(schedule.at(199, 200).ppm(), 408000U);
}

}  // namespace

// SPDX-License-Identifier: GPL-2.0
//
// A perceptron of 784-64-10 units with ReLU, softmax and cross entropy, in fp32.
// Parameters and gradient are flat, in one order: what is sent is what is added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset.hpp"

namespace train {

inline constexpr std::size_t kHidden = 64;
inline constexpr std::size_t kParameters =
    kHidden * kPixels + kHidden + kClasses * kHidden + kClasses;

class Model {
 public:
  explicit Model(std::uint64_t seed);

  [[nodiscard]] std::span<float> parameters() { return parameters_; }
  [[nodiscard]] std::span<const float> parameters() const { return parameters_; }

  // Writes the mean gradient of the images at `batch`, returns their mean loss.
  // `out` has kParameters floats.
  float gradient(const Dataset& data, std::span<const std::uint32_t> batch,
                 std::span<float> out) const;

  struct Quality {
    double loss;      // mean cross entropy
    double accuracy;  // share of the images that were recognised
  };
  [[nodiscard]] Quality evaluate(const Dataset& data) const;

 private:
  std::vector<float> parameters_;
};

// Gradient descent with momentum, v = m v + g and w = w - r v. The rate falls from
// `rate` to zero along half a cosine over all `steps`.
class Descent {
 public:
  Descent(float rate, float momentum, std::uint32_t steps)
      : rate_(rate), momentum_(momentum), steps_(steps), speed_(kParameters) {}

  void step(std::span<float> parameters, std::span<const float> gradient);

 private:
  float rate_;
  float momentum_;
  std::uint32_t steps_;
  std::uint32_t done_ = 0;
  std::vector<float> speed_;
};

double squared_norm(std::span<const float> values);

// FNV-1a, 64 bit, with the bits of a value taken at once in place of bytes.
std::uint64_t checksum(std::span<const float> values);

}  // namespace train

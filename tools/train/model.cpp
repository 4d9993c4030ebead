// SPDX-License-Identifier: GPL-2.0

#include "model.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>

#include "random.hpp"

namespace train {
namespace {

using Matrix = Eigen::MatrixXf;
using Vector = Eigen::VectorXf;

// The four parts of a flat array of parameters.
template <class Float, class MatrixMap, class VectorMap>
struct PartsOf {
  explicit PartsOf(Float* at)
      : w1(at, kHidden, kPixels),
        b1(at + kHidden * kPixels, kHidden),
        w2(at + kHidden * kPixels + kHidden, kClasses, kHidden),
        b2(at + kHidden * kPixels + kHidden + kClasses * kHidden, kClasses) {}
  MatrixMap w1;
  VectorMap b1;
  MatrixMap w2;
  VectorMap b2;
};
using Parts = PartsOf<float, Eigen::Map<Matrix>, Eigen::Map<Vector>>;
using ConstParts = PartsOf<const float, Eigen::Map<const Matrix>, Eigen::Map<const Vector>>;

// Mean and deviation of the training images' pixels.
constexpr float kMean = 0.2860F;
constexpr float kDeviation = 0.3530F;

const std::array<float, 256>& pixel_values() {
  static const auto values = [] {
    std::array<float, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = (static_cast<float>(i) / 255.0F - kMean) / kDeviation;
    return table;
  }();
  return values;
}

Matrix inputs(const Dataset& data, std::span<const std::uint32_t> batch) {
  Matrix x(kPixels, batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i)
    std::transform(data.images.begin() + static_cast<std::ptrdiff_t>(batch[i] * kPixels),
                   data.images.begin() + static_cast<std::ptrdiff_t>((batch[i] + 1) * kPixels),
                   x.col(static_cast<Eigen::Index>(i)).data(),
                   [&](std::uint8_t pixel) { return pixel_values()[pixel]; });
  return x;
}

Matrix hidden(const ConstParts& p, const Matrix& x) {
  return ((p.w1 * x).colwise() + p.b1).cwiseMax(0.0F);
}

// The class scores, less the largest of each image, which softmax does not see.
Matrix scores(const ConstParts& p, const Matrix& h) {
  Matrix z = (p.w2 * h).colwise() + p.b2;
  z.rowwise() -= z.colwise().maxCoeff().eval();
  return z;
}

}  // namespace

Model::Model(std::uint64_t seed) : parameters_(kParameters) {
  Random random(seed);
  Parts p(parameters_.data());
  const float limit1 = std::sqrt(6.0F / kPixels);
  const float limit2 = std::sqrt(6.0F / kHidden);
  for (auto& w : p.w1.reshaped()) w = random.symmetric() * limit1;
  for (auto& w : p.w2.reshaped()) w = random.symmetric() * limit2;
}

float Model::gradient(const Dataset& data, std::span<const std::uint32_t> batch,
                      std::span<float> out) const {
  const ConstParts p(parameters_.data());
  const Matrix x = inputs(data, batch);
  const Matrix h = hidden(p, x);
  Matrix z = scores(p, h);
  const float share = 1.0F / static_cast<float>(batch.size());

  float loss = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto column = z.col(static_cast<Eigen::Index>(i));
    const float own = column[data.labels[batch[i]]];
    column = column.array().exp();
    const float sum = column.sum();
    loss += std::log(sum) - own;
    column *= share / sum;
    column[data.labels[batch[i]]] -= share;
  }

  Parts g(out.data());
  g.w2.noalias() = z * h.transpose();
  g.b2 = z.rowwise().sum();
  Matrix back(kHidden, x.cols());
  back.noalias() = p.w2.transpose() * z;
  back = (h.array() > 0.0F).select(back, 0.0F);
  g.w1.noalias() = back * x.transpose();
  g.b1 = back.rowwise().sum();
  return loss * share;
}

Model::Quality Model::evaluate(const Dataset& data) const {
  constexpr std::size_t kChunk = 500;
  const ConstParts p(parameters_.data());
  double loss = 0;
  std::size_t right = 0;
  std::vector<std::uint32_t> batch;

  for (std::size_t start = 0; start < data.size(); start += kChunk) {
    batch.resize(std::min(kChunk, data.size() - start));
    std::iota(batch.begin(), batch.end(), static_cast<std::uint32_t>(start));
    const Matrix z = scores(p, hidden(p, inputs(data, batch)));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto column = z.col(static_cast<Eigen::Index>(i));
      Eigen::Index best = 0;
      column.maxCoeff(&best);
      right += best == data.labels[batch[i]] ? 1 : 0;
      loss += std::log(column.array().exp().sum()) - column[data.labels[batch[i]]];
    }
  }
  const auto count = static_cast<double>(data.size());
  return {loss / count, static_cast<double>(right) / count};
}

void Descent::step(std::span<float> parameters, std::span<const float> gradient) {
  const float progress = static_cast<float>(done_++) / static_cast<float>(steps_);
  const float rate = rate_ * 0.5F * (1.0F + std::cos(std::numbers::pi_v<float> * progress));
  for (std::size_t i = 0; i < speed_.size(); ++i) {
    speed_[i] = momentum_ * speed_[i] + gradient[i];
    parameters[i] -= rate * speed_[i];
  }
}

double squared_norm(std::span<const float> values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()))
      .squaredNorm();
}

std::uint64_t checksum(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const float value : values) {
    hash ^= std::bit_cast<std::uint32_t>(value);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace train

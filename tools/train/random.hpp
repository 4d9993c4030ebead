// SPDX-License-Identifier: GPL-2.0
//
// SplitMix64: the same numbers from a seed with every standard library, which
// the distributions of <random> do not promise.
#pragma once

#include <cstdint>

namespace train {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Below `bound`, which is far below 2^32: the bias is not worth a loop.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
  }
  // Within -1 and 1.
  float symmetric() { return static_cast<float>(next() >> 40) * 0x1p-23F - 1.0F; }

 private:
  std::uint64_t state_;
};

}  // namespace train

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Seeded inputs for the tests. DBLP_TEST_SEED repeats a run; the seed is
// printed when a test fails.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace dblp::compress::test {

inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* text = std::getenv("DBLP_TEST_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : std::uint64_t{20260711};
  }();
  return seed;
}

class Rng {
 public:
  explicit Rng(std::uint64_t stream = 0) : engine_(test_seed() * 1000003 + stream) {}

  std::uint64_t operator()() { return engine_(); }
  // 0 to below `end`.
  std::uint64_t below(std::uint64_t end) { return engine_() % end; }
  bool chance(double p) { return static_cast<double>(engine_() >> 11) * 0x1p-53 < p; }
  float normal() { return normal_(engine_); }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<float> normal_{0.0F, 1.0F};
};

// Like a gradient: layers of different scale, some zeros, some ties.
inline std::vector<float> gradient(Rng& rng, std::size_t n) {
  std::vector<float> g(n);
  float scale = 1.0F;
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 997 == 0) scale = std::exp2(static_cast<float>(rng.below(12)) - 8.0F);
    const std::uint64_t kind = rng.below(32);
    g[i] = kind == 0 ? 0.0F : kind == 1 ? 0.25F * scale : rng.normal() * scale;
  }
  return g;
}

inline std::string seed_note() { return "DBLP_TEST_SEED=" + std::to_string(test_seed()); }

}  // namespace dblp::compress::test

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// The seed of a randomised test: DBLP_TEST_SEED, or a fixed one.  Printed, so that a
// failure can be repeated.
#ifndef DBLP_TESTS_SEED_H
#define DBLP_TESTS_SEED_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace dblp::test {

using Random = std::mt19937_64;

inline Random seeded() {
  const char* text = std::getenv("DBLP_TEST_SEED");
  const uint64_t seed = text ? std::strtoull(text, nullptr, 0) : 20240229;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return Random(seed);
}

// lo … hi, both included.
inline uint64_t pick(Random& random, uint64_t lo, uint64_t hi) {
  return std::uniform_int_distribution<uint64_t>(lo, hi)(random);
}

}  // namespace dblp::test

#endif  // DBLP_TESTS_SEED_H

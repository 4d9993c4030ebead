// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// The simulator's only source of randomness: the same seed gives the same run on every
// machine, so no distribution of the standard library is used.
#ifndef DBLP_SIM_RNG_H
#define DBLP_SIM_RNG_H

#include <bit>
#include <cstdint>

namespace dblp::sim {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // 0 … n - 1; n is not 0.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }

  // Both ends included.
  uint64_t range(uint64_t lo, uint64_t hi) { return lo + below(hi - lo + 1); }

  // Both ends included; each power of two between them is about as likely as any other.
  uint64_t log_range(uint64_t lo, uint64_t hi) {
    const int low_bits = std::bit_width(lo);
    const int bits = static_cast<int>(range(low_bits, std::bit_width(hi)));
    const uint64_t floor = bits ? 1ULL << (bits - 1) : 0;
    const uint64_t ceil = bits ? floor * 2 - 1 : 0;
    return range(floor < lo ? lo : floor, ceil > hi ? hi : ceil);
  }

  bool chance(uint32_t ppm) { return ppm && below(1000000) < ppm; }

 private:
  uint64_t state_;
};

}  // namespace dblp::sim

#endif  // DBLP_SIM_RNG_H

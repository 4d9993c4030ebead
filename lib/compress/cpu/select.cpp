// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "compress/cpu/select.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace dblp::compress {
namespace {

// Of a smaller tensor every element is a candidate.
constexpr std::size_t kSmall = 65536;
// Single elements, evenly spaced: neighbours are alike and tell little.
constexpr std::size_t kSamples = 32768;
// So much the kernels may write behind the last candidate.
constexpr std::size_t kSlack = 64;

// How many samples are above the threshold that is tried. The k-th largest lies
// within 5 standard deviations of its expected place in the sample; the second
// try is for tensors whose period is that of the sample.
std::size_t sample_rank(std::size_t n, std::size_t k, bool again) {
  const double expected =
      static_cast<double>(k) * static_cast<double>(kSamples) / static_cast<double>(n);
  const double margin =
      again ? expected + 16 * std::sqrt(expected) + 64 : 5 * std::sqrt(expected) + 8;
  return static_cast<std::size_t>(expected + margin);
}

// 31-bit keys in three digits.
constexpr u32 kDigitBits = 11;
constexpr u32 kDigits = 1U << kDigitBits;
using Histogram = std::array<u32, kDigits>;
// Neighbours often have the same digit; with one table each increment would
// wait for the one before.
constexpr std::size_t kBanks = 4;

struct Cut {
  u32 threshold;     // keys above it are selected,
  std::size_t ties;  // and the first so many that equal it
};

// The k-th largest key, k >= 1 and at most the number of keys. key_at(i) must
// be cheap: it is asked three times.
template <class KeyAt>
Cut find_cut(std::size_t n, std::size_t k, KeyAt key_at) {
  u32 prefix = 0;
  std::size_t wanted = k;
  for (const u32 shift : {20U, 9U, 0U}) {
    const u32 bits = shift == 0 ? 9 : kDigitBits;
    const u32 mask = (1U << bits) - 1;
    std::array<Histogram, kBanks> banks{};
    const u32 above = shift + bits;
    for (std::size_t i = 0; i < n; ++i) {
      const u32 key = key_at(i);
      // No key is as large as 2^31, so that the first digit matches all.
      if (above < 31 && key >> above != prefix >> above) continue;
      ++banks[i % kBanks][key >> shift & mask];
    }
    u32 digit = mask;
    for (;; --digit) {
      std::size_t count = 0;
      for (const Histogram& bank : banks) count += bank[digit];
      if (count >= wanted) break;
      wanted -= count;
    }
    prefix |= digit << shift;
  }
  return {prefix, wanted};
}

// A threshold that about `rank` samples reach.
u32 sample_threshold(const float* values, const float* addend, std::size_t n, std::size_t rank,
                     std::span<u32> scratch) {
  const std::size_t step = n / kSamples;
  for (std::size_t i = 0; i < kSamples; ++i) {
    // An odd multiple in the low bits: a period of the tensor that divides the
    // step does not show the same column each time.
    const std::size_t at = i * step + i * 2654435761U % step;
    scratch[i] = magnitude_key(addend == nullptr ? values[at] : values[at] + addend[at]);
  }
  if (rank >= kSamples) return 1;
  const auto nth = scratch.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(scratch.begin(), nth, scratch.begin() + kSamples, std::greater<>());
  return std::max(*nth, 1U);
}

std::size_t take(std::size_t n, const Cut& cut, const u32* key, u32* index) {
  std::size_t count = 0;
  std::size_t ties = cut.ties;
  for (std::size_t i = 0; i < n; ++i) {
    const bool equal = key[i] == cut.threshold && ties > 0;
    index[count] = index[i];
    ties -= equal ? 1 : 0;
    count += key[i] > cut.threshold || equal ? 1 : 0;
  }
  return count;
}

std::size_t select_everywhere(const float* values, std::size_t n, std::size_t k, u32* index) {
  std::size_t nonzero = 0;
  for (std::size_t i = 0; i < n; ++i) nonzero += magnitude_key(values[i]) != 0 ? 1 : 0;
  k = std::min(k, nonzero);
  if (k == 0) return 0;
  const Cut cut = find_cut(n, k, [&](std::size_t i) { return magnitude_key(values[i]); });
  std::size_t count = 0;
  std::size_t ties = cut.ties;
  for (std::size_t i = 0; i < n && count < k; ++i) {
    const u32 key = magnitude_key(values[i]);
    if (key < cut.threshold) continue;
    if (key == cut.threshold) {
      if (ties == 0) continue;
      --ties;
    }
    index[count++] = static_cast<u32>(i);
  }
  return count;
}

// `sum` is null, or values itself: then values += addend in the first pass.
std::size_t select(const Kernels& kernels, const float* values, float* sum, const float* addend,
                   std::size_t n, std::size_t k, const SelectMemory& memory) {
  u32* const index = memory.index.data();
  u32* const key = memory.key.data();
  const std::size_t room = memory.index.size();
  u32 threshold = 1;
  if (n > kSmall)
    threshold = sample_threshold(values, addend, n, sample_rank(n, k, false), memory.key);
  std::size_t count = sum != nullptr
                          ? kernels.add_candidates(sum, addend, n, threshold, index, key, room)
                          : kernels.candidates(values, n, threshold, index, key, room);
  if (count < k && threshold > 1) {
    threshold = sample_threshold(values, nullptr, n, sample_rank(n, k, true), memory.key);
    count = kernels.candidates(values, n, threshold, index, key, room);
  }
  if (count > room || (count < k && threshold > 1)) return select_everywhere(values, n, k, index);
  if (count <= k) return count;
  return take(count, find_cut(count, k, [&](std::size_t i) { return key[i]; }), key, index);
}

}  // namespace

std::size_t candidate_room(std::size_t n, std::size_t k) {
  if (n <= kSmall) return n + kSlack;
  const double rank = static_cast<double>(sample_rank(n, k, false));
  const double per_sample = static_cast<double>(n) / static_cast<double>(kSamples);
  const std::size_t room =
      static_cast<std::size_t>((rank + 8 * std::sqrt(rank) + 16) * per_sample) + kSlack;
  return std::min(n + kSlack, std::max({room, kSamples, k + kSlack}));
}

std::size_t select_top(const Kernels& kernels, const float* values, std::size_t n, std::size_t k,
                       const SelectMemory& memory) {
  if (k == 0) return 0;
  return select(kernels, values, nullptr, nullptr, n, k, memory);
}

std::size_t add_and_select_top(const Kernels& kernels, float* values, const float* addend,
                               std::size_t n, std::size_t k, const SelectMemory& memory) {
  if (k == 0) {
    kernels.add(values, addend, n);
    return 0;
  }
  return select(kernels, values, values, addend, n, k, memory);
}

}  // namespace dblp::compress

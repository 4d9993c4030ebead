// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// The selection against a sort.

#include "compress/cpu/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compress/tests/random.hpp"

namespace dblp::compress::test {
namespace {

// All indices, the largest magnitude first, of equal ones the lowest index.
std::vector<u32> sorted(const std::vector<float>& x) {
  std::vector<u32> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](u32 a, u32 b) { return magnitude_key(x[a]) > magnitude_key(x[b]); });
  while (!order.empty() && magnitude_key(x[order.back()]) == 0) order.pop_back();
  return order;
}

std::vector<u32> first_of(const std::vector<u32>& order, std::size_t k) {
  std::vector<u32> index(order.begin(),
                         order.begin() + static_cast<std::ptrdiff_t>(std::min(k, order.size())));
  std::sort(index.begin(), index.end());
  return index;
}

std::vector<u32> selection(const Kernels& kernels, std::vector<float> x,
                           const std::vector<float>* addend, std::size_t k, std::size_t max) {
  std::vector<u32> index(candidate_room(x.size(), max));
  std::vector<u32> key(index.size());
  const SelectMemory memory{index, key};
  const std::size_t count =
      addend != nullptr ? add_and_select_top(kernels, x.data(), addend->data(), x.size(), k, memory)
                        : select_top(kernels, x.data(), x.size(), k, memory);
  index.resize(count);
  return index;
}

struct Input {
  const char* name;
  std::function<void(Rng&, std::vector<float>&)> fill;
};

const Input kInputs[] = {
    {"gradient", [](Rng& rng, std::vector<float>& x) { x = gradient(rng, x.size()); }},
    {"all equal", [](Rng&, std::vector<float>& x) { std::fill(x.begin(), x.end(), -0.5F); }},
    {"all zero", [](Rng&, std::vector<float>& x) { std::fill(x.begin(), x.end(), 0.0F); }},
    {"nearly all zero",
     [](Rng& rng, std::vector<float>& x) {
       std::fill(x.begin(), x.end(), 0.0F);
       for (int i = 0; i < 50; ++i) x[rng.below(x.size())] = rng.normal();
     }},
    {"few levels",
     [](Rng& rng, std::vector<float>& x) {
       for (float& v : x) v = static_cast<float>(rng.below(5)) - 2.0F;
     }},
    {"NaN and infinity",
     [](Rng& rng, std::vector<float>& x) {
       for (float& v : x)
         v = rng.chance(0.01) ? (rng.chance(0.5) ? std::nanf("7") : -HUGE_VALF) : rng.normal();
     }},
    {"denormal",
     [](Rng& rng, std::vector<float>& x) {
       for (float& v : x) v = float_of(static_cast<u32>(rng.below(1000)));
     }},
    {"large ones between the samples",
     [](Rng& rng, std::vector<float>& x) {
       for (std::size_t i = 0; i < x.size(); ++i) x[i] = rng.normal() * 1e-3F;
       for (std::size_t i = 0; i < x.size() / 2; ++i) x[i] *= 1e-6F;
     }},
    {"rising",
     [](Rng&, std::vector<float>& x) {
       for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
     }},
};

TEST(Select, ExactLikeASort) {
  Rng rng(11);
  for (const Input& input : kInputs) {
    for (const std::size_t n : {1U, 63U, 1000U, 65537U, 100000U}) {
      std::vector<float> x(n);
      input.fill(rng, x);
      std::vector<float> addend(n, 0.0F);
      for (std::size_t i = 0; i < n; i += 3) addend[i] = rng.normal();
      std::vector<float> sum = x;
      for (std::size_t i = 0; i < n; ++i) sum[i] += addend[i];
      const std::vector<u32> order = sorted(x);
      const std::vector<u32> sum_order = sorted(sum);
      for (const std::size_t k : {std::size_t{1}, n / 1000, n / 100, n / 10, n}) {
        if (k == 0) continue;
        for (const Kernels* kernels : {&scalar_kernels(), avx2_kernels(), avx512_kernels()}) {
          if (kernels == nullptr || !supports(*kernels)) continue;
          ASSERT_TRUE(selection(*kernels, x, nullptr, k, n) == first_of(order, k))
              << kernels->name << ", " << input.name << ", n " << n << ", k " << k;
          // Room for exactly this many: the fall-backs.
          ASSERT_TRUE(selection(*kernels, x, &addend, k, k) == first_of(sum_order, k))
              << kernels->name << ", " << input.name << ", n " << n << ", k " << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dblp::compress::test

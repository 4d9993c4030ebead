// SPDX-License-Identifier: GPL-2.0
//
// A data set that is easy to learn and needs no files: one random pattern for
// each class, with noise.
#pragma once

#include "dataset.hpp"
#include "random.hpp"

namespace train {

inline Dataset synthetic(std::size_t images, std::uint64_t seed) {
  Random patterns(99);
  std::vector<std::uint8_t> pattern(kClasses * kPixels);
  for (auto& pixel : pattern) pixel = static_cast<std::uint8_t>(patterns.below(256));

  Random random(seed);
  Dataset data;
  for (std::size_t i = 0; i < images; ++i) {
    const std::uint32_t label = random.below(kClasses);
    data.labels.push_back(static_cast<std::uint8_t>(label));
    for (std::size_t j = 0; j < kPixels; ++j)
      data.images.push_back(
          static_cast<std::uint8_t>((pattern[label * kPixels + j] + 3 * random.below(256)) / 4));
  }
  return data;
}

}  // namespace train

// SPDX-License-Identifier: GPL-2.0
//
// Images and labels in the IDX format of MNIST and Fashion-MNIST.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dblp/result.hpp"

namespace train {

inline constexpr std::size_t kPixels = 28 * 28;
inline constexpr std::size_t kClasses = 10;

struct Dataset {
  std::vector<std::uint8_t> images;  // kPixels for each label
  std::vector<std::uint8_t> labels;  // below kClasses

  [[nodiscard]] std::size_t size() const { return labels.size(); }
};

enum class Split { kTrain, kTest };

// Reads the two files of a split from `folder`, with or without ".gz": the first
// `images`, or all of them. The error names the file and what is wrong with it.
inline constexpr std::size_t kAllImages = 0;
dblp::Result<Dataset> load_dataset(const std::filesystem::path& folder, Split split,
                                   std::size_t images = kAllImages);

}  // namespace train

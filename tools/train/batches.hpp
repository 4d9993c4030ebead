// SPDX-License-Identifier: GPL-2.0
//
// Which images a worker takes in which round: its share of the data set, in an
// order that the seed decides and that is new in each pass over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace train {

class Batches {
 public:
  // Worker `rank` of `workers` gets every image i with i % workers == rank, so
  // that no image is taken twice in a pass. A share has at least one batch.
  Batches(std::size_t images, std::size_t workers, std::size_t rank, std::size_t batch,
          std::uint64_t seed);

  // Valid until the next call.
  std::span<const std::uint32_t> next();

 private:
  void shuffle();

  std::vector<std::uint32_t> order_;
  std::size_t batch_;
  std::size_t position_ = 0;
  std::uint64_t seed_;
  std::uint64_t pass_ = 0;
};

}  // namespace train

// SPDX-License-Identifier: GPL-2.0

#include "batches.hpp"

#include <stdexcept>
#include <utility>

#include "random.hpp"

namespace train {

Batches::Batches(std::size_t images, std::size_t workers, std::size_t rank, std::size_t batch,
                 std::uint64_t seed)
    : batch_(batch), seed_(seed * workers + rank) {
  for (std::size_t i = rank; i < images; i += workers)
    order_.push_back(static_cast<std::uint32_t>(i));
  if (batch == 0 || order_.size() < batch)
    throw std::invalid_argument("a worker's share has less than one batch");
  shuffle();
}

std::span<const std::uint32_t> Batches::next() {
  if (position_ + batch_ > order_.size()) shuffle();
  const std::span<const std::uint32_t> batch(order_.data() + position_, batch_);
  position_ += batch_;
  return batch;
}

void Batches::shuffle() {
  Random random(seed_ ^ pass_++ << 32);
  for (std::size_t i = order_.size(); i > 1; --i)
    std::swap(order_[i - 1], order_[random.below(static_cast<std::uint32_t>(i))]);
  position_ = 0;
}

}  // namespace train

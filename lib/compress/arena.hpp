// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Cuts a caller's workspace into arrays. The same calls on Arena::measure()
// give the size that is needed, so that the two cannot differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dblp::compress {

class Arena {
 public:
  static Arena measure() { return Arena(nullptr, SIZE_MAX); }
  explicit Arena(std::span<std::byte> memory) : Arena(memory.data(), memory.size()) {}

  // Aligned to a cache line. Empty if there is no memory, see good().
  template <class T>
  std::span<T> take(std::size_t count) {
    const std::uintptr_t at = (base_ + used_ + kAlign - 1) / kAlign * kAlign;
    used_ = at - base_ + count * sizeof(T);
    if (base_ == 0 || used_ > size_) return {};
    return {reinterpret_cast<T*>(at), count};
  }

  [[nodiscard]] bool good() const { return used_ <= size_; }
  // Enough wherever the workspace begins.
  [[nodiscard]] std::size_t needed() const { return used_ + kAlign; }

 private:
  static constexpr std::size_t kAlign = 64;

  Arena(std::byte* memory, std::size_t size)
      : base_(reinterpret_cast<std::uintptr_t>(memory)), size_(size) {}

  std::uintptr_t base_;
  std::size_t size_;
  std::size_t used_ = 0;
};

}  // namespace dblp::compress

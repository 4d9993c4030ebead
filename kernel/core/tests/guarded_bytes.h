// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// A copy of some bytes that ends where readable memory ends: the first byte read behind
// it faults, with or without a sanitizer.
#ifndef DBLP_TESTS_GUARDED_BYTES_H
#define DBLP_TESTS_GUARDED_BYTES_H

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace dblp::test {

class GuardedBytes {
 public:
  explicit GuardedBytes(std::span<const uint8_t> bytes) : size_(bytes.size()) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t usable = (size_ / page + 1) * page;
    mapped_ = usable + page;
    map_ = static_cast<uint8_t*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (map_ == MAP_FAILED || mprotect(map_ + usable, page, PROT_NONE)) {
      std::perror("GuardedBytes");
      std::abort();
    }
    data_ = map_ + usable - size_;
    if (size_) std::memcpy(data_, bytes.data(), size_);
  }
  ~GuardedBytes() { munmap(map_, mapped_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  const uint8_t* data() const { return data_; }
  uint8_t* data() { return data_; }
  uint32_t size() const { return static_cast<uint32_t>(size_); }

 private:
  size_t size_;
  size_t mapped_;
  uint8_t* map_;
  uint8_t* data_;
};

}  // namespace dblp::test

#endif  // DBLP_TESTS_GUARDED_BYTES_H

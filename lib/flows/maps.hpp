// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// The pinned maps and the locks on their folder, for who reads and for who writes them.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "dblp/result.hpp"

namespace dblp {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct MapKind {
  const char* file;    // in the folder
  const char* prefix;  // of the name, before the version
  const char* name;    // of this version
  std::uint32_t type, key_size, value_size;
};

extern const MapKind flows_kind, changes_kind, state_kind;

// An existing map; errors as those of FlowReader::open().
Result<Fd> open_map(const std::string& folder, const MapKind& kind);

// The lock on a folder of the BPF file system; it ends with the process that holds it.
// EBUSY if another has it. `exclusive` is for the one who writes.
Result<Fd> lock_folder(const std::string& folder, bool exclusive);

// Of a map: entries it may have.
Result<std::uint32_t> map_limit(const Fd& map);

}  // namespace dblp

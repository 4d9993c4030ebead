// SPDX-License-Identifier: GPL-2.0
//
// One line on standard error that says how far a long run is, if somebody watches.
#pragma once

#include <cstdint>

namespace perf {

class Progress {
 public:
  explicit Progress(bool quiet = false);
  ~Progress() { clear(); }

  void show(std::uint64_t done, std::uint64_t all, const char* what);
  // Takes the line away.
  void clear();

 private:
  bool on_;
  bool shown_ = false;
  std::int64_t next_ns_;
};

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0
//
// One line on standard error that says how far a long run is, if somebody watches.
#pragma once

#include <cstdint>

namespace perf {

class Progress {
 public:
  Progress();
  ~Progress() { clear(); }

  // What is under way: number `done` (from 0) of `all` rounds or iterations.
  void at(std::uint64_t done, std::uint64_t all, const char* what);
  // Shows it, if it is time to.
  void tick();
  // When tick() wants to be called next.
  [[nodiscard]] std::int64_t next_ns() const { return next_ns_; }
  // Takes the line away.
  void clear();

 private:
  bool on_;
  bool shown_ = false;
  std::int64_t start_ns_;
  std::int64_t next_ns_;
  std::uint64_t done_ = 0;
  std::uint64_t all_ = 0;
  const char* what_ = "";
};

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "clock.hpp"

namespace perf {
namespace {

// A run that ends sooner says nothing.
constexpr std::int64_t kFirst = 3 * kSecond;
constexpr std::int64_t kEvery = kSecond / 4;

}  // namespace

Progress::Progress(bool quiet)
    : on_(!quiet && isatty(STDERR_FILENO) == 1), next_ns_(on_ ? now_ns() + kFirst : 0) {}

void Progress::show(std::uint64_t done, std::uint64_t all, const char* what) {
  if (!on_ || now_ns() < next_ns_) return;
  next_ns_ = now_ns() + kEvery;
  fmt::print(stderr, "\r{} of {} {}\033[K", done, all, what);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace perf

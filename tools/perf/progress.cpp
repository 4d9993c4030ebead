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
constexpr std::int64_t kEvery = kSecond / 2;

}  // namespace

Progress::Progress()
    : on_(isatty(STDERR_FILENO) == 1),
      start_ns_(now_ns()),
      next_ns_(on_ ? start_ns_ + kFirst : kNever) {}

void Progress::at(std::uint64_t done, std::uint64_t all, const char* what) {
  done_ = done;
  all_ = all;
  what_ = what;
  tick();
}

void Progress::tick() {
  if (!on_) return;
  const std::int64_t now = now_ns();
  if (now < next_ns_) return;
  next_ns_ = now + kEvery;
  fmt::print(stderr, "\r{} {} of {}, {} s so far\033[K", what_, done_ + 1, all_,
             (now - start_ns_) / kSecond);
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

// SPDX-License-Identifier: GPL-2.0

#include "clock_offset.hpp"

#include "clock.hpp"
#include "config.hpp"

namespace perf {

ClockOffset measure_clock(Control& control) {
  constexpr int kQuestions = 16;
  constexpr std::int64_t kPatience = 10 * kSecond;
  ClockOffset best{.ns = 0, .error_ns = kNever};
  for (int i = 0; i < kQuestions; ++i) {
    const std::int64_t before = now_ns();
    control.send({{"type", "ping"}});
    const Json pong = control.expect("pong", before + kPatience);
    const std::int64_t after = now_ns();
    const auto there = static_cast<std::int64_t>(get_number(pong, "now_ns", kNever / 2));
    const std::int64_t error = (after - before + 1) / 2;
    if (error < best.error_ns) best = {there - before - (after - before) / 2, error};
  }
  return best;
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0
//
// The figures that all reports take from a result.
#pragma once

#include <optional>

#include "ladder.hpp"
#include "options.hpp"
#include "result.hpp"

namespace perf {

struct Summary {
  double seconds = 0;       // all rounds, or all iterations
  std::uint64_t bytes = 0;  // offered in that time
  std::uint64_t delivered = 0;
  std::uint64_t missing = 0;
  std::uint64_t messages = 0;
  double bits_per_second = 0;  // delivered
  std::optional<std::uint64_t> retransmitted;
  Ladder round_ns;  // of rounds or transactions
  // Of repeated iterations: the half width of the confidence interval, in percent of
  // the mean. Unset if there was one only.
  std::optional<double> confidence_width;
};

Summary summarize(const Options& options, const Result& result);

// bits/s of an iteration; for RR transactions/s.
double rate_of(const Options& options, const Iteration& iteration);

}  // namespace perf

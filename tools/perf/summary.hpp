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
  std::optional<std::uint64_t> tolerated;
  Ladder round_ns;                       // of rounds or transactions
  std::optional<std::int64_t> first_ns;  // of the very first round: a cold flow
  // Of repeated iterations: how wide the confidence interval of the rate is, in percent
  // of it. Unset if there was one only.
  std::optional<double> confidence_width;
  double rate = 0;  // mean of the iterations, see rate_of()
};

// The level that is meant when none is asked for, in percent.
inline constexpr double kUsualLevel = 95;

Summary summarize(const Options& options, const Result& result);

// Were more iterations needed than allowed?
bool confidence_missed(const Options& options, const Summary& summary);

// bits/s of an iteration; for RR transactions/s.
double rate_of(const Options& options, const Iteration& iteration);

}  // namespace perf

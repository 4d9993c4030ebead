// SPDX-License-Identifier: GPL-2.0

#include "summary.hpp"

#include <vector>

#include "clock.hpp"
#include "confidence.hpp"

namespace perf {

double rate_of(const Options& options, const Iteration& iteration) {
  if (iteration.seconds <= 0) return 0;
  const double amount = options.config.workload.test == Test::kRr
                            ? static_cast<double>(iteration.messages)
                            : static_cast<double>(iteration.bytes) * 8;
  return amount / iteration.seconds;
}

Summary summarize(const Options& options, const Result& result) {
  Summary summary;
  std::vector<std::int64_t> times;
  for (const auto& round : result.rounds) {
    times.push_back(round.end_ns - round.start_ns);
    summary.bytes += round.bytes;
  }
  summary.round_ns = make_ladder(times);
  summary.retransmitted = result.traffic.retransmitted;
  if (options.config.workload.timed()) {
    std::vector<double> rates;
    for (const auto& one : result.iterations) {
      summary.seconds += one.seconds;
      summary.delivered += one.bytes;
      summary.missing += one.missing;
      summary.messages += one.messages;
      rates.push_back(rate_of(options, one));
    }
    if (options.config.workload.test == Test::kRr)
      summary.delivered = summary.bytes - summary.missing;
    else
      summary.bytes = summary.delivered + summary.missing;
    if (rates.size() > 1)
      summary.confidence_width =
          confidence_width(rates, options.confidence_level > 0 ? options.confidence_level : 95);
  } else {
    std::uint64_t retransmitted = 0;
    for (const auto& round : result.rounds) {
      summary.seconds +=
          static_cast<double>(round.end_ns - round.start_ns) / static_cast<double>(kSecond);
      summary.delivered += round.delivered;
      summary.missing += round.missing;
      retransmitted += round.retransmitted;
    }
    summary.messages = result.rounds.size();
    if (summary.retransmitted) summary.retransmitted = retransmitted;
  }
  if (summary.seconds > 0)
    summary.bits_per_second = static_cast<double>(summary.delivered) * 8 / summary.seconds;
  return summary;
}

}  // namespace perf

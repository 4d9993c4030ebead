// SPDX-License-Identifier: GPL-2.0

#include <fmt/format.h>

#include "clock.hpp"
#include "report.hpp"
#include "summary.hpp"

namespace perf {
namespace {

std::string milliseconds(std::int64_t ns) {
  return fmt::format("{:.3f}", static_cast<double>(ns) / static_cast<double>(kMillisecond));
}

std::string ladder_line(const char* name, const Ladder& ladder) {
  return fmt::format("{:<12}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}\n", name, ladder.count,
                     milliseconds(ladder.p50), milliseconds(ladder.p90), milliseconds(ladder.p99),
                     milliseconds(ladder.p999), milliseconds(ladder.max));
}

}  // namespace

std::string report_text(const Options& options, const Result& result) {
  const Summary summary = summarize(options, result);
  const auto& workload = options.config.workload;
  std::string text;
  if (options.banner)
    text += fmt::format("{} over {}: {} bytes, {} hosts\n\n", name_of(workload.test),
                        options.config.transport.name, workload.bytes, result.hosts.size());
  if (summary.round_ns.count > 0) {
    if (options.banner)
      text += fmt::format("{:<12}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "ms", "count", "p50",
                          "p90", "p99", "p99.9", "max");
    text += ladder_line(workload.test == Test::kRr ? "transaction" : "round", summary.round_ns);
  }
  text += fmt::format("{:.6f} s, {:.3f} Mbit/s\n", summary.seconds, summary.bits_per_second / 1e6);
  return text;
}

std::string report_selected(const Options& options, const Result& result) {
  (void)result;
  (void)options;
  return "";
}

}  // namespace perf

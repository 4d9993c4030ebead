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

std::string banner(const Options& options, const Result& result) {
  const auto& workload = options.config.workload;
  std::string text = fmt::format("{} over {}, seed {}\n", name_of(workload.test),
                                 options.config.transport.name, workload.seed);
  for (std::size_t i = 0; i < result.hosts.size(); ++i) {
    const auto& host = result.hosts[i];
    text += fmt::format("  {} {} ({}, Linux {})", i == 0 ? "client" : "server", host.address,
                        host.about.value("name", "?"), host.about.value("kernel", "?"));
    if (!host.same_clock)
      text += fmt::format(", clock known to {} us", (host.clock_error_ns + 999) / 1000);
    text += '\n';
  }
  return text + '\n';
}

std::string times(const Options& options, const Summary& summary) {
  constexpr const char* kColumns = "{:<12}{:>9}{:>11}{:>11}{:>11}{:>11}{:>11}\n";
  const auto& ladder = summary.round_ns;
  const bool rr = options.config.workload.test == TestKind::kRr;
  std::string text;
  if (options.banner)
    text += fmt::format(fmt::runtime(kColumns), "ms", "count", "p50", "p90", "p99", "p99.9", "max");
  text += fmt::format(fmt::runtime(kColumns), rr ? "transaction" : "round", ladder.count,
                      milliseconds(ladder.p50), milliseconds(ladder.p90), milliseconds(ladder.p99),
                      milliseconds(ladder.p999), milliseconds(ladder.max));
  if (summary.first_ns)
    text += fmt::format("{:<12}{:>9}{:>11}\n", "first", 1, milliseconds(*summary.first_ns));
  return text;
}

std::string intervals(const Options& options, const Result& result) {
  const double length = static_cast<double>(options.config.workload.interval_us) / 1e6;
  std::string text;
  for (const auto& one : result.iterations)
    for (std::size_t i = 0; i < one.intervals.size(); ++i)
      text += fmt::format("{:>10.3f} s {:>14.3f} Mbit/s\n", static_cast<double>(i + 1) * length,
                          static_cast<double>(one.intervals[i]) * 8 / length / 1e6);
  return text;
}

std::string bytes(const Result& result, const Summary& summary) {
  std::string text =
      fmt::format("{:>16} bytes offered\n{:>16} delivered\n", summary.bytes, summary.delivered);
  text += fmt::format("{:>16} missing", summary.missing);
  if (summary.tolerated && *summary.tolerated > 0)
    text += fmt::format(", {} of them tolerated", *summary.tolerated);
  text += '\n';
  if (summary.retransmitted) text += fmt::format("{:>16} retransmitted\n", *summary.retransmitted);
  if (result.below > 0) text += fmt::format("{:>16} messages below their bound\n", result.below);
  return text;
}

}  // namespace

std::string report_text(const Options& options, const Result& result) {
  const Summary summary = summarize(options, result);
  std::string text;
  if (options.banner) text += banner(options, result);
  text += intervals(options, result);
  if (summary.round_ns.count > 0) text += times(options, summary);
  text += bytes(result, summary);
  if (options.config.workload.test == TestKind::kRr)
    text += fmt::format("{:>16.3f} transactions/s", summary.rate);
  else if (options.config.workload.timed())
    text += fmt::format("{:>16.3f} Mbit/s", summary.rate / 1e6);
  else
    text += fmt::format("{:>16.3f} Mbit/s", summary.bits_per_second / 1e6);
  if (summary.confidence_width)
    text += fmt::format(", {} iterations, known to {:.1f} % with {} %", result.iterations.size(),
                        *summary.confidence_width / 2,
                        options.confidence_level > 0 ? options.confidence_level : kUsualLevel);
  text += '\n';
  if (confidence_missed(options, summary))
    text +=
        fmt::format("WARNING: the desired confidence was not reached: {:.1f} % wide, not {} %\n",
                    *summary.confidence_width, options.confidence_width);
  if (!options.config.workload.verify) text += "WARNING: payloads were not verified\n";
  return text;
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "failure.hpp"
#include "report.hpp"
#include "summary.hpp"

namespace perf {
namespace {

struct Sources {
  const Options& options;
  const Result& result;
  Summary summary;
};

using Make = std::string (*)(const Sources&);

std::string microseconds(std::int64_t ns) {
  return fmt::format("{:.3f}", static_cast<double>(ns) / 1000);
}

std::string known(const std::optional<std::uint64_t>& value) {
  return value ? fmt::format("{}", *value) : "unknown";
}

// Names are netperf's where it has one. Latencies are in microseconds.
constexpr std::array<std::pair<std::string_view, Make>, 24> kSelectors{{
    {"TEST", [](const Sources& s) { return std::string(name_of(s.options.config.workload.test)); }},
    {"PROTOCOL", [](const Sources& s) { return s.options.config.transport.name; }},
    {"ELAPSED_TIME", [](const Sources& s) { return fmt::format("{:.6f}", s.summary.seconds); }},
    {"THROUGHPUT",
     [](const Sources& s) { return fmt::format("{:.3f}", s.summary.bits_per_second / 1e6); }},
    {"THROUGHPUT_UNITS", [](const Sources&) { return std::string("10^6bits/s"); }},
    {"TRANSACTION_RATE",
     [](const Sources& s) {
       return fmt::format(
           "{:.3f}",
           s.summary.seconds > 0 ? static_cast<double>(s.summary.messages) / s.summary.seconds : 0);
     }},
    {"MESSAGES", [](const Sources& s) { return fmt::format("{}", s.summary.messages); }},
    {"MIN_LATENCY", [](const Sources& s) { return microseconds(s.summary.round_ns.min); }},
    {"MEAN_LATENCY",
     [](const Sources& s) { return fmt::format("{:.3f}", s.summary.round_ns.mean / 1000); }},
    {"STDDEV_LATENCY",
     [](const Sources& s) { return fmt::format("{:.3f}", s.summary.round_ns.stddev / 1000); }},
    {"P50_LATENCY", [](const Sources& s) { return microseconds(s.summary.round_ns.p50); }},
    {"P90_LATENCY", [](const Sources& s) { return microseconds(s.summary.round_ns.p90); }},
    {"P99_LATENCY", [](const Sources& s) { return microseconds(s.summary.round_ns.p99); }},
    {"P99_9_LATENCY", [](const Sources& s) { return microseconds(s.summary.round_ns.p999); }},
    {"MAX_LATENCY", [](const Sources& s) { return microseconds(s.summary.round_ns.max); }},
    {"FIRST_LATENCY",
     [](const Sources& s) { return microseconds(s.summary.first_ns.value_or(0)); }},
    {"OFFERED_BYTES", [](const Sources& s) { return fmt::format("{}", s.summary.bytes); }},
    {"DELIVERED_BYTES", [](const Sources& s) { return fmt::format("{}", s.summary.delivered); }},
    {"MISSING_BYTES", [](const Sources& s) { return fmt::format("{}", s.summary.missing); }},
    {"TOLERATED_BYTES", [](const Sources& s) { return known(s.summary.tolerated); }},
    {"RETRANSMITTED_BYTES", [](const Sources& s) { return known(s.summary.retransmitted); }},
    {"VERIFIED_BYTES", [](const Sources& s) { return fmt::format("{}", s.result.verified); }},
    {"CONFIDENCE_ITERATION",
     [](const Sources& s) { return fmt::format("{}", s.result.iterations.size()); }},
    {"THROUGHPUT_CONFID",
     [](const Sources& s) {
       return fmt::format("{:.3f}", s.summary.confidence_width.value_or(-1));
     }},
}};

std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const auto& [name, make] : kSelectors) all.push_back(name);
  return all;
}

Make find(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  for (const auto& [candidate, make] : kSelectors)
    if (name == candidate) return make;
  return nullptr;
}

}  // namespace

std::string selector_list() { return fmt::format("{}\n", fmt::join(names(), "\n")); }

void check_selectors(const std::vector<std::string>& selected) {
  for (const auto& name : selected)
    if (find(name) == nullptr)
      throw Failure(fmt::format("no selector '{}': -k ? lists them", name));
}

std::string report_selected(const Options& options, const Result& result) {
  const Sources sources{options, result, summarize(options, result)};
  std::vector<std::string> values;
  for (const auto& name : options.selectors) values.push_back(find(name)(sources));
  if (options.csv)
    return fmt::format("{}\n{}\n", fmt::join(options.selectors, ","), fmt::join(values, ","));
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += fmt::format("{}={}\n", options.selectors[i], values[i]);
  return text;
}

}  // namespace perf

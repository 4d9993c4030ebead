// SPDX-License-Identifier: GPL-2.0

#include <cmath>

#include "clock.hpp"
#include "report.hpp"
#include "summary.hpp"
#include "version.hpp"

namespace perf {
namespace {

constexpr int kSchema = 1;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kSecond); }

Json round_json(const Round& round) {
  return {{"start_ns", round.start_ns},     {"end_ns", round.end_ns},
          {"bytes", round.bytes},           {"delivered_bytes", round.delivered},
          {"missing_bytes", round.missing}, {"retransmitted_bytes", round.retransmitted}};
}

Json rounds_json(const std::vector<Round>& rounds) {
  Json list = Json::array();
  for (const auto& round : rounds) list.push_back(round_json(round));
  return list;
}

Json ladder_json(const Ladder& ladder) {
  return {{"count", ladder.count},
          {"mean_s", ladder.mean / static_cast<double>(kSecond)},
          {"stddev_s", ladder.stddev / static_cast<double>(kSecond)},
          {"min_s", seconds(ladder.min)},
          {"p50_s", seconds(ladder.p50)},
          {"p90_s", seconds(ladder.p90)},
          {"p99_s", seconds(ladder.p99)},
          {"p99_9_s", seconds(ladder.p999)},
          {"max_s", seconds(ladder.max)}};
}

Json start_json(const Options& options, const Result& result) {
  Json hosts = Json::array();
  for (const auto& host : result.hosts) {
    Json about = host.about;
    about.erase("clock");
    hosts.push_back({{"host", host.name},
                     {"address", host.address},
                     {"about", about},
                     {"clock", host.same_clock ? "shared" : "estimated"},
                     {"clock_error_ns", host.clock_error_ns}});
  }
  const Json config = to_json(options.config);
  return {{"version", std::string("dblp-perf ") + kVersion},
          {"hosts", hosts},
          {"test_start", config["workload"]},
          {"transport", config["transport"]}};
}

Json intervals_json(const Options& options, const Result& result) {
  Json list = Json::array();
  const double length = static_cast<double>(options.config.workload.interval_us) / 1e6;
  const double all = static_cast<double>(options.config.workload.duration_us) / 1e6;
  for (std::size_t i = 0; i < result.iterations.size(); ++i) {
    const auto& intervals = result.iterations[i].intervals;
    for (std::size_t k = 0; k < intervals.size(); ++k) {
      const double start = static_cast<double>(k) * length;
      const double end = std::min(start + length, all);
      const auto bytes = intervals[k];
      list.push_back({{"sum",
                       {{"iteration", i},
                        {"start", start},
                        {"end", end},
                        {"seconds", end - start},
                        {"bytes", bytes},
                        {"bits_per_second", static_cast<double>(bytes) * 8 / (end - start)}}}});
    }
  }
  return list;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json end_json(const Options& options, const Result& result) {
  const Summary summary = summarize(options, result);
  const auto& traffic = result.traffic;
  Json end{{"seconds", summary.seconds},
           {"bytes", summary.delivered},
           {"bits_per_second", summary.bits_per_second},
           {"messages", summary.messages},
           {"offered_bytes", summary.bytes},
           {"delivered_bytes", summary.delivered},
           {"missing_bytes", summary.missing},
           {"tolerated_bytes", or_null(traffic.tolerated)},
           {"retransmitted_bytes", or_null(summary.retransmitted)},
           {"sent_bytes", or_null(traffic.sent)},
           {"verified_bytes", result.verified},
           {"below_bound_messages", result.below}};
  if (summary.round_ns.count > 0) end["round"] = ladder_json(summary.round_ns);
  if (!result.iterations.empty()) {
    Json list = Json::array();
    for (const auto& one : result.iterations)
      list.push_back({{"seconds", one.seconds},
                      {"bytes", one.bytes},
                      {"missing_bytes", one.missing},
                      {"messages", one.messages},
                      {"rate", rate_of(options, one)}});
    end["iterations"] = list;
  }
  if (summary.confidence_width && std::isfinite(*summary.confidence_width))
    end["confidence_width_pct"] = *summary.confidence_width;
  return end;
}

}  // namespace

Json report_json(const Options& options, const Result& result) {
  return {{"schema", kSchema},
          {"start", start_json(options, result)},
          {"intervals", intervals_json(options, result)},
          {"warm_rounds", rounds_json(result.warm)},
          {"rounds", rounds_json(result.rounds)},
          {"end", end_json(options, result)}};
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/dblp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "failure.hpp"

namespace perf {
namespace {

constexpr std::array<std::pair<std::string_view, Test>, 8> kTests{{
    {"STREAM", Test::kStream},
    {"MAERTS", Test::kMaerts},
    {"RR", Test::kRr},
    {"MESSAGE", Test::kMessage},
    {"INCAST", Test::kIncast},
    {"PS", Test::kPs},
    {"RING", Test::kRing},
    {"TRANSPOSE", Test::kTranspose},
}};

constexpr std::uint64_t kMaxRounds = 10'000'000;
constexpr std::uint64_t kMaxRanks = 1024;
constexpr std::uint64_t kDay = 86'400'000'000;  // µs
constexpr std::uint64_t kMaxBuffer = std::uint64_t{1} << 30;
constexpr std::uint32_t kMaxWindow = 65536;

// Edits that turn one word into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row.back();
}

[[noreturn]] void unknown(const char* what, const std::string& name,
                          const std::vector<std::string>& known) {
  std::string hint;
  for (const auto& candidate : known)
    if (hint.empty() && distance(name, candidate) <= 2)
      hint = fmt::format("; did you mean {}?", candidate);
  throw Failure(
      fmt::format("no {} '{}': there are {}{}", what, name, fmt::join(known, ", "), hint));
}

void limit(const char* what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value < least || value > most)
    throw Failure(fmt::format("{}: {} is not within {} to {}", what, value, least, most));
}

void only(bool given, bool allowed, const char* what, const char* where) {
  if (given && !allowed) throw Failure(fmt::format("{} is for {} only", what, where));
}

}  // namespace

std::string_view name_of(Test test) {
  for (const auto& [name, value] : kTests)
    if (value == test) return name;
  return "?";
}

Test parse_test(const std::string& name) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  if (upper == "MSG") return Test::kMessage;
  std::vector<std::string> known;
  for (const auto& [candidate, value] : kTests) {
    if (upper == candidate) return value;
    known.emplace_back(candidate);
  }
  unknown("test", upper, known);
}

const std::vector<std::string>& transport_names() {
  static const std::vector<std::string> names{"dblp", "tcp-cubic",   "tcp-bbr",     "tcp-dctcp",
                                              "sctp", "pr-sctp-ttl", "pr-sctp-rtx", "udp"};
  return names;
}

void check_transport_name(const std::string& name) {
  if (std::ranges::count(transport_names(), name) == 0)
    unknown("transport", name, transport_names());
}

Protocol TransportOptions::protocol() const {
  if (name.starts_with("tcp-")) return Protocol::kTcp;
  if (name == "udp") return Protocol::kUdp;
  return name == "dblp" ? Protocol::kDblp : Protocol::kSctp;
}

Partial TransportOptions::partial() const {
  if (name == "pr-sctp-ttl") return Partial::kTtl;
  return name == "pr-sctp-rtx" ? Partial::kRtx : Partial::kNone;
}

bool TransportOptions::lossy() const {
  return protocol() == Protocol::kDblp || protocol() == Protocol::kUdp ||
         partial() != Partial::kNone;
}

std::string TransportOptions::tcp_congestion() const { return name.substr(name.find('-') + 1); }

std::uint32_t TransportOptions::tolerance_of(std::uint32_t round) const {
  return phase_ppm.empty() ? tolerance_ppm : phase_ppm[round % phase_ppm.size()];
}

bool Workload::timed() const {
  return test == Test::kStream || test == Test::kMaerts || test == Test::kRr;
}

std::uint64_t largest_message(const Workload& workload, std::size_t ranks) {
  switch (workload.test) {
    case Test::kRing:
    case Test::kTranspose:
      return (workload.bytes + ranks - 1) / ranks;
    default:
      return std::max(workload.bytes, workload.response_bytes);
  }
}

namespace {

void validate_workload(const Workload& w, std::size_t ranks) {
  limit("hosts", ranks, 2, kMaxRanks);
  limit("-m", w.bytes, 1, std::numeric_limits<std::uint32_t>::max());
  limit("-m: the largest message", largest_message(w, ranks), 1, DBLP_MAX_MESSAGE);
  if (w.test == Test::kRing || w.test == Test::kTranspose)
    limit("-m: bytes for all hosts together", w.bytes, ranks, ~std::uint64_t{0});
  if (w.test == Test::kRr) limit("-r: bytes of a response", w.response_bytes, 1, DBLP_MAX_MESSAGE);
  if (w.timed()) {
    limit("-l: microseconds", w.duration_us, 1000, kDay);
    limit("--window", w.window, 1, kMaxWindow);
  } else {
    limit("-r", w.rounds, 1, kMaxRounds);
    limit("-w", w.warm_rounds, 0, kMaxRounds);
    limit("--compute-us", w.compute_us, 0, kDay);
  }
  if (w.interval_us != 0) limit("-D: microseconds", w.interval_us, 1000, kDay);
}

void validate_transport(const TransportOptions& t) {
  check_transport_name(t.name);
  const bool dblp = t.protocol() == Protocol::kDblp;
  limit("--tolerance-ppm", t.tolerance_ppm, 0, DBLP_PPM);
  limit("--phase-ppm: how many", t.phase_ppm.size(), 0, 256);
  for (const auto ppm : t.phase_ppm) limit("--phase-ppm", ppm, 0, DBLP_PPM);
  limit("-s", t.send_buffer, 0, kMaxBuffer);
  limit("-s", t.receive_buffer, 0, kMaxBuffer);
  limit("--priority", t.priority, 0, 7);
  limit("--protect: ranges", t.protect.size(), 0, 1024);
  if (t.dead_time_ms != 0) limit("--dead-time-ms", t.dead_time_ms, 100, 600'000);
  if (t.fragment_bytes != 0) limit("--fragment", t.fragment_bytes, 64, 65'000);
  limit("--max-rtx", t.max_rtx, 0, 65535);
  const bool tolerance = t.tolerance_ppm != 0 || !t.phase_ppm.empty();
  only(tolerance, t.lossy(), "a tolerance", "dblp, pr-sctp-* and udp");
  only(t.eager, t.lossy(), "--mode eager", "dblp, pr-sctp-* and udp");
  only(t.deadline_us != 0, dblp || t.partial() == Partial::kTtl, "--deadline-us",
       "dblp and pr-sctp-ttl");
  only(t.max_rtx != 0, t.partial() == Partial::kRtx, "--max-rtx", "pr-sctp-rtx");
  only(!t.protect.empty(), dblp, "--protect", "dblp");
  only(t.group != 0, dblp, "--group", "dblp");
  only(t.max_rounds != 0, dblp, "--max-rounds", "dblp");
  only(t.priority != 0, dblp, "--priority", "dblp");
  only(t.ordered, dblp, "--ordered", "dblp");
  only(t.dead_time_ms != 0, dblp, "--dead-time-ms", "dblp");
  only(!t.congestion.empty(), dblp, "--cc", "dblp; that of TCP is in the transport's name");
  const bool fixed = dblp && t.congestion == "fixed";
  only(t.rate != 0, fixed || t.protocol() == Protocol::kUdp, "--rate",
       "udp, and dblp with --cc fixed");
  if (fixed && t.rate == 0) throw Failure("--cc fixed wants a --rate");
  only(t.delay_small, t.protocol() == Protocol::kTcp || t.protocol() == Protocol::kSctp, "--nagle",
       "tcp-* and sctp");
  only(t.fragment_bytes != 0, t.protocol() == Protocol::kSctp || t.protocol() == Protocol::kUdp,
       "--fragment", "sctp and udp");
}

}  // namespace

void validate(const Config& config, std::size_t ranks) {
  validate_workload(config.workload, ranks);
  validate_transport(config.transport);
}

std::uint64_t get_number(const Json& object, const char* key, std::uint64_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned())
    throw Failure(fmt::format("control connection: '{}' is not a number", key));
  const auto value = found->get<std::uint64_t>();
  if (value > most) throw Failure(fmt::format("control connection: '{}' is too large", key));
  return value;
}

std::string get_string(const Json& object, const char* key, std::size_t longest) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string())
    throw Failure(fmt::format("control connection: '{}' is not a text", key));
  auto value = found->get<std::string>();
  if (value.size() > longest)
    throw Failure(fmt::format("control connection: '{}' is too long", key));
  return value;
}

bool get_bool(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_boolean())
    throw Failure(fmt::format("control connection: '{}' is neither true nor false", key));
  return found->get<bool>();
}

Json to_json(const Config& config) {
  const auto& w = config.workload;
  const auto& t = config.transport;
  Json protect = Json::array();
  for (const auto& range : t.protect) protect.push_back({range.offset, range.length});
  return {
      {"workload",
       {{"test", name_of(w.test)},
        {"bytes", w.bytes},
        {"response_bytes", w.response_bytes},
        {"rounds", w.rounds},
        {"warm_rounds", w.warm_rounds},
        {"compute_us", w.compute_us},
        {"duration_us", w.duration_us},
        {"window", w.window},
        {"interval_us", w.interval_us},
        {"seed", w.seed},
        {"verify", w.verify}}},
      {"transport",
       {{"name", t.name},
        {"send_buffer", t.send_buffer},
        {"receive_buffer", t.receive_buffer},
        {"tolerance_ppm", t.tolerance_ppm},
        {"phase_ppm", t.phase_ppm},
        {"mode", t.eager ? "eager" : "pressure"},
        {"deadline_us", t.deadline_us},
        {"protect", protect},
        {"group", t.group},
        {"max_rounds", t.max_rounds},
        {"priority", t.priority},
        {"ordered", t.ordered},
        {"dead_time_ms", t.dead_time_ms},
        {"congestion", t.congestion},
        {"rate", t.rate},
        {"nagle", t.delay_small},
        {"max_rtx", t.max_rtx},
        {"fragment_bytes", t.fragment_bytes}}},
  };
}

namespace {

constexpr std::uint64_t kMost64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

template <class T>
T number(const Json& object, const char* key) {
  return static_cast<T>(get_number(object, key, std::numeric_limits<T>::max()));
}

const Json& part(const Json& json, const char* key, bool array = false) {
  const auto found = json.find(key);
  if (found == json.end() || !(array ? found->is_array() : found->is_object()))
    throw Failure(fmt::format("control connection: there is no '{}'", key));
  return *found;
}

Workload workload_from_json(const Json& json) {
  Workload w;
  w.test = parse_test(get_string(json, "test", 16));
  w.bytes = number<std::uint64_t>(json, "bytes");
  w.response_bytes = number<std::uint64_t>(json, "response_bytes");
  w.rounds = number<std::uint32_t>(json, "rounds");
  w.warm_rounds = number<std::uint32_t>(json, "warm_rounds");
  w.compute_us = number<std::uint64_t>(json, "compute_us");
  w.duration_us = number<std::uint64_t>(json, "duration_us");
  w.window = number<std::uint32_t>(json, "window");
  w.interval_us = number<std::uint64_t>(json, "interval_us");
  w.seed = number<std::uint64_t>(json, "seed");
  w.verify = get_bool(json, "verify");
  return w;
}

std::uint64_t element(const Json& value, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    throw Failure("control connection: an element of a list is no number, or too large");
  return value.get<std::uint64_t>();
}

TransportOptions transport_from_json(const Json& json) {
  TransportOptions t;
  t.name = get_string(json, "name", 32);
  t.send_buffer = number<std::uint64_t>(json, "send_buffer");
  t.receive_buffer = number<std::uint64_t>(json, "receive_buffer");
  t.tolerance_ppm = number<std::uint32_t>(json, "tolerance_ppm");
  for (const auto& ppm : part(json, "phase_ppm", true))
    t.phase_ppm.push_back(static_cast<std::uint32_t>(element(ppm, kMost32)));
  t.eager = get_string(json, "mode", 16) == "eager";
  t.deadline_us = number<std::uint32_t>(json, "deadline_us");
  for (const auto& range : part(json, "protect", true)) {
    if (!range.is_array() || range.size() != 2)
      throw Failure("control connection: 'protect' is not a list of ranges");
    t.protect.push_back({element(range[0], kMost64), element(range[1], kMost64)});
  }
  t.group = number<std::uint32_t>(json, "group");
  t.max_rounds = number<std::uint16_t>(json, "max_rounds");
  t.priority = number<std::uint8_t>(json, "priority");
  t.ordered = get_bool(json, "ordered");
  t.dead_time_ms = number<std::uint32_t>(json, "dead_time_ms");
  t.congestion = get_string(json, "congestion", 32);
  t.rate = number<std::uint64_t>(json, "rate");
  t.delay_small = get_bool(json, "nagle");
  t.max_rtx = number<std::uint32_t>(json, "max_rtx");
  t.fragment_bytes = number<std::uint32_t>(json, "fragment_bytes");
  return t;
}

}  // namespace

Config config_from_json(const Json& json) {
  return {workload_from_json(part(json, "workload")), transport_from_json(part(json, "transport"))};
}

}  // namespace perf

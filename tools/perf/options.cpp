// SPDX-License-Identifier: GPL-2.0

#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string_view>

#include "failure.hpp"
#include "version.hpp"

namespace perf {
namespace {

constexpr std::string_view kExamples = R"(
Examples:
  dblp-perf --server
  dblp-perf -H 10.0.0.2 -t STREAM -T dblp
  dblp-perf -H 10.0.0.2 -t MESSAGE -T dblp -- -m 25M -r 20 --tolerance-ppm 50000
  dblp-perf -H hosta,hostb,hostc -t INCAST -T tcp-bbr -J -- -m 1M -r 100 -w 1
  dblp-perf -H 10.0.0.2 -t RR -T sctp -l 5 -k P50_LATENCY,P99_LATENCY -- -r 64,4096
)";

constexpr std::uint64_t kDefaultBytes = std::uint64_t{1} << 20;
constexpr std::uint32_t kDefaultRounds = 10;
constexpr std::uint32_t kDefaultWindow = 4;
constexpr double kDefaultSeconds = 10;
constexpr std::uint32_t kDefaultMaxIterations = 10;
constexpr std::uint32_t kLeastIterations = 3;
constexpr std::uint32_t kMostIterations = 1000;

// What the command line holds before it is made into a configuration.
struct Words {
  std::string test = "STREAM";
  double seconds = kDefaultSeconds;
  double test_seconds = 0;
  std::string bytes;
  std::string rounds;  // or REQUEST[,RESPONSE]
  std::string buffers;
  std::string iterations;
  std::string confidence;
  std::string keys;
  std::string csv;
  double interval = 0;
  int banner = 1;
  std::optional<std::uint64_t> seed;
  std::string mode = "pressure";
  std::vector<std::string> protect;
  std::string rate;
  std::string fragment;
  bool no_verify = false;
  bool no_delay = false;
  bool version = false;
  bool help = false;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

double parse_real(const std::string& text, const char* what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw Failure(fmt::format("{}: '{}' is not a number", what, text));
  return value;
}

std::uint64_t parse_whole(const std::string& text, const char* what, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Failure(fmt::format("{}: '{}' is not a whole number", what, text));
  if (value > most) throw Failure(fmt::format("{}: {} is more than {}", what, value, most));
  return value;
}

std::uint64_t microseconds(double seconds, const char* what) {
  if (!(seconds >= 0 && seconds <= 86400))
    throw Failure(fmt::format("{}: {} is not within 0 to 86400 seconds", what, seconds));
  return static_cast<std::uint64_t>(std::llround(seconds * 1e6));
}

void add_global(CLI::App& app, Options& o, Words& w) {
  app.add_flag("--server", o.server, "serve clients until SIGTERM or SIGINT");
  app.add_option("-H,--host", o.hosts, "hosts of the servers, by commas")->delimiter(',');
  app.add_option("-p,--port", o.port, "TCP port of the control connections")->capture_default_str();
  app.add_option("-B,--bind", o.bind, "own address of control connections");
  app.add_option("-t,--test", w.test,
                 "STREAM MAERTS RR MESSAGE INCAST PS RING TRANSPOSE, see below")
      ->capture_default_str();
  app.add_option("-T,--transport", o.config.transport.name,
                 "dblp tcp-cubic tcp-bbr tcp-dctcp sctp pr-sctp-ttl pr-sctp-rtx udp")
      ->capture_default_str();
  app.add_option("-l,--length", w.seconds, "seconds: of STREAM, MAERTS, RR")->capture_default_str();
  app.add_option("-D,--demo", w.interval, "seconds: interim results for each such interval");
  app.add_option("-i,--iterations", w.iterations,
                 "MAX[,MIN]: repeat STREAM, MAERTS, RR so many times");
  app.add_option("-I,--confidence", w.confidence,
                 "LEVEL[,WIDTH]: repeat until the mean is known with LEVEL percent to an "
                 "interval of WIDTH percent (default 99,5)");
  app.add_option("-P,--banner", w.banner, "0: no headings in the report")->capture_default_str();
  app.add_flag("-J,--json", o.json, "the report as JSON");
  app.add_option("-k,--keyval", w.keys, "only these values, NAME=VALUE, by commas; ? lists them");
  app.add_option("-o,--csv", w.csv, "the same in two lines by commas");
  app.add_option("--seed", w.seed, "of the content of messages (default: by chance)");
  app.add_option("--jitter-us", o.jitter_us,
                 "microseconds that this host waits before its first round")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{600'000'000}));
  app.add_flag("-V,--version", w.version, "print the version");
  app.add_flag("-h,--help", w.help, "print this text");
}

void add_workload(CLI::App& app, Options& o, Words& w) {
  auto& load = o.config.workload;
  app.add_option("-H,--host", o.data_hosts, "addresses of the servers that are measured")
      ->delimiter(',');
  app.add_option("-L,--local", o.data_bind, "own address that is measured");
  app.add_option("-m,--bytes", w.bytes, "bytes of a message; for RING, TRANSPOSE of the vector");
  app.add_option("-r,--rounds", w.rounds, "rounds; for RR: REQUEST[,RESPONSE] bytes");
  app.add_option("-w,--warm", load.warm_rounds, "rounds before those, reported apart");
  app.add_option("-l,--length", w.test_seconds, "as the global -l");
  app.add_option("--compute-us", load.compute_us, "microseconds between rounds");
  app.add_option("--window", load.window, "STREAM, MAERTS: messages on their way at once");
  app.add_flag("--no-verify", w.no_verify, "do not check the content of messages");
}

void add_transport(CLI::App& app, Options& o, Words& w) {
  auto& t = o.config.transport;
  app.add_option("-s,--buffers", w.buffers, "SEND[,RECEIVE] bytes of socket buffers");
  app.add_flag("-D,--no-delay", w.no_delay, "no Nagle algorithm (the default)");
  app.add_flag("--nagle", t.delay_small, "tcp, sctp: with Nagle's algorithm");
  app.add_option("--tolerance-ppm", t.tolerance_ppm, "bytes in a million that may be missing");
  app.add_option("--phase-ppm", t.phase_ppm, "tolerances of the rounds in turn, by commas")
      ->delimiter(',');
  app.add_option("--mode", w.mode,
                 "pressure: what the network lost is given up; eager: the "
                 "receiver has enough as soon as it may")
      ->check(CLI::IsMember({"pressure", "eager"}));
  app.add_option("--deadline-us", t.deadline_us, "dblp, pr-sctp-ttl: of a message");
  app.add_option("--max-rtx", t.max_rtx, "pr-sctp-rtx: retransmissions of a fragment at most");
  app.add_option("--protect", w.protect, "dblp: OFFSET:LENGTH that must arrive, by commas")
      ->delimiter(',');
  app.add_option("--group", t.group, "dblp: messages of this group share their tolerance");
  app.add_option("--max-rounds", t.max_rounds, "dblp: repair rounds at most");
  app.add_option("--priority", t.priority, "dblp: 0 to 7");
  app.add_flag("--ordered", t.ordered, "dblp: segments in order, not permuted");
  app.add_option("--dead-time-ms", t.dead_time_ms, "dblp: silence after which a flow is dead");
  app.add_option("--cc", t.congestion, "dblp: congestion control: bdp, fixed");
  app.add_option("--rate", w.rate, "dblp with --cc fixed, udp: bytes per second");
  app.add_option("--fragment", w.fragment, "sctp, udp: payload bytes of a fragment");
}

void print_help(const CLI::App& global, const CLI::App& test) {
  fmt::print(
      "Measures message transports between hosts.\n\n"
      "Usage: dblp-perf --server [-B ADDRESS] [-p PORT]\n"
      "       dblp-perf -H HOST[,HOST...] [-t TEST] [-T TRANSPORT] [OPTION]... [-- "
      "TEST-OPTION...]\n"
      "\n"
      "  STREAM     client to server for a time      MAERTS   the other way\n"
      "  RR         request and response for a time  MESSAGE  one message a round\n"
      "  INCAST     all servers to the client        PS       gradients up, parameters down\n"
      "  RING       all-reduce from next to next     TRANSPOSE  all-reduce by owners\n"
      "{}\nAfter --:\n{}{}",
      global.help("", CLI::AppFormatMode::Sub), test.help("", CLI::AppFormatMode::Sub), kExamples);
}

void parse_with(CLI::App& app, std::vector<std::string> words) {
  // CLI11 takes them from the back.
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw Failure(fmt::format("{} (see --help)", error.what()));
  }
}

void set_pair(const std::string& text, const char* what, std::uint64_t& first,
              std::uint64_t& second) {
  const auto parts = split(text);
  if (parts.size() > 2) throw Failure(fmt::format("{}: more than two numbers", what));
  first = parse_bytes(parts[0], what);
  second = parts.size() == 2 ? parse_bytes(parts[1], what) : first;
}

void set_workload(Options& o, const Words& w) {
  auto& load = o.config.workload;
  load.test = parse_test(w.test);
  load.verify = !w.no_verify;
  load.seed = w.seed ? *w.seed : std::random_device()();
  load.bytes = load.test == Test::kRr ? 1 : kDefaultBytes;
  if (!w.bytes.empty()) load.bytes = parse_bytes(w.bytes, "-m");
  load.response_bytes = load.test == Test::kRr ? load.bytes : 0;
  load.rounds = kDefaultRounds;
  if (load.test == Test::kRr && !w.rounds.empty())
    set_pair(w.rounds, "-r", load.bytes, load.response_bytes);
  else if (!w.rounds.empty())
    load.rounds = static_cast<std::uint32_t>(
        parse_whole(w.rounds, "-r", std::numeric_limits<std::uint32_t>::max()));
  if (!load.timed()) {
    if (!w.iterations.empty() || !w.confidence.empty())
      throw Failure(fmt::format("-i and -I are for STREAM, MAERTS, RR: {} has -r", w.test));
    if (w.interval != 0)
      throw Failure(fmt::format("-D is for STREAM and MAERTS: {} reports each round", w.test));
    return;
  }
  if (!w.rounds.empty() && load.test != Test::kRr)
    throw Failure(fmt::format("-r: {} has no rounds but a length (-l)", w.test));
  if (load.warm_rounds != 0 || load.compute_us != 0)
    throw Failure(fmt::format("-w and --compute-us: {} has no rounds", w.test));
  load.duration_us = microseconds(w.test_seconds != 0 ? w.test_seconds : w.seconds, "-l");
  load.interval_us = microseconds(w.interval, "-D");
  if (load.window == 0) load.window = kDefaultWindow;
}

void set_iterations(Options& o, const Words& w) {
  if (!w.confidence.empty()) {
    const auto parts = split(w.confidence);
    if (parts.size() > 2) throw Failure("-I: more than two numbers");
    o.confidence_level = parse_real(parts[0], "-I");
    o.confidence_width = parts.size() == 2 ? parse_real(parts[1], "-I") : 5;
    if (o.confidence_level < 50 || o.confidence_level > 99.9)
      throw Failure("-I: the level is not within 50 to 99.9 percent");
    if (o.confidence_width <= 0) throw Failure("-I: the width is not more than 0 percent");
    o.min_iterations = kLeastIterations;
    o.max_iterations = kDefaultMaxIterations;
  }
  if (w.iterations.empty()) return;
  const auto parts = split(w.iterations);
  if (parts.size() > 2) throw Failure("-i: more than two numbers");
  o.max_iterations = static_cast<std::uint32_t>(parse_whole(parts[0], "-i", kMostIterations));
  const bool both = parts.size() == 2;
  o.min_iterations = both ? static_cast<std::uint32_t>(parse_whole(parts[1], "-i", kMostIterations))
                          : std::min(o.max_iterations,
                                     o.confidence_level > 0 ? kLeastIterations : o.max_iterations);
  if (o.max_iterations == 0 || o.min_iterations > o.max_iterations)
    throw Failure("-i: MAX is 0, or less than MIN");
}

void set_transport(Options& o, const Words& w) {
  auto& t = o.config.transport;
  t.eager = w.mode == "eager";
  if (!w.buffers.empty()) set_pair(w.buffers, "-s", t.send_buffer, t.receive_buffer);
  if (!w.rate.empty()) t.rate = parse_bytes(w.rate, "--rate");
  if (!w.fragment.empty())
    t.fragment_bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(parse_bytes(w.fragment, "--fragment"), ~std::uint32_t{0}));
  for (const auto& range : w.protect) t.protect.push_back(parse_range(range));
  if (w.no_delay && t.delay_small) throw Failure("-D and --nagle contradict each other");
}

}  // namespace

std::uint64_t parse_bytes(const std::string& text, const char* what) {
  constexpr std::string_view kUnits = "kmgKMG";
  std::string digits = text;
  std::uint64_t unit = 1;
  if (!digits.empty()) {
    if (const auto at = kUnits.find(digits.back()); at != std::string_view::npos) {
      const std::uint64_t base = at < 3 ? 1000 : 1024;
      for (std::size_t i = 0; i <= at % 3; ++i) unit *= base;
      digits.pop_back();
    }
  }
  return parse_whole(digits, what, std::numeric_limits<std::uint64_t>::max() / unit) * unit;
}

dblp::Range parse_range(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos)
    throw Failure(fmt::format("--protect: '{}' is not OFFSET:LENGTH", text));
  const dblp::Range range{parse_bytes(text.substr(0, colon), "--protect"),
                          parse_bytes(text.substr(colon + 1), "--protect")};
  if (range.length == 0) throw Failure("--protect: a range of 0 bytes");
  return range;
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
  Options o;
  Words w;
  std::vector<std::string> before;
  std::vector<std::string> after;
  bool split_seen = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--" && !split_seen)
      split_seen = true;
    else
      (split_seen ? after : before).push_back(word);
  }

  CLI::App global;
  CLI::App test;
  global.set_help_flag();
  test.set_help_flag();
  add_global(global, o, w);
  add_workload(test, o, w);
  add_transport(test, o, w);
  parse_with(global, before);
  if (w.help) {
    print_help(global, test);
    return std::nullopt;
  }
  if (w.version) {
    fmt::print("dblp-perf {}\n", kVersion);
    return std::nullopt;
  }
  parse_with(test, after);
  if (o.server) {
    if (!o.hosts.empty() || split_seen)
      throw Failure("--server takes no -H and no test options: the client says what to do");
    return o;
  }

  if (o.hosts.empty())
    throw Failure("where is the server? Give -H HOST, or --server to be one (see --help)");
  if (!o.data_hosts.empty() && o.data_hosts.size() != o.hosts.size())
    throw Failure(fmt::format("-H after -- names {} hosts, that before it {}: one for each",
                              o.data_hosts.size(), o.hosts.size()));
  o.banner = w.banner != 0;
  o.csv = !w.csv.empty();
  if (const auto& names = o.csv ? w.csv : w.keys; !names.empty()) o.selectors = split(names);
  set_workload(o, w);
  set_iterations(o, w);
  set_transport(o, w);
  validate(o.config, o.hosts.size() + 1);
  return o;
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0
//
// dblp-flows: what the paths of DBLP and TCP connections can carry.

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>

#include "output.hpp"
#include "row.hpp"
#include "serve.hpp"
#include "session.hpp"
#include "table.hpp"

namespace {

using flows::Row;
using flows::Session;

// A module is noticed and a collector's end is seen as fast.
constexpr int kTickMs = 100;

volatile sig_atomic_t stopped = 0;

void on_signal(int) { stopped = 1; }

std::int64_t now_ms() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

struct Options {
  flows::CollectorOptions collector;
  flows::Filter filter;
  bool once = false, json = false, collect = false, read_only = false, reverse = false;
  std::string watch, prometheus, textfile, sort = "btlbw", netns;
  double interval = 1, window = 2;
};

struct Failure {
  dblp::Error error;
};

// The tool ends with one line about the first error.
template <class T>
T must(dblp::Result<T> result) {
  if (!result) throw Failure{result.error()};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Tool {
 public:
  Tool(Options options, Session session) : o_(std::move(options)), session_(std::move(session)) {}

  int run() {
    if (o_.collect) return collect();
    if (!o_.watch.empty()) return watch();
    if (!o_.prometheus.empty()) return serve();
    if (!o_.textfile.empty()) return textfile();
    if (o_.once) return once();
    if (o_.json) return json_lines();
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return once();
    return table();
  }

 private:
  std::vector<Row> rows() {
    return flows::make_rows(must(session_.reader().read()), processes_, o_.filter);
  }

  // Looks after the session for a time; false when the user wants to leave.
  bool pass(std::int64_t ms) {
    const std::int64_t end = now_ms() + ms;
    session_.tick();
    for (std::int64_t left = ms; left > 0 && stopped == 0; left = end - now_ms()) {
      ::poll(nullptr, 0, static_cast<int>(std::min<std::int64_t>(left, kTickMs)));
      session_.tick();
    }
    return stopped == 0;
  }

  [[nodiscard]] std::int64_t interval_ms() const {
    return static_cast<std::int64_t>(o_.interval * 1000);
  }

  std::string json(int indent) {
    const auto list = rows();
    auto& reader = session_.reader();
    return flows::json_text(list, must(reader.state()), reader.live(), indent);
  }

  int once() {
    // Who has just begun to look has seen nothing yet.
    if (session_.collecting()) pass(interval_ms());
    if (o_.json) {
      fmt::print("{}\n", json(2));
      return 0;
    }
    if (!session_.reader().live()) session_.say("nobody fills this table any more");
    auto list = rows();
    flows::sort_rows(list, o_.sort, o_.reverse);
    fmt::print("{}\n", flows::text_header());
    for (const Row& row : list) fmt::print("{}\n", flows::text_line(row));
    return 0;
  }

  int json_lines() {
    do {
      fmt::print("{}\n", json(-1));
      std::fflush(stdout);
    } while (pass(interval_ms()));
    return 0;
  }

  int collect() {
    if (!session_.collecting()) {
      const auto state = must(session_.reader().state());
      throw Failure{dblp::Error(EBUSY, fmt::format("process {} collects already", state.pid))};
    }
    fmt::print("ready\n");
    std::fflush(stdout);
    while (pass(interval_ms())) {
    }
    return 0;
  }

  int watch() {
    must(session_.reader().subscribe());
    std::uint64_t id = 0;
    bool known = false;
    const auto print = [&](const dblp::FlowChange& change) {
      const auto text = fmt::format("{:016x}", change.key.id);
      if (!text.starts_with(o_.watch)) return;
      if (known && change.key.id != id) return;
      known = true;
      id = change.key.id;
      std::string what;
      if ((change.what & DBLP_FLOW_NEW) != 0) what += " new";
      if ((change.what & DBLP_FLOW_BTLBW) != 0) what += " btlbw";
      if ((change.what & DBLP_FLOW_RTPROP) != 0) what += " rtprop";
      if ((change.what & DBLP_FLOW_GONE) != 0) what += " gone";
      fmt::print("{} {:.3f} btlbw={} rtprop_ns={} bdp={}{}\n", text,
                 static_cast<double>(change.time_ns) / 1e9, change.btlbw, change.rtprop_ns,
                 change.btlbw * (change.rtprop_ns / 1000) / 1'000'000, what);
      std::fflush(stdout);
      if ((change.what & DBLP_FLOW_GONE) != 0) stopped = 1;
    };
    while (stopped == 0) {
      must(session_.reader().changes(print, kTickMs));
      session_.tick();
    }
    return 0;
  }

  std::string prometheus() {
    const auto list = rows();
    auto& reader = session_.reader();
    return flows::prometheus_text(list, must(reader.state()), reader.live());
  }

  int serve() {
    const int listener = must(flows::serve_open(must(dblp::Address::parse(o_.prometheus))));
    fmt::print("ready\n");
    std::fflush(stdout);
    while (stopped == 0) {
      flows::serve_one(listener, kTickMs, [this] { return prometheus(); });
      session_.tick();
    }
    return 0;
  }

  int textfile() {
    do {
      must(flows::write_file(o_.textfile + "/dblp_flows.prom", prometheus()));
    } while (!o_.once && pass(interval_ms()));
    return 0;
  }

  int table() {
    session_.set_loud(false);
    flows::Table table(o_.sort, o_.reverse);
    std::int64_t next = now_ms();
    while (stopped == 0) {
      session_.tick();
      if (now_ms() >= next) {
        next = now_ms() + interval_ms();
        auto list = rows();
        const auto state = must(session_.reader().state());
        table.draw(
            std::move(list),
            fmt::format("dblp-flows: tcp {}, dblp {}{} {}", flows::source_name(state.tcp_source),
                        flows::source_name(state.dblp_source),
                        session_.reader().live() ? "" : " (NOT LIVE)", session_.notice()));
      }
      if (!table.wait(kTickMs)) break;
    }
    return 0;
  }

  Options o_;
  Session session_;
  flows::Processes processes_;
};

void define(CLI::App& app, Options& o) {
  static const std::map<std::string, std::uint32_t> kTcp = {{"auto", 0},
                                                            {"fexit", DBLP_FLOW_FEXIT},
                                                            {"sockops", DBLP_FLOW_SOCKOPS},
                                                            {"tcp_probe", DBLP_FLOW_PROBE}};
  static const std::map<std::string, std::uint32_t> kDblp = {
      {"auto", 0}, {"tp_btf", DBLP_FLOW_TP_BTF}, {"raw_tp", DBLP_FLOW_RAW_TP}};

  app.add_flag("--once", o.once, "Print the table once and leave");
  app.add_flag("--json", o.json, "As JSON: one document with --once, else one a line");
  app.add_option("--watch", o.watch, "Print each change of the flow whose id begins so");
  app.add_flag("--collect", o.collect, "Only fill the table, for other programs to read");
  auto* prometheus = app.add_option("--prometheus", o.prometheus,
                                    "Serve metrics over HTTP at ADDRESS:PORT, path /metrics");
  app.add_option("--prometheus-textfile", o.textfile,
                 "Write metrics to dblp_flows.prom in a folder")
      ->check(CLI::ExistingDirectory)
      ->excludes(prometheus);
  app.add_option("--interval", o.interval, "Seconds between two looks")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--sort", o.sort, "Column: btlbw rtprop bdp rate rtt loss process peer")
      ->check(CLI::IsMember({"btlbw", "rtprop", "bdp", "rate", "rtt", "loss", "process", "peer"}))
      ->capture_default_str();
  app.add_flag("--reverse", o.reverse, "Smallest first");

  app.add_option("--port", o.filter.port, "Only flows with this port at either end")
      ->check(CLI::Range(1, 65535));
  app.add_option("--process", o.filter.process, "Only flows of this process, a name or a number");
  app.add_option("--netns", o.netns,
                 "Only this network namespace: a cookie, or a name of ip-netns");
  app.add_option("--proto", o.filter.proto, "Only this protocol")
      ->check(CLI::IsMember({"dblp", "tcp"}));

  app.add_flag("--read-only", o.read_only, "Load no programs: read what is there, even if stale");
  app.add_option("--folder", o.collector.folder, "Where the maps are pinned")
      ->capture_default_str();
  app.add_option("--max-flows", o.collector.max_flows,
                 "Flows kept; the longest silent one goes first")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  app.add_option("--window", o.window, "Seconds that the shortest round trip is remembered")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option("--threshold", o.collector.threshold_percent, "Change that is told, percent")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--tcp-source", o.collector.tcp_source, "auto, fexit, sockops or tcp_probe")
      ->transform(CLI::CheckedTransformer(kTcp));
  app.add_option("--dblp-source", o.collector.dblp_source, "auto, tp_btf or raw_tp")
      ->transform(CLI::CheckedTransformer(kDblp));
  app.footer(
      "Examples:\n"
      "  dblp-flows                          a live table\n"
      "  dblp-flows --once --json --port 443 what is known about some flows\n"
      "  dblp-flows --collect &              keep the table for other programs\n"
      "  dblp-flows --prometheus 127.0.0.1:9460\n"
      "Exit status: 0, 1 an error (one line says which), 2 wrong usage.");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What the paths of DBLP and TCP connections can carry");
  define(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    options.collector.rtprop_window_ns = static_cast<std::uint64_t>(options.window * 1e9);
    if (!options.netns.empty()) options.filter.netns = must(flows::netns_cookie(options.netns));
    Session session = must(Session::open(options.collector, !options.read_only));
    return Tool(std::move(options), std::move(session)).run();
  } catch (const Failure& failure) {
    fmt::print(stderr, "dblp-flows: {}\n", failure.error.message());
    return 1;
  }
}

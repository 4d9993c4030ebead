// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "runner.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <csignal>

namespace dblp::sim {
namespace {

volatile uint64_t running_seed;
bool abort_expected;

void on_abort(int) {
  char line[160];
  const int n = snprintf(line, sizeof(line),
                         "violated: check (a check of the core failed)\n"
                         "replay: sim_main --seed %" PRIu64 " --trace\n",
                         running_seed);
  if (n > 0 && write(STDERR_FILENO, line, static_cast<size_t>(n)) < 0) _exit(3);
  if (abort_expected) _exit(0);
  signal(SIGABRT, SIG_DFL);
}

}  // namespace

void report_aborts(bool expected) {
  abort_expected = expected;
  signal(SIGABRT, on_abort);
}

std::optional<Violation> run_seed(uint64_t seed, FILE* trace, RunStats* total) {
  running_seed = seed;
  const Scenario scenario = make_scenario(seed);
  if (trace) fputs(scenario.describe().c_str(), trace);
  World world(scenario, trace);
  const bool good = world.run();
  if (total) {
    const RunStats& s = world.stats();
    total->packets += s.packets;
    total->bytes += s.bytes;
    total->events += s.events;
    total->messages += s.messages;
    total->segments += s.segments;
    total->resent += s.resent;
    total->ok += s.ok;
    total->incomplete_ok += s.incomplete_ok;
    total->below += s.below;
    total->refused += s.refused;
    total->unknown += s.unknown;
    total->longest = std::max(total->longest, s.longest);
    total->crowded = std::max(total->crowded, s.crowded);
  }
  if (good) return std::nullopt;
  return Violation{seed, world.ledger().what(), world.ledger().text()};
}

std::string replay_line(const Violation& v) {
  return "violated: " + std::string(invariant_name(v.what)) + " (" + invariant_text(v.what) +
         ")\n  " + v.text + "\nreplay: sim_main --seed " + std::to_string(v.seed) + " --trace";
}

std::string describe(const RunStats& s, uint64_t runs) {
  char line[512];
  snprintf(line, sizeof(line),
           "%" PRIu64 " runs: %" PRIu64 " messages, %" PRIu64 " segments, %" PRIu64
           " datagrams (%.1f MB), %" PRIu64
           " events\n"
           "outcomes: %" PRIu64 " OK (%" PRIu64 " with holes), %" PRIu64 " BELOW, %" PRIu64
           " REFUSED, %" PRIu64
           " UNKNOWN; at most %.3f virtual seconds; %.0f %% of the packets "
           "allowed",
           runs, s.messages, s.segments, s.packets, static_cast<double>(s.bytes) / 1e6, s.events,
           s.ok, s.incomplete_ok, s.below, s.refused, s.unknown,
           static_cast<double>(s.longest) / 1e9, s.crowded * 100);
  return line;
}

}  // namespace dblp::sim

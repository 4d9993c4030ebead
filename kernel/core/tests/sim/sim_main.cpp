// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Runs the simulator by hand, replays one seed with a trace, or looks for the violation
// that a broken rule must cause.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runner.h"

namespace {

using namespace dblp::sim;

const char kUsage[] =
    "usage: sim_main [--seed N] [--runs N] [--trace] [--keep-going] [--expect INVARIANT]\n"
    "       sim_main --list\n"
    "\n"
    "  --seed N      first seed (1)\n"
    "  --runs N      seeds to run (1)\n"
    "  --trace       print what happens, readable\n"
    "  --keep-going  report every violation, not only the first\n"
    "  --expect I    succeed when invariant I is violated, whatever else is before\n"
    "  --list        print the invariants\n"
    "\n"
    "example: sim_main --seed 42 --trace\n";

int list() {
#define X(name, text) printf("%-12s %s\n", #name, text);
  DBLP_SIM_INVARIANTS(X)
#undef X
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1, runs = 1;
  bool trace = false, keep_going = false;
  const char* expect = nullptr;

  for (int i = 1; i < argc; i++) {
    const bool more = i + 1 < argc;
    if (!strcmp(argv[i], "--list")) return list();
    if (!strcmp(argv[i], "--trace")) {
      trace = true;
    } else if (!strcmp(argv[i], "--keep-going")) {
      keep_going = true;
    } else if (!strcmp(argv[i], "--seed") && more) {
      seed = strtoull(argv[++i], nullptr, 0);
    } else if (!strcmp(argv[i], "--runs") && more) {
      runs = strtoull(argv[++i], nullptr, 0);
    } else if (!strcmp(argv[i], "--expect") && more) {
      expect = argv[++i];
    } else {
      fputs(kUsage, stderr);
      return 2;
    }
  }

  RunStats total;
  uint64_t violations = 0;
  report_aborts(expect && !strcmp(expect, "check"));
  for (uint64_t i = 0; i < runs; i++) {
    const auto v = run_seed(seed + i, trace ? stdout : nullptr, &total);
    if (!v) continue;
    violations++;
    printf("%s\n", replay_line(*v).c_str());
    if (expect) {
      // A broken rule may break other invariants before the one it is about.
      if (!strcmp(expect, invariant_name(v->what))) return 0;
      continue;
    }
    if (!keep_going) return 1;
  }
  printf("%s\n", describe(total, runs).c_str());
  if (expect) {
    printf("nothing violates %s\n", expect);
    return 1;
  }
  return violations ? 1 : 0;
}

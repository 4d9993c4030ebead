// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Runs seeds and tells of the first one that violates an invariant.
#ifndef DBLP_SIM_RUNNER_H
#define DBLP_SIM_RUNNER_H

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "world.h"

namespace dblp::sim {

struct Violation {
  uint64_t seed;
  Invariant what;
  std::string text;
};

// One run; @trace as for World.
std::optional<Violation> run_seed(uint64_t seed, FILE* trace, RunStats* total);

// A failed check inside the core aborts: print the seed that was running then.  If
// @expected, that is what was looked for and the program ends with status 0.
void report_aborts(bool expected);

// How to see @v again.
std::string replay_line(const Violation& v);

std::string describe(const RunStats& s, uint64_t runs);

}  // namespace dblp::sim

#endif  // DBLP_SIM_RUNNER_H

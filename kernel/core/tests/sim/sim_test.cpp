// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Many seeded runs of two and more endpoints over hostile pipes.
//
//   DBLP_SIM_RUNS  number of runs
//   DBLP_SIM_SEED  first seed (1)
#include <cstdlib>

#include "gtest/gtest.h"
#include "runner.h"

namespace dblp::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr uint64_t kRuns = 5'000;
#else
constexpr uint64_t kRuns = 100'000;
#endif

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* value = getenv(name);
  return value ? strtoull(value, nullptr, 0) : otherwise;
}

TEST(Sim, InvariantsHoldOnHostilePipes) {
  const uint64_t seed = from_environment("DBLP_SIM_SEED", 1);
  const uint64_t runs = from_environment("DBLP_SIM_RUNS", kRuns);
  RunStats total;

  printf("seeds %llu to %llu\n", static_cast<unsigned long long>(seed),
         static_cast<unsigned long long>(seed + runs - 1));
  report_aborts(false);
  for (uint64_t i = 0; i < runs; i++) {
    const auto v = run_seed(seed + i, nullptr, &total);
    ASSERT_FALSE(v) << replay_line(*v);
  }
  printf("%s\n", describe(total, runs).c_str());
  // A simulator in which nothing happens proves nothing.
  if (runs >= 1000) {
    EXPECT_GT(total.ok, runs / 2);
    EXPECT_GT(total.incomplete_ok, runs / 100);
    EXPECT_GT(total.below, runs / 200);
    EXPECT_GT(total.refused, runs / 200);
    EXPECT_GT(total.unknown, runs / 200);
  }
}

// The same seed must give the same run, or a seed proves nothing.
TEST(Sim, RunsAreDeterministic) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    RunStats a, b;
    run_seed(seed, nullptr, &a);
    run_seed(seed, nullptr, &b);
    EXPECT_EQ(a.packets, b.packets) << "seed " << seed;
    EXPECT_EQ(a.events, b.events) << "seed " << seed;
    EXPECT_EQ(a.bytes, b.bytes) << "seed " << seed;
    EXPECT_EQ(a.longest, b.longest) << "seed " << seed;
  }
}

}  // namespace
}  // namespace dblp::sim

// SPDX-License-Identifier: GPL-2.0

#include "parts.hpp"
#include "workloads.hpp"

namespace perf {

void run_ring(Rank& rank) {
  const std::size_t ranks = rank.ranks();
  const std::size_t next = (rank.id() + 1) % ranks;
  const std::size_t previous = (rank.id() + ranks - 1) % ranks;
  for (std::uint32_t step = 0; step < 2 * (ranks - 1); ++step) {
    // First the sums wander, then the results.
    const std::size_t part = (rank.id() + 2 * ranks - step) % ranks;
    rank.send_whole(next, step, part_bytes(rank.workload().bytes, ranks, part));
    rank.receive(previous, step);
  }
  rank.finish();
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "workloads.hpp"

namespace perf {

void run_incast(Rank& rank) {
  if (rank.id() != 0) {
    rank.send(0, 0, rank.workload().bytes);
    rank.finish();
    return;
  }
  for (std::size_t peer = 1; peer < rank.ranks(); ++peer) rank.receive(peer, 0);
}

}  // namespace perf

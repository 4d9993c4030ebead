// SPDX-License-Identifier: GPL-2.0

#include "workloads.hpp"

namespace perf {

void run_message(Rank& rank) {
  if (rank.id() != 0) {
    rank.receive(0, 0);
    return;
  }
  for (std::size_t peer = 1; peer < rank.ranks(); ++peer) rank.send(peer, 0, rank.workload().bytes);
  rank.finish();
}

}  // namespace perf

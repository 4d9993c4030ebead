// SPDX-License-Identifier: GPL-2.0

#include "workloads.hpp"

namespace perf {

void run_parameter_server(Rank& rank) {
  const std::uint64_t bytes = rank.workload().bytes;
  if (rank.id() != 0) {
    rank.send(0, 0, bytes);
    rank.receive(0, 1);
  } else {
    for (std::size_t peer = 1; peer < rank.ranks(); ++peer) rank.receive(peer, 0);
    for (std::size_t peer = 1; peer < rank.ranks(); ++peer) rank.send_whole(peer, 1, bytes);
  }
  rank.finish();
}

}  // namespace perf

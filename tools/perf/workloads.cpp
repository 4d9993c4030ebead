// SPDX-License-Identifier: GPL-2.0

#include "workloads.hpp"

namespace perf {

void run_round(Rank& rank) {
  switch (rank.workload().test) {
    case Test::kMessage:
      return run_message(rank);
    case Test::kIncast:
      return run_incast(rank);
    case Test::kPs:
      return run_parameter_server(rank);
    case Test::kRing:
      return run_ring(rank);
    case Test::kTranspose:
      return run_transpose(rank);
    default:
      return;
  }
}

}  // namespace perf

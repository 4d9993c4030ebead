// SPDX-License-Identifier: GPL-2.0

#include "workloads.hpp"

namespace perf {

void run_round(Rank& rank) {
  switch (rank.workload().test) {
    case TestKind::kMessage:
      return run_message(rank);
    case TestKind::kIncast:
      return run_incast(rank);
    case TestKind::kPs:
      return run_parameter_server(rank);
    case TestKind::kRing:
      return run_ring(rank);
    case TestKind::kTranspose:
      return run_transpose(rank);
    default:
      return;
  }
}

}  // namespace perf

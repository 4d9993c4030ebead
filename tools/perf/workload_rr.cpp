// SPDX-License-Identifier: GPL-2.0

#include "workloads.hpp"

namespace perf {

std::vector<Transaction> request(Rank& rank) {
  const auto& workload = rank.workload();
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(workload.duration_us) * 1000;
  std::vector<Transaction> transactions;
  std::size_t peer = 0;
  for (std::uint32_t step = 0;; ++step) {
    peer = peer % (rank.ranks() - 1) + 1;
    const std::int64_t start = now_ns();
    if (start >= until) break;
    rank.send(peer, step, workload.bytes);
    rank.receive(peer, step);
    transactions.push_back({start, rank.last_ns()});
  }
  rank.finish();
  return transactions;
}

void respond(Rank& rank, const std::function<bool()>& done) {
  while (!done()) {
    for (const auto& noted : rank.take_all())
      rank.send(noted.peer, static_cast<std::uint32_t>(noted.tag), rank.workload().response_bytes);
    if (!done()) rank.wait(kNever);
  }
  rank.finish();
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "parts.hpp"
#include "workloads.hpp"

namespace perf {

void run_transpose(Rank& rank) {
  const std::size_t ranks = rank.ranks();
  const std::uint64_t bytes = rank.workload().bytes;
  // Each begins with its neighbour, so that not all send to one at first.
  for (std::size_t i = 1; i < ranks; ++i) {
    const std::size_t peer = (rank.id() + i) % ranks;
    rank.send(peer, 0, part_bytes(bytes, ranks, peer));
  }
  for (std::size_t i = 1; i < ranks; ++i) rank.receive((rank.id() + i) % ranks, 0);
  for (std::size_t i = 1; i < ranks; ++i)
    rank.send_whole((rank.id() + i) % ranks, 1, part_bytes(bytes, ranks, rank.id()));
  for (std::size_t i = 1; i < ranks; ++i) rank.receive((rank.id() + i) % ranks, 1);
  rank.finish();
}

}  // namespace perf

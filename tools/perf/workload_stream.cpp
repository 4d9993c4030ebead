// SPDX-License-Identifier: GPL-2.0

#include <algorithm>

#include "workloads.hpp"

namespace perf {

std::int64_t send_stream(Rank& rank, std::span<const std::size_t> peers) {
  const auto& workload = rank.workload();
  const std::int64_t start = now_ns();
  const std::int64_t until = start + static_cast<std::int64_t>(workload.duration_us) * 1000;
  const std::size_t window = workload.window * peers.size();
  std::uint32_t step = 0;
  while (now_ns() < until) {
    while (rank.unfinished() < window && now_ns() < until) {
      for (const auto peer : peers) rank.send(peer, step, workload.bytes);
      ++step;
    }
    (void)rank.take_all();
    if (rank.unfinished() >= window) rank.wait(until);
  }
  return start;
}

std::vector<Noted> receive_stream(Rank& rank, const std::function<bool()>& done) {
  std::vector<Noted> all;
  while (!done()) {
    const auto taken = rank.take_all();
    all.insert(all.end(), taken.begin(), taken.end());
    if (!done()) rank.wait(kNever);
  }
  return all;
}

StreamCount count_stream(const Workload& workload, std::span<const Noted> noted, std::size_t peer,
                         std::int64_t start_ns) {
  const std::int64_t until = start_ns + static_cast<std::int64_t>(workload.duration_us) * 1000;
  StreamCount count;
  count.last_ns = start_ns;
  if (workload.interval_us != 0)
    count.intervals.resize((workload.duration_us + workload.interval_us - 1) /
                           workload.interval_us);
  for (const auto& one : noted) {
    if (one.peer != peer || one.at_ns > until) continue;
    const std::uint64_t arrived = one.bytes - one.missing;
    ++count.messages;
    count.bytes += arrived;
    count.missing += one.missing;
    count.below += one.below ? 1 : 0;
    count.last_ns = std::max(count.last_ns, one.at_ns);
    if (count.intervals.empty()) continue;
    const auto since = static_cast<std::uint64_t>(std::max<std::int64_t>(0, one.at_ns - start_ns));
    const std::size_t interval = since / 1000 / workload.interval_us;
    count.intervals[std::min(interval, count.intervals.size() - 1)] += arrived;
  }
  return count;
}

}  // namespace perf

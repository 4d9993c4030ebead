// SPDX-License-Identifier: GPL-2.0

#include "transport.hpp"

#include <algorithm>
#include <cerrno>

#include "dblp_transport.hpp"
#include "tcp_transport.hpp"

namespace train {

TransportResult listen(const Endpoint& endpoint, std::size_t peers, const Ready& ready,
                       Clock::time_point deadline) {
  if (endpoint.transport == "tcp") return listen_tcp(endpoint, peers, ready, deadline);
  if (endpoint.transport == "dblp") return listen_dblp(endpoint, peers, ready);
  return dblp::Error(EINVAL, "transport '" + endpoint.transport + "'");
}

TransportResult connect(const Endpoint& endpoint) {
  if (endpoint.transport == "tcp") return connect_tcp(endpoint);
  if (endpoint.transport == "dblp") return connect_dblp(endpoint);
  return dblp::Error(EINVAL, "transport '" + endpoint.transport + "'");
}

int poll_time(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
}

}  // namespace train

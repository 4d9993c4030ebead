// SPDX-License-Identifier: GPL-2.0
//
// The workload over ordinary TCP sockets: each message behind its length, Nagle
// off, one connection for each worker, none of them waiting for another.
#pragma once

#include "transport.hpp"

namespace train {

TransportResult listen_tcp(const Endpoint& endpoint, std::size_t peers, const Ready& ready,
                           Clock::time_point deadline);
TransportResult connect_tcp(const Endpoint& endpoint);

}  // namespace train

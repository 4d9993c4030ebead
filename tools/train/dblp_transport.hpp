// SPDX-License-Identifier: GPL-2.0
//
// The workload over DBLP: one socket for all peers, and a completion for every
// message, so that what the network took is known byte by byte.
#pragma once

#include "transport.hpp"

namespace train {

TransportResult listen_dblp(const Endpoint& endpoint, std::size_t peers, const Ready& ready);
TransportResult connect_dblp(const Endpoint& endpoint);

}  // namespace train

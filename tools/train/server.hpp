// SPDX-License-Identifier: GPL-2.0
//
// The parameter server: in each round it takes one gradient from every worker,
// adds them up with zeros where bytes are missing, and sends every worker the
// same average, reliably, so that all replicas stay equal.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "transport.hpp"

namespace train {

struct ServerOptions {
  std::uint32_t workers = 4;
  std::uint32_t rounds = 100;
  std::chrono::seconds patience{120};  // longest wait for any message
};

struct RoundReport {
  std::uint32_t round = 0;  // from 1
  float loss = 0;           // mean of the workers' batches
  double missing = 0;       // share of the gradients' bytes
};

struct ServerReport {
  double total_s = 0;  // from the start signal until the last round's average is sent
  std::vector<RoundReport> rounds;
  std::uint64_t checksum = 0;  // of all replicas
  Traffic traffic;
};

// ECANCELED if the replicas are not equal at the end.
dblp::Result<ServerReport> serve(Transport& transport, const ServerOptions& options,
                                 const std::function<void(const RoundReport&)>& progress);

}  // namespace train

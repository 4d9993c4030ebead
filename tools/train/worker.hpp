// SPDX-License-Identifier: GPL-2.0
//
// A worker: computes the gradient of its own images, sends it, and applies the
// average that comes back.
#pragma once

#include <cstdint>
#include <vector>

#include "dataset.hpp"
#include "model.hpp"
#include "policy.hpp"
#include "transport.hpp"

namespace train {

struct WorkerOptions {
  std::uint32_t rank = 0;
  std::uint32_t workers = 4;
  std::uint32_t batch = 32;
  std::uint64_t seed = 1;
  float rate = 0.05F;
  float momentum = 0.9F;
  Schedule schedule{};
  std::chrono::seconds patience{120};
};

struct WorkerReport {
  std::vector<double> ready_s;   // gradient ready, on the monotonic clock
  std::vector<double> round_ms;  // from then until the average was there
  Traffic traffic;
};

// Trains `model` in place, for as many rounds as the server says. ECANCELED if
// the replicas are not equal at the end.
dblp::Result<WorkerReport> work(Transport& transport, const WorkerOptions& options,
                                const Dataset& data, Model& model);

}  // namespace train

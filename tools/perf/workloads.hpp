// SPDX-License-Identifier: GPL-2.0
//
// What the ranks do. Those with rounds have one function, which all ranks run at once;
// those that last a given time have one for each role.
//
// In collectives the tolerance holds for what is summed up on arrival. What is passed
// on, or must be the same everywhere, is sent whole: results of PS and TRANSPOSE, all
// of RING.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rank.hpp"

namespace perf {

// Client to all servers, a message each.
void run_message(Rank& rank);
// All servers to the client at once.
void run_incast(Rank& rank);
// Gradients from all servers to the client, then parameters from it to all.
void run_parameter_server(Rank& rank);
// All-reduce: 2 (n - 1) steps, in each a part goes to the next rank.
void run_ring(Rank& rank);
// All-reduce: each part to the rank that owns it, then its sum to all.
void run_transpose(Rank& rank);

// One round of a test that has rounds.
void run_round(Rank& rank);

// Sends to `peers` in turn, from now on, as long as the test lasts. Returns when it began.
std::int64_t send_stream(Rank& rank, std::span<const std::size_t> peers);
// Takes what comes, until `done`.
std::vector<Noted> receive_stream(Rank& rank, const std::function<bool()>& done);

struct StreamCount {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;  // that arrived
  std::uint64_t missing = 0;
  std::uint64_t below = 0;
  std::int64_t last_ns = 0;
  std::vector<std::uint64_t> intervals;  // bytes that arrived in each
};
// Of what `peer` sent, what arrived from `start_ns` on, as long as the test lasts.
StreamCount count_stream(const Workload& workload, std::span<const Noted> noted, std::size_t peer,
                         std::int64_t start_ns);

struct Transaction {
  std::int64_t start_ns;
  std::int64_t end_ns;
};
// One request after the other, as long as the test lasts.
std::vector<Transaction> request(Rank& rank);
// Answers them, until `done`.
void respond(Rank& rank, const std::function<bool()>& done);

}  // namespace perf

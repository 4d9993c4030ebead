// SPDX-License-Identifier: GPL-2.0
//
// What a test found out, before anybody formats it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config.hpp"
#include "frame.hpp"
#include "transport.hpp"

namespace perf {

// Times are the client's CLOCK_MONOTONIC.
struct Round {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;  // payload of all messages of the round
  std::uint64_t delivered = 0;
  std::uint64_t missing = 0;
  std::uint64_t retransmitted = 0;
};

struct Iteration {
  double seconds = 0;
  std::uint64_t bytes = 0;  // delivered
  std::uint64_t missing = 0;
  std::uint64_t below = 0;     // messages
  std::uint64_t messages = 0;  // or transactions
  std::vector<std::uint64_t> intervals;
};

struct Host {
  std::string name;     // as given
  std::string address;  // of what is measured
  Json about;
  bool same_clock = true;
  std::int64_t clock_error_ns = 0;  // at most, if it is not the same
};

struct Result {
  std::vector<Host> hosts;  // the client first
  std::vector<Round> warm;
  std::vector<Round> rounds;  // for RR, transactions
  std::vector<Iteration> iterations;
  std::uint64_t below = 0;  // messages that arrived below their bound
  Traffic traffic;          // of all hosts, warm rounds included
  std::uint64_t verified = 0;
};

}  // namespace perf

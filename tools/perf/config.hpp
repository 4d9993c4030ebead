// SPDX-License-Identifier: GPL-2.0
//
// What a test is: sent by the client to each server, and checked on both ends by the
// same rules, because a server believes no client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dblp/map.hpp"
#include "frame.hpp"

namespace perf {

enum class Test { kStream, kMaerts, kRr, kMessage, kIncast, kPs, kRing, kTranspose };

enum class Protocol { kDblp, kTcp, kSctp, kUdp };

// Which part of unordered, partly reliable SCTP gives up a fragment.
enum class Partial { kNone, kTtl, kRtx };

struct TransportOptions {
  std::string name = "dblp";
  // All transports.
  std::uint64_t send_buffer = 0;     // bytes; 0: what the transport does best with
  std::uint64_t receive_buffer = 0;  // the same
  // Those that can leave something out.
  std::uint32_t tolerance_ppm = 0;
  std::vector<std::uint32_t> phase_ppm;  // tolerances of the rounds in turn
  bool eager = false;
  std::uint32_t deadline_us = 0;
  // dblp
  std::vector<dblp::Range> protect;
  std::uint32_t group = 0;
  std::uint16_t max_rounds = 0;
  std::uint8_t priority = 0;
  bool ordered = false;
  std::uint32_t dead_time_ms = 0;  // 0: the kernel's
  // Congestion control of tcp-NAME is in the name; this is that of dblp.
  std::string congestion;
  std::uint64_t rate = 0;  // bytes per second; dblp with fixed, and udp; 0: none
  // tcp, sctp
  bool delay_small = false;  // leave Nagle's algorithm on
  // pr-sctp-rtx
  std::uint32_t max_rtx = 0;
  // sctp and udp
  std::uint32_t fragment_bytes = 0;  // 0: what fits best

  // Of the name.
  [[nodiscard]] Protocol protocol() const;
  [[nodiscard]] Partial partial() const;
  // Can it leave bytes out?
  [[nodiscard]] bool lossy() const;
  // For TCP, what the kernel calls it.
  [[nodiscard]] std::string tcp_congestion() const;

  [[nodiscard]] std::uint32_t tolerance_of(std::uint32_t round) const;
};

struct Workload {
  Test test = Test::kMessage;
  std::uint64_t bytes = 0;           // of a message; for all-reduce, of the vector
  std::uint64_t response_bytes = 0;  // RR
  std::uint32_t rounds = 1;
  std::uint32_t warm_rounds = 0;
  std::uint64_t compute_us = 0;
  std::uint64_t duration_us = 0;  // STREAM, MAERTS, RR
  std::uint32_t window = 0;       // STREAM, MAERTS: messages on their way at once
  std::uint64_t interval_us = 0;  // of interim results; 0: none
  std::uint64_t seed = 1;
  bool verify = true;

  // Does it last a given time, instead of a number of rounds?
  [[nodiscard]] bool timed() const;
};

struct Config {
  Workload workload;
  TransportOptions transport;
};

std::string_view name_of(Test test);
// Throws with the names there are, and the likely one if it is close.
Test parse_test(const std::string& name);
void check_transport_name(const std::string& name);
const std::vector<std::string>& transport_names();

// Throws if a value cannot be, or contradicts another.
void validate(const Config& config, std::size_t ranks);

// The largest message that any rank sends.
std::uint64_t largest_message(const Workload& workload, std::size_t ranks);

Json to_json(const Config& config);
// Throws for anything that to_json() cannot have made.
Config config_from_json(const Json& json);

// Numbers of untrusted JSON: throw if it is not there, no whole number, or too large.
std::uint64_t get_number(const Json& object, const char* key, std::uint64_t most);
std::string get_string(const Json& object, const char* key, std::size_t longest);
bool get_bool(const Json& object, const char* key);

}  // namespace perf

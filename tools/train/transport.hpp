// SPDX-License-Identifier: GPL-2.0
//
// Messages between one server and its workers, over DBLP or over TCP. All that
// the trainer knows of a network is here, so both carry the same workload.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "dblp/address.hpp"
#include "dblp/result.hpp"
#include "dblp/send_options.hpp"

namespace train {

using Clock = std::chrono::steady_clock;

struct Incoming {
  std::size_t peer = 0;              // index, in the order peers were first seen
  std::span<const std::byte> bytes;  // valid until the next call; holes are zeros
  std::uint64_t missing = 0;         // bytes that are holes
};

// Payload bytes of what this end sent, headers of the transport not counted.
struct Traffic {
  std::uint64_t payload = 0;          // given to the transport
  std::uint64_t sent = 0;             // put on the wire, repairs included
  std::optional<std::uint64_t> lost;  // found lost by the transport, if it says so
  std::uint64_t tolerated = 0;        // never arrived, within the tolerance
  std::uint64_t retransmitted = 0;    // sent again
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Queues a message; never waits for the peer. At most `tolerance` of it may get
  // lost, none of the first `protect` bytes; a reliable transport ignores both.
  virtual dblp::Result<void> send(std::size_t peer, std::span<const std::byte> message,
                                  dblp::Tolerance tolerance, std::size_t protect) = 0;

  // The next message, from whom it may be; ETIMEDOUT at the deadline.
  virtual dblp::Result<Incoming> receive(Clock::time_point deadline) = 0;

  // Waits until the peers have all that was sent to them. No more calls after it
  // but traffic().
  virtual dblp::Result<void> finish(Clock::time_point deadline) = 0;

  [[nodiscard]] virtual Traffic traffic() const = 0;
};

struct Endpoint {
  std::string transport;        // "dblp" or "tcp"
  dblp::Address address;        // to listen on, or of the server
  std::string congestion;       // empty: the default
  std::size_t max_message = 0;  // bytes; larger ones are an error
};

using TransportResult = dblp::Result<std::unique_ptr<Transport>>;

// Calls `ready` with the address once workers can connect, and returns when
// `peers` of them have (TCP), or at once (DBLP, which knows no connections).
using Ready = std::function<void(const dblp::Address&)>;
TransportResult listen(const Endpoint& endpoint, std::size_t peers, const Ready& ready,
                       Clock::time_point deadline);

// The server is peer 0.
TransportResult connect(const Endpoint& endpoint);

// Milliseconds until `deadline` as poll() takes them, rounded up.
int poll_time(Clock::time_point deadline);

}  // namespace train

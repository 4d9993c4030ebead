// SPDX-License-Identifier: GPL-2.0
//
// The one interface through which all workloads send and receive: messages between
// the ranks of a test. Nothing here waits, except connect(); a rank calls take() until
// there is nothing, and then waits for what watch() and wake_ns() name.
//
// Ranks are numbered: 0 is the client, the servers follow.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "clock.hpp"
#include "config.hpp"
#include "dblp/address.hpp"
#include "dblp/map.hpp"

namespace perf {

// What a transport has to know of the test it serves.
struct TransportSetup {
  TransportOptions options;
  std::size_t rank = 0;
  std::size_t ranks = 0;
  std::uint64_t token = 0;  // of this test: keeps strangers out
  std::uint64_t max_message = 0;
  dblp::Address local;  // port 0
};

// A message to send. Its bytes stay where they are until the test is over.
struct Outgoing {
  std::size_t peer = 0;
  std::uint64_t tag = 0;  // unique between these two ranks
  std::span<const std::byte> data;
  std::uint32_t tolerance_ppm = 0;
  std::uint8_t phase = 0;
};

// A message that arrived. Its bytes stay until the next take().
struct Arrival {
  std::size_t peer = 0;
  std::uint64_t tag = 0;
  std::span<const std::byte> data;  // zeros in the holes
  dblp::Map holes;
  std::uint64_t missing = 0;
  bool below = false;  // more is missing than was to be
  std::int64_t at_ns = 0;
};

// Counted since the test began. What a transport cannot know stays unset.
struct Traffic {
  std::uint64_t offered = 0;          // payload of messages given to send()
  std::optional<std::uint64_t> sent;  // payload on the wire, repairs included
  std::optional<std::uint64_t> retransmitted;
  std::optional<std::uint64_t> tolerated;  // left out within the bound, as told to the sender
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Where peers find this rank.
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  // Makes ready to exchange messages with `links` (ranks), of which all addresses are
  // known. Both ends call it at about the same time.
  virtual void connect(std::span<const dblp::Address> ranks, std::span<const std::size_t> links,
                       std::int64_t until_ns) = 0;

  virtual void send(const Outgoing& message) = 0;
  // Moves what can be moved, and returns what arrived.
  virtual std::optional<Arrival> take() = 0;
  // Messages given to send() that this end has not got rid of: not all in the hands of
  // the kernel, or, where the kernel tells, without a verdict.
  [[nodiscard]] virtual std::size_t unfinished() const = 0;

  virtual void watch(std::vector<pollfd>& fds) const = 0;
  // When take() has to be called though no descriptor is ready.
  [[nodiscard]] virtual std::int64_t wake_ns() const { return kNever; }

  [[nodiscard]] virtual Traffic traffic() = 0;
};

// Opens and binds. Throws if the kernel lacks the transport, and says what to load.
std::unique_ptr<Transport> open_transport(const TransportSetup& setup);

std::unique_ptr<Transport> open_dblp(const TransportSetup& setup);
std::unique_ptr<Transport> open_tcp(const TransportSetup& setup);
std::unique_ptr<Transport> open_sctp(const TransportSetup& setup);
std::unique_ptr<Transport> open_udp(const TransportSetup& setup);

}  // namespace perf

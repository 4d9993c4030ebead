// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// A DBLP socket: sends messages of which a stated share may be missing, and
// receives them with a map of what is.
//
//   auto socket = dblp::Socket::open().value();
//   socket.bind(dblp::Address::parse("0.0.0.0:4000").value()).value();
//   auto event = socket.receive(buffer);
//   if (event)
//     if (auto* received = std::get_if<dblp::Received>(&*event)) use(*received);
//
// One thread may send while another receives; for two that do the same, the
// kernel decides the order. Nothing is retried behind the caller's back: a
// signal shows as EINTR.
#pragma once

#include <linux/dblp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "dblp/address.hpp"
#include "dblp/export.hpp"
#include "dblp/map.hpp"
#include "dblp/result.hpp"
#include "dblp/send_options.hpp"

namespace dblp {

enum class Outcome : std::uint8_t {
  kOk = DBLP_OUTCOME_OK,            // in the peer's queue, within its bound
  kBelow = DBLP_OUTCOME_BELOW,      // judged below its bound
  kRefused = DBLP_OUTCOME_REFUSED,  // larger than the peer takes
  kUnknown = DBLP_OUTCOME_UNKNOWN,  // the flow died before a verdict
};

// A message from a peer. Its holes are zeros unless Holes::kKeep is set.
struct Received {
  std::size_t bytes = 0;  // written to the caller's buffer
  Address peer{};
  dblp_recv_info info{};
  Map map{};
  bool truncated = false;      // the buffer was shorter than the message
  bool map_truncated = false;  // the map lacks its end

  [[nodiscard]] bool partial() const noexcept { return (info.flags & DBLP_RECV_PARTIAL) != 0; }
};

// What became of a message that this socket sent.
struct Completion {
  Outcome outcome = Outcome::kUnknown;
  Address peer{};
  dblp_completion info{};
  Map map{};
  bool map_truncated = false;

  // For Outcome::kUnknown the errno of the flow's death, else 0.
  [[nodiscard]] int error() const noexcept { return info.error; }
};

using Event = std::variant<Received, Completion>;

enum class Holes : int {
  kZero = DBLP_HOLES_ZERO,  // bytes that are missing are set to zero
  kKeep = DBLP_HOLES_KEEP,  // and left as they were
};

class DBLP_EXPORT Socket {
 public:
  // EAFNOSUPPORT if the dblp module is not loaded.
  static Result<Socket> open();
  // The family to open: what the module says, else AF_DBLP.
  static int family();

  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  [[nodiscard]] int fd() const noexcept { return fd_; }

  Result<void> bind(const Address& address);
  // Fixes the peer: send() goes there, and only its messages are received.
  Result<void> connect(const Address& peer);
  [[nodiscard]] Result<Address> local_address() const;

  // Whether each sent message is answered by a Completion in receive().
  Result<void> set_completions(bool on);
  // Whether messages below their bound are received too.
  Result<void> set_partial(bool on);
  Result<void> set_holes(Holes holes);
  Result<void> set_congestion(std::string_view name);
  // Silence after which a flow with something outstanding is dead.
  Result<void> set_dead_time(std::chrono::milliseconds time);
  // Larger messages are refused.
  Result<void> set_max_message(std::uint64_t bytes);
  Result<void> set_buffers(int send_bytes, int receive_bytes);

  // Takes the whole message, or fails; returns its bytes. With MSG_DONTWAIT in
  // `flags`, EAGAIN if there is no room.
  Result<std::size_t> send(std::span<const std::byte> message, const SendOptions& options = {},
                           int flags = 0);
  Result<std::size_t> send_to(const Address& peer, std::span<const std::byte> message,
                              const SendOptions& options = {}, int flags = 0);

  // The next message or completion. `buffer` must hold the largest message that
  // is expected (and a completion); what does not fit is lost, and `truncated` set.
  Result<Event> receive(std::span<std::byte> buffer, int flags = 0);

 private:
  explicit Socket(int fd) noexcept : fd_(fd) {}

  int fd_;
};

}  // namespace dblp

// SPDX-License-Identifier: GPL-2.0

#include "dblp_transport.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "dblp/socket.hpp"

namespace train {
namespace {

using dblp::Error;
using dblp::Result;

// Room for this many of the largest messages in each direction and for each
// peer: the next round's may come while this round's are still on their way.
constexpr std::size_t kMessagesInFlight = 2;

class DblpTransport final : public Transport {
 public:
  DblpTransport(dblp::Socket socket, std::size_t max_message, std::size_t max_peers,
                std::vector<dblp::Address> peers)
      : socket_(std::move(socket)),
        buffer_(max_message),
        max_peers_(max_peers),
        peers_(std::move(peers)) {
    traffic_.lost = 0;
  }

  Result<void> send(std::size_t peer, std::span<const std::byte> message, dblp::Tolerance tolerance,
                    std::size_t protect) override {
    dblp::SendOptions options;
    options.tolerance = tolerance;
    if (!tolerance.reliable() && protect > 0) options.protect = {{0, protect}};
    auto sent = socket_.send_to(peers_[peer], message, options);
    if (!sent) return sent.error();
    traffic_.payload += message.size();
    ++unfinished_;
    return {};
  }

  Result<Incoming> receive(Clock::time_point deadline) override {
    for (;;) {
      auto event = next(deadline);
      if (!event) return event.error();
      if (const auto* completion = std::get_if<dblp::Completion>(&*event)) {
        count(*completion);
        if (completion->outcome != dblp::Outcome::kOk) return failure(*completion);
        continue;
      }
      const auto& received = std::get<dblp::Received>(*event);
      const auto peer = index_of(received.peer);
      if (!peer) continue;  // not one of the workers
      if (received.truncated)
        return Error(EMSGSIZE, "message of " + std::to_string(received.info.len) + " bytes");
      // Two accounts of one thing, made in different places of the kernel.
      if (received.map_truncated || received.map.missing_bytes() != received.info.missing_bytes)
        return Error(EBADMSG, "map and count of missing bytes disagree");
      return Incoming{*peer, std::span(buffer_).first(received.bytes), received.info.missing_bytes};
    }
  }

  Result<void> finish(Clock::time_point deadline) override {
    while (unfinished_ > 0) {
      auto event = next(deadline);
      if (!event) return event.error();
      const auto* completion = std::get_if<dblp::Completion>(&*event);
      if (completion == nullptr) continue;
      count(*completion);
      // The peer may have what it waited for and be gone before its last answer
      // got here. If it has not, it says so itself.
      if (completion->outcome != dblp::Outcome::kOk &&
          completion->outcome != dblp::Outcome::kUnknown)
        return failure(*completion);
    }
    return {};
  }

  [[nodiscard]] Traffic traffic() const override { return traffic_; }

 private:
  Result<dblp::Event> next(Clock::time_point deadline) {
    for (;;) {
      auto event = socket_.receive(buffer_, MSG_DONTWAIT);
      if (event || (event.error().code() != EAGAIN && event.error().code() != EINTR)) return event;
      pollfd poll{socket_.fd(), POLLIN, 0};
      const int ready = ::poll(&poll, 1, poll_time(deadline));
      if (ready < 0 && errno != EINTR) return Error(errno, "poll");
      if (ready == 0 && Clock::now() >= deadline) return Error(ETIMEDOUT, "waiting for a peer");
    }
  }

  std::optional<std::size_t> index_of(const dblp::Address& peer) {
    const auto known = std::ranges::find(peers_, peer);
    if (known != peers_.end()) return static_cast<std::size_t>(known - peers_.begin());
    if (peers_.size() == max_peers_) return std::nullopt;
    peers_.push_back(peer);
    return peers_.size() - 1;
  }

  void count(const dblp::Completion& completion) {
    const auto& info = completion.info;
    --unfinished_;
    traffic_.sent += info.sent_bytes;
    traffic_.retransmitted += info.retransmitted_bytes;
    *traffic_.lost +=
        std::min<std::uint64_t>(std::uint64_t{info.lost_segs} * info.seg_size, info.len);
    if (completion.outcome == dblp::Outcome::kOk) traffic_.tolerated += info.missing_bytes;
  }

  static Error failure(const dblp::Completion& completion) {
    const std::string to = "message to " + completion.peer.to_string();
    switch (completion.outcome) {
      case dblp::Outcome::kBelow:
        return {EIO, to + " arrived below its bound"};
      case dblp::Outcome::kRefused:
        return {EMSGSIZE, to + " is larger than the peer takes (" +
                              std::to_string(completion.info.limit) + " bytes)"};
      default:
        return {completion.error() != 0 ? completion.error() : EIO, to};
    }
  }

  dblp::Socket socket_;
  std::vector<std::byte> buffer_;
  std::size_t max_peers_;
  std::vector<dblp::Address> peers_;
  std::size_t unfinished_ = 0;
  Traffic traffic_;
};

Result<dblp::Socket> open_socket(const Endpoint& endpoint, std::size_t peers) {
  auto socket = dblp::Socket::open();
  if (!socket) {
    if (socket.error().code() == EAFNOSUPPORT)
      return Error(EAFNOSUPPORT, "no DBLP sockets (is the module dblp loaded?)");
    return socket;
  }
  const auto room = static_cast<int>(kMessagesInFlight * peers * endpoint.max_message);
  auto result = socket->set_completions(true);
  if (result) result = socket->set_buffers(room, room);
  if (result && !endpoint.congestion.empty()) result = socket->set_congestion(endpoint.congestion);
  if (!result) return result.error();
  return socket;
}

}  // namespace

TransportResult listen_dblp(const Endpoint& endpoint, std::size_t peers, const Ready& ready) {
  auto socket = open_socket(endpoint, peers);
  if (!socket) return socket.error();
  auto result = socket->bind(endpoint.address);
  if (!result) return Error(result.error().code(), "bind to " + endpoint.address.to_string());
  auto address = socket->local_address();
  if (!address) return address.error();
  ready(*address);
  return std::unique_ptr<Transport>(std::make_unique<DblpTransport>(
      std::move(*socket), endpoint.max_message, peers, std::vector<dblp::Address>{}));
}

TransportResult connect_dblp(const Endpoint& endpoint) {
  auto socket = open_socket(endpoint, 1);
  if (!socket) return socket.error();
  auto result = socket->connect(endpoint.address);
  if (!result) return Error(result.error().code(), "connect to " + endpoint.address.to_string());
  return std::unique_ptr<Transport>(std::make_unique<DblpTransport>(
      std::move(*socket), endpoint.max_message, 1, std::vector{endpoint.address}));
}

}  // namespace train

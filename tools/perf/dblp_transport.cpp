// SPDX-License-Identifier: GPL-2.0
//
// DBLP: one socket for all peers; a message of a test is a message on the wire.

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <vector>

#include "dblp/socket.hpp"
#include "failure.hpp"
#include "net.hpp"
#include "transport.hpp"

namespace perf {
namespace {

// A receive buffer counts 1024 bytes for each segment beside the payload: room for
// this many of the largest messages from each peer, at the smallest segments.
constexpr std::uint64_t kMessagesPerPeer = 4;
constexpr std::uint64_t kLeastBuffer = std::uint64_t{8} << 20;
constexpr std::uint64_t kMostBuffer = std::uint64_t{1} << 29;

template <class T>
T must(dblp::Result<T> result, const char* what) {
  if (!result) fail_errno(fmt::format("dblp: {}", what), result.error().code());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

dblp::Socket open_socket() {
  auto socket = dblp::Socket::open();
  if (!socket && socket.error().code() == EAFNOSUPPORT)
    throw Failure("dblp: the kernel has no such sockets: load dblp.ko (modprobe dblp)");
  return must(std::move(socket), "socket");
}

class DblpTransport final : public Transport {
 public:
  explicit DblpTransport(const TransportSetup& setup)
      : options_(setup.options),
        socket_(open_socket()),
        buffer_(std::max<std::uint64_t>(setup.max_message, sizeof(dblp_completion))) {
    must(socket_.set_completions(true), "DBLP_SO_COMPLETIONS");
    must(socket_.set_partial(true), "DBLP_SO_PARTIAL");
    must(socket_.set_max_message(setup.max_message), "DBLP_SO_MAX_MESSAGE");
    const std::uint64_t room =
        std::clamp(kMessagesPerPeer * setup.ranks * setup.max_message, kLeastBuffer, kMostBuffer);
    set_buffers(socket_.fd(), options_.send_buffer != 0 ? options_.send_buffer : room,
                options_.receive_buffer != 0 ? options_.receive_buffer : room);
    if (options_.dead_time_ms != 0)
      must(socket_.set_dead_time(std::chrono::milliseconds(options_.dead_time_ms)),
           "DBLP_SO_DEAD_TIME");
    set_congestion();
    const auto bound = socket_.bind(setup.local);
    if (!bound) fail_errno("dblp: bind to " + host_of(setup.local), bound.error().code());
  }

  [[nodiscard]] std::uint16_t port() const override {
    return must(socket_.local_address(), "getsockname").port();
  }

  void connect(std::span<const dblp::Address> ranks, std::span<const std::size_t> /*links*/,
               std::int64_t /*until_ns*/) override {
    peers_.assign(ranks.begin(), ranks.end());
  }

  void send(const Outgoing& message) override {
    traffic_.offered += message.data.size();
    queue_.push_back(message);
    flush();
  }

  std::optional<Arrival> take() override {
    flush();
    for (;;) {
      auto event = socket_.receive(buffer_, MSG_DONTWAIT);
      if (!event) {
        const int code = event.error().code();
        if (code == EAGAIN) return std::nullopt;
        if (code == EINTR) continue;
        fail_errno("dblp: recvmsg", code);
      }
      const std::int64_t now = now_ns();
      if (const auto* completion = std::get_if<dblp::Completion>(&*event)) {
        finish(*completion);
        continue;
      }
      auto arrival = accept(std::get<dblp::Received>(*event), now);
      if (arrival) return arrival;
    }
  }

  [[nodiscard]] std::size_t unfinished() const override { return queue_.size() + in_kernel_; }

  void watch(std::vector<pollfd>& fds) const override {
    fds.push_back(
        {socket_.fd(), static_cast<short>(queue_.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  }

  [[nodiscard]] Traffic traffic() override { return traffic_; }

 private:
  void set_congestion() {
    if (options_.congestion.empty()) return;
    const auto set = socket_.set_congestion(options_.congestion);
    if (!set && set.error().code() == ENOENT)
      throw Failure(
          fmt::format("--cc {}: dblp has no such congestion control", options_.congestion));
    must(set, "DBLP_SO_CONGESTION");
    if (options_.rate != 0 && setsockopt(socket_.fd(), SOL_DBLP, DBLP_SO_RATE, &options_.rate,
                                         sizeof(options_.rate)) != 0)
      fail_errno("dblp: DBLP_SO_RATE");
  }

  void flush() {
    while (!queue_.empty()) {
      const auto& message = queue_.front();
      const auto sent =
          socket_.send_to(peers_[message.peer], message.data, send_options(message), MSG_DONTWAIT);
      if (!sent) {
        const int code = sent.error().code();
        if (code == EAGAIN || code == EINTR) return;
        fail_errno(fmt::format("dblp: message of {} bytes to {}", message.data.size(),
                               peers_[message.peer].to_string()),
                   code);
      }
      queue_.pop_front();
      ++in_kernel_;
    }
  }

  [[nodiscard]] dblp::SendOptions send_options(const Outgoing& message) const {
    dblp::SendOptions options;
    options.tolerance = dblp::Tolerance::ppm(message.tolerance_ppm);
    options.mode = options_.eager ? dblp::Mode::kEager : dblp::Mode::kPressure;
    options.deadline = std::chrono::microseconds(options_.deadline_us);
    options.phase = message.phase;
    options.priority = options_.priority;
    options.tag = message.tag;
    options.group = options_.group;
    options.max_rounds = options_.max_rounds;
    options.ordered = options_.ordered;
    for (auto range : options_.protect) {
      if (range.offset >= message.data.size()) continue;
      range.length = std::min(range.length, message.data.size() - range.offset);
      options.protect.push_back(range);
    }
    return options;
  }

  void finish(const dblp::Completion& completion) {
    const auto& info = completion.info;
    --in_kernel_;
    add(traffic_.sent, info.sent_bytes);
    add(traffic_.retransmitted, info.retransmitted_bytes);
    const std::string what =
        fmt::format("dblp: message of {} bytes to {}", info.len, completion.peer.to_string());
    switch (completion.outcome) {
      case dblp::Outcome::kOk:
        add(traffic_.tolerated, info.missing_bytes);
        return;
      case dblp::Outcome::kBelow:
        return;
      case dblp::Outcome::kRefused:
        throw Failure(
            fmt::format("{}: refused: the peer takes {} bytes at most: see -s and sysctl "
                        "net.dblp.max_message there",
                        what, info.limit));
      case dblp::Outcome::kUnknown:
        break;
    }
    if (info.error == ECONNRESET || info.error == ECONNREFUSED)
      throw PeerGone(what + ": the peer's process ended");
    fail_errno(what, info.error != 0 ? info.error : EIO);
  }

  std::optional<Arrival> accept(dblp::Received& received, std::int64_t now) {
    const auto found = std::ranges::find(peers_, received.peer);
    if (found == peers_.end()) return std::nullopt;  // none of ours
    if (received.truncated || received.map_truncated)
      throw Failure(fmt::format("dblp: message of {} bytes from {} was cut short",
                                received.info.len, received.peer.to_string()));
    // Two accounts of one thing, made in different places of the kernel.
    if (received.map.missing_bytes() != received.info.missing_bytes)
      throw Failure("dblp: map and count of missing bytes disagree");
    if (!received.partial() && received.info.missing_bytes > received.info.allowed_bytes)
      throw Failure("dblp: more is missing than was allowed");
    Arrival arrival;
    arrival.peer = static_cast<std::size_t>(found - peers_.begin());
    arrival.tag = received.info.tag;
    arrival.data = std::span(buffer_).first(received.bytes);
    arrival.missing = received.info.missing_bytes;
    arrival.below = received.partial();
    arrival.holes = std::move(received.map);
    arrival.at_ns = now;
    return arrival;
  }

  static void add(std::optional<std::uint64_t>& sum, std::uint64_t value) {
    sum = sum.value_or(0) + value;
  }

  TransportOptions options_;
  dblp::Socket socket_;
  std::vector<std::byte> buffer_;
  std::vector<dblp::Address> peers_;
  std::deque<Outgoing> queue_;
  std::size_t in_kernel_ = 0;
  Traffic traffic_{.sent = 0, .retransmitted = 0, .tolerated = 0};
};

}  // namespace

std::unique_ptr<Transport> open_dblp(const TransportSetup& setup) {
  return std::make_unique<DblpTransport>(setup);
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0
//
// TCP with the congestion control that its name says: a connection to each peer,
// messages framed by length and tag. Nagle's algorithm is off, and the buffers are
// left to the kernel, which sizes them better than a fixed number does.

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "failure.hpp"
#include "mesh.hpp"
#include "net.hpp"
#include "transport.hpp"

namespace perf {
namespace {

struct Header {
  std::uint64_t length;
  std::uint64_t tag;
};

void set_congestion(int fd, const std::string& name) {
  if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                 static_cast<socklen_t>(name.size())) == 0)
    return;
  if (errno == ENOENT)
    throw Failure(fmt::format("tcp-{0}: the kernel lacks it: modprobe tcp_{0}", name));
  if (errno == EPERM)
    throw Failure(
        fmt::format("tcp-{0}: not permitted: run as root, or add it to sysctl "
                    "net.ipv4.tcp_allowed_congestion_control",
                    name));
  fail_errno("tcp-" + name);
}

Fd make_socket(const TransportOptions& options, int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail_errno("socket");
  set_congestion(fd.get(), options.tcp_congestion());
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, options.delay_small ? 0 : 1, "TCP_NODELAY");
  set_buffers(fd.get(), options.send_buffer, options.receive_buffer);
  return fd;
}

class Connection {
 public:
  Connection(Fd fd, std::size_t peer, std::uint64_t max_message)
      : fd_(std::move(fd)), peer_(peer), max_message_(max_message) {}

  [[nodiscard]] std::size_t peer() const { return peer_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::size_t queued() const { return queue_.size(); }

  void push(const Outgoing& message) {
    queue_.push_back({{message.data.size(), message.tag}, message.data});
    flush();
  }

  // Writes what the socket takes now.
  void flush() {
    while (!queue_.empty()) {
      auto& message = queue_.front();
      std::array<iovec, 2> parts{};
      std::size_t count = 0;
      std::size_t skip = written_;
      const std::size_t length = sizeof(Header) + message.body.size();
      if (skip < sizeof(Header)) {
        parts[count++] = {reinterpret_cast<std::byte*>(&message.header) + skip,
                          sizeof(Header) - skip};
        skip = 0;
      } else {
        skip -= sizeof(Header);
      }
      parts[count++] = {const_cast<std::byte*>(message.body.data()) + skip,
                        message.body.size() - skip};
      msghdr header{};
      header.msg_iov = parts.data();
      header.msg_iovlen = count;
      const ssize_t sent = ::sendmsg(fd(), &header, MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EAGAIN) return;
        if (errno == EINTR) continue;
        failed();
      }
      written_ += static_cast<std::size_t>(sent);
      if (written_ < length) continue;
      written_ = 0;
      queue_.pop_front();
    }
  }

  // Reads on, up to the end of one message.
  bool fill() {
    if (complete()) next_message();
    while (!complete()) {
      std::byte* to = known_ ? body_.data() : reinterpret_cast<std::byte*>(&header_);
      const std::size_t size = known_ ? header_.length : sizeof(Header);
      const ssize_t got = ::recv(fd(), to + filled_, size - filled_, 0);
      if (got < 0) {
        if (errno == EAGAIN) return false;
        if (errno == EINTR) continue;
        failed();
      }
      if (got == 0) throw PeerGone("tcp: the peer closed the connection");
      filled_ += static_cast<std::size_t>(got);
      if (!known_ && filled_ == sizeof(Header)) start_body();
    }
    return true;
  }

  [[nodiscard]] std::uint64_t tag() const { return header_.tag; }
  [[nodiscard]] std::span<const std::byte> body() const {
    return std::span(body_).first(header_.length);
  }

 private:
  struct Message {
    Header header;
    std::span<const std::byte> body;
  };

  [[nodiscard]] bool complete() const { return known_ && filled_ == header_.length; }

  void next_message() {
    known_ = false;
    filled_ = 0;
  }

  void start_body() {
    if (header_.length == 0 || header_.length > max_message_)
      throw Failure(fmt::format("tcp: the peer sends a message of {} bytes", header_.length));
    // Only ever grows: a vector that shrinks would be filled anew.
    if (body_.size() < header_.length) body_.resize(header_.length);
    known_ = true;
    filled_ = 0;
  }

  [[noreturn]] static void failed() {
    if (errno == ECONNRESET || errno == EPIPE)
      throw PeerGone("tcp: the peer closed the connection");
    fail_errno("tcp");
  }

  Fd fd_;
  std::size_t peer_;
  std::uint64_t max_message_;
  std::deque<Message> queue_;
  std::size_t written_ = 0;
  Header header_{};
  bool known_ = false;  // is the header there?
  std::size_t filled_ = 0;
  std::vector<std::byte> body_;
};

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(const TransportSetup& setup)
      : setup_(setup), listener_(make_socket(setup.options, setup.local.family())) {
    if (::bind(listener_.get(), setup.local.data(), setup.local.size()) != 0)
      fail_errno("bind to " + host_of(setup.local));
    if (::listen(listener_.get(), SOMAXCONN) != 0) fail_errno("listen");
    port_ = local_address(listener_.get()).port();
  }

  [[nodiscard]] std::uint16_t port() const override { return port_; }

  void connect(std::span<const dblp::Address> ranks, std::span<const std::size_t> links,
               std::int64_t until_ns) override {
    const Mesh mesh{setup_.rank, setup_.token, [this](int family) {
                      Fd fd = make_socket(setup_.options, family);
                      if (::bind(fd.get(), setup_.local.data(), setup_.local.size()) != 0)
                        fail_errno("bind to " + host_of(setup_.local));
                      return fd;
                    }};
    auto fds = connect_mesh(mesh, listener_.get(), ranks, links, until_ns);
    by_peer_.assign(setup_.ranks, nullptr);
    for (std::size_t i = 0; i < links.size(); ++i) {
      connections_.push_back(
          std::make_unique<Connection>(std::move(fds[i]), links[i], setup_.max_message));
      by_peer_[links[i]] = connections_.back().get();
    }
    listener_.reset();
  }

  void send(const Outgoing& message) override {
    offered_ += message.data.size();
    by_peer_[message.peer]->push(message);
  }

  std::optional<Arrival> take() override {
    for (auto& connection : connections_) connection->flush();
    // Each in turn, so that a quick one does not keep the others waiting.
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      auto& connection = *connections_[turn_];
      turn_ = (turn_ + 1) % connections_.size();
      if (!connection.fill()) continue;
      Arrival arrival;
      arrival.peer = connection.peer();
      arrival.tag = connection.tag();
      arrival.data = connection.body();
      arrival.at_ns = now_ns();
      return arrival;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::size_t unfinished() const override {
    std::size_t count = 0;
    for (const auto& connection : connections_) count += connection->queued();
    return count;
  }

  void watch(std::vector<pollfd>& fds) const override {
    for (const auto& connection : connections_)
      fds.push_back({connection->fd(),
                     static_cast<short>(connection->queued() == 0 ? POLLIN : POLLIN | POLLOUT), 0});
  }

  [[nodiscard]] Traffic traffic() override {
    Traffic traffic{.offered = offered_, .sent = 0, .retransmitted = 0, .tolerated = {}};
    for (const auto& connection : connections_) {
      tcp_info info{};
      socklen_t length = sizeof(info);
      if (getsockopt(connection->fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
      *traffic.sent += info.tcpi_bytes_sent;
      *traffic.retransmitted += info.tcpi_bytes_retrans;
    }
    return traffic;
  }

 private:
  TransportSetup setup_;
  Fd listener_;
  std::uint16_t port_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> by_peer_;
  std::size_t turn_ = 0;
  std::uint64_t offered_ = 0;
};

}  // namespace

std::unique_ptr<Transport> open_tcp(const TransportSetup& setup) {
  return std::make_unique<TcpTransport>(setup);
}

}  // namespace perf

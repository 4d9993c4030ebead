// SPDX-License-Identifier: GPL-2.0

#include "tcp_transport.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

namespace train {
namespace {

using dblp::Error;
using dblp::Result;

constexpr std::size_t kLengthBytes = 4;

Error last_error(const char* context) { return {errno, context}; }

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

class Connection {
 public:
  Connection(Fd fd, std::size_t max_message) : fd_(std::move(fd)), max_message_(max_message) {}

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool complete() const { return length_known_ && filled_ == body_.size(); }
  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] bool idle() const { return queue_.empty(); }
  [[nodiscard]] std::span<const std::byte> body() const { return body_; }

  void next_message() {
    length_known_ = false;
    filled_ = 0;
  }

  void push(std::span<const std::byte> message) {
    std::vector<std::byte> frame(kLengthBytes + message.size());
    const std::uint32_t length = htonl(static_cast<std::uint32_t>(message.size()));
    std::memcpy(frame.data(), &length, kLengthBytes);
    std::memcpy(frame.data() + kLengthBytes, message.data(), message.size());
    queue_.push_back(std::move(frame));
  }

  // Writes what the socket takes now.
  Result<void> flush() {
    while (!queue_.empty()) {
      const auto& frame = queue_.front();
      const ssize_t sent =
          ::send(fd(), frame.data() + written_, frame.size() - written_, MSG_NOSIGNAL);
      if (sent < 0) {
        if (would_block()) return {};
        return last_error("send");
      }
      written_ += static_cast<std::size_t>(sent);
      if (written_ == frame.size()) {
        queue_.pop_front();
        written_ = 0;
      }
    }
    return {};
  }

  // Reads what is there, up to the end of one message.
  Result<void> fill() {
    while (!complete()) {
      std::byte* to = length_known_ ? body_.data() : length_.data();
      const std::size_t size = length_known_ ? body_.size() : kLengthBytes;
      const ssize_t got = ::recv(fd(), to + filled_, size - filled_, 0);
      if (got < 0) {
        if (would_block()) return {};
        return last_error("recv");
      }
      if (got == 0) {
        closed_ = true;
        if (filled_ != 0 || length_known_) return Error(ECONNRESET, "message cut short");
        return {};
      }
      filled_ += static_cast<std::size_t>(got);
      if (!length_known_ && filled_ == kLengthBytes) {
        std::uint32_t length = 0;
        std::memcpy(&length, length_.data(), kLengthBytes);
        length = ntohl(length);
        if (length == 0 || length > max_message_)
          return Error(EMSGSIZE, "message of " + std::to_string(length) + " bytes");
        body_.resize(length);
        length_known_ = true;
        filled_ = 0;
      }
    }
    return {};
  }

 private:
  Fd fd_;
  std::size_t max_message_;
  bool closed_ = false;

  std::deque<std::vector<std::byte>> queue_;
  std::size_t written_ = 0;

  std::array<std::byte, kLengthBytes> length_{};
  bool length_known_ = false;
  std::vector<std::byte> body_;
  std::size_t filled_ = 0;
};

class TcpTransport final : public Transport {
 public:
  explicit TcpTransport(std::vector<Connection> connections)
      : connections_(std::move(connections)) {}

  Result<void> send(std::size_t peer, std::span<const std::byte> message, dblp::Tolerance,
                    std::size_t) override {
    payload_ += message.size();
    connections_[peer].push(message);
    return connections_[peer].flush();
  }

  Result<Incoming> receive(Clock::time_point deadline) override {
    if (delivered_) connections_[*std::exchange(delivered_, std::nullopt)].next_message();
    for (;;) {
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        if (!connections_[i].complete()) continue;
        delivered_ = i;
        return Incoming{i, connections_[i].body(), 0};
      }
      for (const auto& connection : connections_)
        if (connection.closed()) return Error(ECONNRESET, "the peer closed the connection");
      auto result = work(deadline);
      if (!result) return result.error();
    }
  }

  Result<void> finish(Clock::time_point deadline) override {
    if (delivered_) connections_[*std::exchange(delivered_, std::nullopt)].next_message();
    const auto all = [&](auto&& what) {
      for (const auto& connection : connections_)
        if (!what(connection)) return false;
      return true;
    };
    while (!all([](const auto& c) { return c.idle(); })) {
      auto result = work(deadline);
      if (!result) return result;
    }
    for (auto& connection : connections_) ::shutdown(connection.fd(), SHUT_WR);
    while (!all([](const auto& c) { return c.closed(); })) {
      auto result = work(deadline);
      if (!result) return result;
    }
    return {};
  }

  [[nodiscard]] Traffic traffic() const override {
    Traffic traffic;
    traffic.payload = payload_;
    for (const auto& connection : connections_) {
      tcp_info info{};
      socklen_t length = sizeof(info);
      if (::getsockopt(connection.fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
      traffic.sent += info.tcpi_bytes_sent;
      traffic.retransmitted += info.tcpi_bytes_retrans;
    }
    return traffic;
  }

 private:
  // Waits until a socket is ready, and moves what can be moved.
  Result<void> work(Clock::time_point deadline) {
    polls_.clear();
    for (const auto& connection : connections_) {
      // A negative descriptor is skipped by poll().
      const bool reads = !connection.closed();
      const bool writes = !connection.idle();
      polls_.push_back({reads || writes ? connection.fd() : -1,
                        static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), 0});
    }
    const int ready = ::poll(polls_.data(), polls_.size(), poll_time(deadline));
    if (ready < 0 && errno != EINTR) return last_error("poll");
    if (ready == 0 && Clock::now() >= deadline) return Error(ETIMEDOUT, "waiting for a peer");
    for (std::size_t i = 0; i < polls_.size(); ++i) {
      if ((polls_[i].revents & POLLOUT) != 0) {
        auto result = connections_[i].flush();
        if (!result) return result;
      }
      if ((polls_[i].revents & ~POLLOUT) != 0) {
        auto result = connections_[i].fill();
        if (!result) return result;
      }
    }
    return {};
  }

  std::vector<Connection> connections_;
  std::vector<pollfd> polls_;
  std::optional<std::size_t> delivered_;
  std::uint64_t payload_ = 0;
};

// Sets what must be set before a connection is made.
Result<Fd> open_socket(const Endpoint& endpoint) {
  Fd fd(::socket(endpoint.address.family(), SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
  if (fd.get() < 0) return last_error("socket");
  const int one = 1;
  if (::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0)
    return last_error("TCP_NODELAY");
  const auto& name = endpoint.congestion;
  if (!name.empty() && ::setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                    static_cast<socklen_t>(name.size())) != 0)
    return Error(errno, "congestion control '" + name + "'");
  return fd;
}

Result<void> make_nonblocking(const Fd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return last_error("O_NONBLOCK");
  return {};
}

}  // namespace

TransportResult listen_tcp(const Endpoint& endpoint, std::size_t peers, const Ready& ready,
                           Clock::time_point deadline) {
  auto listener = open_socket(endpoint);
  if (!listener) return listener.error();
  const int one = 1;
  ::setsockopt(listener->get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (::bind(listener->get(), endpoint.address.data(), endpoint.address.size()) != 0)
    return Error(errno, "bind to " + endpoint.address.to_string());
  if (::listen(listener->get(), static_cast<int>(peers)) != 0) return last_error("listen");
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  auto* name = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(listener->get(), name, &length) != 0) return last_error("getsockname");
  auto address = dblp::Address::from(name, length);
  if (!address) return address.error();
  ready(*address);

  std::vector<Connection> connections;
  while (connections.size() < peers) {
    pollfd poll{listener->get(), POLLIN, 0};
    if (::poll(&poll, 1, poll_time(deadline)) < 0 && errno != EINTR) return last_error("poll");
    if ((poll.revents & POLLIN) == 0) {
      if (Clock::now() >= deadline)
        return Error(ETIMEDOUT, std::to_string(connections.size()) + " of " +
                                    std::to_string(peers) + " workers connected");
      continue;
    }
    Fd fd(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.get() < 0) return last_error("accept");
    connections.emplace_back(std::move(fd), endpoint.max_message);
  }
  return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(std::move(connections)));
}

TransportResult connect_tcp(const Endpoint& endpoint) {
  auto fd = open_socket(endpoint);
  if (!fd) return fd.error();
  if (::connect(fd->get(), endpoint.address.data(), endpoint.address.size()) != 0)
    return Error(errno, "connect to " + endpoint.address.to_string());
  auto result = make_nonblocking(*fd);
  if (!result) return result.error();
  std::vector<Connection> connections;
  connections.emplace_back(std::move(*fd), endpoint.max_message);
  return std::unique_ptr<Transport>(std::make_unique<TcpTransport>(std::move(connections)));
}

}  // namespace train

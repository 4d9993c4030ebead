// SPDX-License-Identifier: GPL-2.0

#include "control.hpp"

#include <netinet/tcp.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "clock.hpp"
#include "failure.hpp"

namespace perf {
namespace {

constexpr std::int64_t kConnectTime = 10 * kSecond;
constexpr std::int64_t kWriteTime = 10 * kSecond;
// A peer whose machine is gone, not only its process, is noticed after 10 + 3 × 5 s.
constexpr int kKeepIdle = 10;
constexpr int kKeepInterval = 5;
constexpr int kKeepCount = 3;

std::string cure(int code) {
  switch (code) {
    case ECONNREFUSED:
      return ": nobody listens there: start dblp-perf --server on that host, or see -p";
    case ETIMEDOUT:
      return ": no answer within 10 s: is the host up, and the port open in its firewall?";
    case EADDRNOTAVAIL:
      return ": the address given with -B is not one of this host";
    default:
      return "";
  }
}

}  // namespace

Control::Control(Fd fd, std::string peer) : fd_(std::move(fd)), peer_(std::move(peer)) {
  set_option(fd_.get(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  set_option(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
  set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdle, "TCP_KEEPIDLE");
  set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepInterval, "TCP_KEEPINTVL");
  set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPCNT, kKeepCount, "TCP_KEEPCNT");
}

Control Control::connect(const dblp::Address& local, const dblp::Address& server) {
  Fd fd(::socket(server.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail_errno("socket");
  const std::string where = "server " + server.to_string();
  int error = 0;
  if (local != dblp::Address() && ::bind(fd.get(), local.data(), local.size()) != 0) error = errno;
  if (error == 0) error = connect_until(fd.get(), server, now_ns() + kConnectTime);
  if (error != 0)
    throw Failure(where + ": " + std::generic_category().message(error) + cure(error));
  return {std::move(fd), where};
}

void Control::send(const Json& message) {
  try {
    write_exactly(fd_.get(), encode_frame(message), now_ns() + kWriteTime);
  } catch (const Failure& failure) {
    // What it said last explains more than that the pipe is broken.
    pump();
    throw PeerGone(peer_ + ": " + failure.what());
  }
}

void Control::take_frames() {
  while (auto message = parser_.next()) {
    if ((*message)["type"] == "error") {
      const auto text = message->find("text");
      throw Failure(peer_ + ": " +
                    (text != message->end() && text->is_string() ? text->get<std::string>()
                                                                 : "failed without a reason"));
    }
    queue_.push_back(std::move(*message));
  }
}

void Control::pump() {
  std::array<std::byte, 16384> chunk;
  for (;;) {
    const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got > 0) {
      parser_.append(std::span(chunk).first(static_cast<std::size_t>(got)));
      take_frames();
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    closed_ = true;
    if (!queue_.empty()) return;
    gone();
  }
}

void Control::gone() const {
  throw PeerGone(peer_ + " went away: its process ended or was killed");
}

Json Control::receive(std::int64_t until_ns, int stop_fd) {
  for (;;) {
    if (queue_.empty()) pump();
    if (!queue_.empty()) break;
    std::array<pollfd, 2> fds{{{fd_.get(), POLLIN, 0}, {stop_fd, POLLIN, 0}}};
    if (wait_fds(fds, until_ns) == 0 && now_ns() >= until_ns)
      throw Failure(peer_ + ": no answer in time");
    if (fds[1].revents != 0) throw Failure("stopped by a signal");
  }
  Json message = std::move(queue_.front());
  queue_.pop_front();
  return message;
}

Json Control::expect(const std::string& type, std::int64_t until_ns, int stop_fd) {
  Json message = receive(until_ns, stop_fd);
  if (message["type"] != type)
    throw Failure(peer_ + ": sent '" + message["type"].get<std::string>() + "' instead of '" +
                  type + "'");
  return message;
}

}  // namespace perf

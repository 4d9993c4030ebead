// SPDX-License-Identifier: GPL-2.0

#include "net.hpp"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <system_error>

#include "clock.hpp"
#include "failure.hpp"

namespace perf {

void fail_errno(const std::string& context, int code) {
  throw Failure(context + ": " + std::generic_category().message(code));
}

void fail_errno(const std::string& context) { fail_errno(context, errno); }

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

dblp::Address resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found); code != 0)
    throw Failure("host '" + host + "': " + gai_strerror(code));
  auto address = dblp::Address::from(found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  if (!address) throw Failure("host '" + host + "' has neither an IPv4 nor an IPv6 address");
  return with_port(*address, port);
}

dblp::Address with_port(const dblp::Address& address, std::uint16_t port) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.data(), address.size());
  if (address.family() == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
  return dblp::Address::from(reinterpret_cast<sockaddr*>(&storage), address.size()).value();
}

std::string host_of(const dblp::Address& address) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address.data(), address.size(), text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "?";
  return text.data();
}

dblp::Address local_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  auto* any = reinterpret_cast<sockaddr*>(&storage);
  if (getsockname(fd, any, &length) != 0) fail_errno("getsockname");
  return dblp::Address::from(any, length).value();
}

void set_option(int fd, int level, int name, int value, const char* what) {
  if (setsockopt(fd, level, name, &value, sizeof(value)) != 0) fail_errno(what);
}

namespace {

void set_buffer(int fd, int forced, int plain, std::uint64_t bytes, const char* what) {
  // The kernel doubles the value.
  const int value = static_cast<int>(std::min<std::uint64_t>(bytes, INT_MAX / 2));
  if (value == 0) return;
  if (setsockopt(fd, SOL_SOCKET, forced, &value, sizeof(value)) == 0) return;
  set_option(fd, SOL_SOCKET, plain, value, what);
}

}  // namespace

void set_buffers(int fd, std::uint64_t send_bytes, std::uint64_t receive_bytes) {
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, send_bytes, "SO_SNDBUF");
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, receive_bytes, "SO_RCVBUF");
}

int wait_fds(std::span<pollfd> fds, std::int64_t until_ns) {
  timespec left{};
  timespec* timeout = nullptr;
  if (until_ns != kNever) {
    const std::int64_t rest = std::max<std::int64_t>(0, until_ns - now_ns());
    left.tv_sec = rest / kSecond;
    left.tv_nsec = rest % kSecond;
    timeout = &left;
  }
  const int ready = ppoll(fds.data(), fds.size(), timeout, nullptr);
  if (ready < 0) {
    if (errno != EINTR) fail_errno("poll");
    for (auto& fd : fds) fd.revents = 0;
    return 0;
  }
  return ready;
}

namespace {

void wait_one(int fd, short events, std::int64_t until_ns) {
  pollfd poll{fd, events, 0};
  if (wait_fds({&poll, 1}, until_ns) == 0 && now_ns() >= until_ns)
    throw Failure("the peer does not answer");
}

}  // namespace

bool read_exactly(int fd, std::span<std::byte> to, std::int64_t until_ns) {
  while (!to.empty()) {
    const ssize_t got = ::recv(fd, to.data(), to.size(), MSG_DONTWAIT);
    if (got > 0) {
      to = to.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return false;
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_one(fd, POLLIN, until_ns);
    } else {
      fail_errno("recv");
    }
  }
  return true;
}

void write_exactly(int fd, std::span<const std::byte> from, std::int64_t until_ns) {
  while (!from.empty()) {
    const ssize_t sent = ::send(fd, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      from = from.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_one(fd, POLLOUT, until_ns);
    } else {
      fail_errno("send");
    }
  }
}

int connect_until(int fd, const dblp::Address& to, std::int64_t until_ns) {
  if (::connect(fd, to.data(), to.size()) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  for (;;) {
    pollfd poll{fd, POLLOUT, 0};
    if (wait_fds({&poll, 1}, until_ns) > 0) break;
    if (now_ns() >= until_ns) return ETIMEDOUT;
  }
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

}  // namespace perf

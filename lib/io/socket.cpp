// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/socket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "io/control.hpp"

#ifndef MSG_NOTIFICATION
#define MSG_NOTIFICATION 0x8000  // linux/socket.h; glibc does not name it
#endif

namespace dblp {
namespace {

Error last_error(const char* context) { return {errno, context}; }

Result<void> set(int fd, int level, int option, const void* value, std::size_t length,
                 const char* context) {
  if (setsockopt(fd, level, option, value, static_cast<socklen_t>(length)) != 0)
    return last_error(context);
  return {};
}

Result<void> set_int(int fd, int option, int value, const char* context) {
  return set(fd, SOL_DBLP, option, &value, sizeof(value), context);
}

Result<std::size_t> send_message(int fd, const Address* peer, std::span<const std::byte> message,
                                 const SendOptions& options, int flags) {
  auto control = detail::build_send_control(options);
  if (!control) return control.error();

  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  if (peer != nullptr) {
    header.msg_name = const_cast<sockaddr*>(peer->data());
    header.msg_namelen = peer->size();
  }
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control->data();
  header.msg_controllen = control->size();

  const ssize_t sent = ::sendmsg(fd, &header, flags | MSG_NOSIGNAL);
  if (sent < 0) return last_error("sendmsg");
  return static_cast<std::size_t>(sent);
}

}  // namespace

int Socket::family() {
  std::ifstream file("/sys/module/dblp/parameters/family");
  int family = 0;
  if (file >> family && family > 0) return family;
  return AF_DBLP;
}

Result<Socket> Socket::open() {
  const int fd = ::socket(family(), SOCK_RDM | SOCK_CLOEXEC, 0);
  if (fd < 0) return last_error("socket");
  return Socket(fd);
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> Socket::bind(const Address& address) {
  if (::bind(fd_, address.data(), address.size()) != 0) return last_error("bind");
  return {};
}

Result<void> Socket::connect(const Address& peer) {
  if (::connect(fd_, peer.data(), peer.size()) != 0) return last_error("connect");
  return {};
}

Result<Address> Socket::local_address() const {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(fd_, address, &length) != 0) return last_error("getsockname");
  return Address::from(address, length);
}

Result<void> Socket::set_completions(bool on) {
  return set_int(fd_, DBLP_SO_COMPLETIONS, on ? 1 : 0, "DBLP_SO_COMPLETIONS");
}

Result<void> Socket::set_partial(bool on) {
  return set_int(fd_, DBLP_SO_PARTIAL, on ? 1 : 0, "DBLP_SO_PARTIAL");
}

Result<void> Socket::set_holes(Holes holes) {
  return set_int(fd_, DBLP_SO_HOLES, static_cast<int>(holes), "DBLP_SO_HOLES");
}

Result<void> Socket::set_congestion(std::string_view name) {
  return set(fd_, SOL_DBLP, DBLP_SO_CONGESTION, name.data(), name.size(), "DBLP_SO_CONGESTION");
}

Result<void> Socket::set_dead_time(std::chrono::milliseconds time) {
  if (time.count() < 0 || time.count() > std::numeric_limits<std::uint32_t>::max())
    return Error(EINVAL, "DBLP_SO_DEAD_TIME");
  const auto value = static_cast<std::uint32_t>(time.count());
  return set(fd_, SOL_DBLP, DBLP_SO_DEAD_TIME, &value, sizeof(value), "DBLP_SO_DEAD_TIME");
}

Result<void> Socket::set_max_message(std::uint64_t bytes) {
  return set(fd_, SOL_DBLP, DBLP_SO_MAX_MESSAGE, &bytes, sizeof(bytes), "DBLP_SO_MAX_MESSAGE");
}

Result<void> Socket::set_buffers(int send_bytes, int receive_bytes) {
  auto result = set(fd_, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes), "SO_SNDBUF");
  if (!result) return result;
  return set(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes), "SO_RCVBUF");
}

Result<std::size_t> Socket::send(std::span<const std::byte> message, const SendOptions& options,
                                 int flags) {
  return send_message(fd_, nullptr, message, options, flags);
}

Result<std::size_t> Socket::send_to(const Address& peer, std::span<const std::byte> message,
                                    const SendOptions& options, int flags) {
  return send_message(fd_, &peer, message, options, flags);
}

Result<Event> Socket::receive(std::span<std::byte> buffer, int flags) {
  // What comes next may be a completion. It must fit however small the buffer
  // is, and must leave no trace there: holes may have to keep its old bytes.
  std::array<std::byte, sizeof(dblp_completion)> spill;
  std::array<std::byte, sizeof(dblp_completion)> saved;
  const std::size_t shared = std::min(buffer.size(), saved.size());
  std::copy_n(buffer.begin(), shared, saved.begin());

  alignas(cmsghdr) std::array<std::byte, detail::kReceiveControl> control;
  sockaddr_storage name{};
  std::array<iovec, 2> parts{{{buffer.data(), buffer.size()}, {spill.data(), spill.size()}}};
  msghdr header{};
  header.msg_name = &name;
  header.msg_namelen = sizeof(name);
  header.msg_iov = parts.data();
  header.msg_iovlen = buffer.size() < spill.size() ? 2 : 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();

  // MSG_TRUNC would make the kernel return more than it wrote.
  const ssize_t got = ::recvmsg(fd_, &header, flags & ~MSG_TRUNC);
  if (got < 0) return last_error("recvmsg");
  const auto bytes = static_cast<std::size_t>(got);

  auto parsed = detail::parse_receive_control(header);
  auto peer = Address::from(reinterpret_cast<sockaddr*>(&name), header.msg_namelen);

  if ((header.msg_flags & MSG_NOTIFICATION) != 0) {
    std::array<std::byte, sizeof(dblp_completion)> payload;
    const std::size_t length = std::min(bytes, payload.size());
    std::copy_n(buffer.begin(), std::min(shared, length), payload.begin());
    if (length > shared) std::copy_n(spill.begin(), length - shared, payload.begin() + shared);
    std::copy_n(saved.begin(), shared, buffer.begin());

    auto info = detail::parse_completion(std::span(payload).first(length));
    if (!info) return info.error();
    Completion completion;
    completion.outcome = static_cast<Outcome>(info->outcome);
    if (peer) completion.peer = *peer;
    completion.info = *info;
    completion.map =
        Map(info->len, parsed.map_segments, parsed.map_segment_size, std::move(parsed.map_words));
    completion.map_truncated = parsed.map_truncated;
    return Event(std::move(completion));
  }

  Received received;
  received.bytes = std::min(bytes, buffer.size());
  if (peer) received.peer = *peer;
  if (parsed.info) received.info = *parsed.info;
  received.map = Map(received.info.len, parsed.map_segments, parsed.map_segment_size,
                     std::move(parsed.map_words));
  received.truncated = bytes > buffer.size() || (header.msg_flags & MSG_TRUNC) != 0;
  received.map_truncated = parsed.map_truncated;
  return Event(std::move(received));
}

}  // namespace dblp

// SPDX-License-Identifier: GPL-2.0
//
// Descriptors, addresses, and the calls on sockets that several files need.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "dblp/address.hpp"

namespace perf {

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() { *this = Fd(); }

 private:
  int fd_;
};

// HOST as a name or number, looked up. Throws with the resolver's reason.
dblp::Address resolve(const std::string& host, std::uint16_t port);
// The same address with another port.
dblp::Address with_port(const dblp::Address& address, std::uint16_t port);
// The address without its port, as text.
std::string host_of(const dblp::Address& address);
dblp::Address local_address(int fd);

void set_option(int fd, int level, int name, int value, const char* what);
// Buffers beyond the system's limit if the caller may, else up to it.
void set_buffers(int fd, std::uint64_t send_bytes, std::uint64_t receive_bytes);

// Waits until `until_ns` (kNever: for ever). Returns how many are ready, 0 when time
// is over; a signal counts as nothing ready.
int wait_fds(std::span<pollfd> fds, std::int64_t until_ns);

// Reads or writes all of it on a non-blocking socket; false if the peer closed.
[[nodiscard]] bool read_exactly(int fd, std::span<std::byte> to, std::int64_t until_ns);
void write_exactly(int fd, std::span<const std::byte> from, std::int64_t until_ns);

// connect() on a non-blocking socket, waiting. Returns 0 or the errno.
int connect_until(int fd, const dblp::Address& to, std::int64_t until_ns);

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "serve.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "flows/maps.hpp"

namespace flows {
namespace {

using dblp::Error;
using dblp::Fd;

constexpr std::size_t kMostRequest = 8192;
constexpr timeval kPatience = {.tv_sec = 1, .tv_usec = 0};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

dblp::Result<int> serve_open(const dblp::Address& address) {
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
      ::bind(fd.get(), address.data(), address.size()) != 0 || ::listen(fd.get(), 16) != 0) {
    return Error(errno, address.to_string());
  }
  return ::dup(fd.get());
}

void serve_one(int listener, int timeout_ms, const std::function<std::string()>& text) {
  pollfd wait = {.fd = listener, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, timeout_ms) <= 0) return;
  const Fd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return;
  // A client that says or takes nothing must not stop the others.
  ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  ::setsockopt(client.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  std::string request;
  char buffer[1024];
  while (request.find("\r\n\r\n") == std::string::npos && request.size() < kMostRequest) {
    const ssize_t n = ::read(client.get(), buffer, sizeof(buffer));
    if (n <= 0) return;
    request.append(buffer, static_cast<std::size_t>(n));
  }
  const bool known = request.starts_with("GET /metrics ") || request.starts_with("GET / ");
  const std::string body = known ? text() : "only /metrics is here\n";
  write_all(client.get(), fmt::format("HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4\r\n"
                                      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
                                      known ? "200 OK" : "404 Not Found", body.size(), body));
}

dblp::Result<void> write_file(const std::string& path, const std::string& text) {
  // The reader takes *.prom only.
  const std::string part = path + ".part";
  const Fd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return Error(errno, part);
  if (!write_all(fd.get(), text)) return Error(errno, part);
  if (::rename(part.c_str(), path.c_str()) != 0) return Error(errno, path);
  return {};
}

}  // namespace flows

// SPDX-License-Identifier: GPL-2.0

#include "mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "clock.hpp"
#include "failure.hpp"

namespace perf {
namespace {

struct Greeting {
  std::uint64_t token;
  std::uint64_t rank;
};

Fd connect_one(const Mesh& mesh, const dblp::Address& to, std::int64_t until_ns) {
  Fd fd = mesh.make_socket(to.family());
  if (const int error = connect_until(fd.get(), to, until_ns); error != 0)
    throw Failure(
        fmt::format("connection to {}: {}: can the hosts reach each other at the "
                    "addresses of the test's -H and -L?",
                    to.to_string(), std::generic_category().message(error)));
  const Greeting greeting{mesh.token, mesh.rank};
  write_exactly(fd.get(), std::as_bytes(std::span(&greeting, 1)), until_ns);
  return fd;
}

// One that is waiting, or none.
Fd accept_one(int listener, std::int64_t until_ns) {
  for (;;) {
    Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) return fd;
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) fail_errno("accept");
    pollfd poll{listener, POLLIN, 0};
    if (wait_fds({&poll, 1}, until_ns) == 0 && now_ns() >= until_ns)
      throw Failure("not all hosts of the test have connected in time");
  }
}

}  // namespace

std::vector<Fd> connect_mesh(const Mesh& mesh, int listener, std::span<const dblp::Address> ranks,
                             std::span<const std::size_t> links, std::int64_t until_ns) {
  std::vector<Fd> result(links.size());
  std::size_t missing = 0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i] < mesh.rank)
      result[i] = connect_one(mesh, ranks[links[i]], until_ns);
    else
      ++missing;
  }
  while (missing > 0) {
    Fd fd = accept_one(listener, until_ns);
    Greeting greeting{};
    if (!read_exactly(fd.get(), std::as_writable_bytes(std::span(&greeting, 1)), until_ns) ||
        greeting.token != mesh.token || greeting.rank <= mesh.rank)
      continue;
    const auto found = std::ranges::find(links, greeting.rank);
    if (found == links.end()) continue;
    auto& place = result[static_cast<std::size_t>(found - links.begin())];
    if (place) continue;
    place = std::move(fd);
    --missing;
  }
  return result;
}

}  // namespace perf

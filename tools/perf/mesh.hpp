// SPDX-License-Identifier: GPL-2.0
//
// Connections between ranks, for transports that have some: of two ranks the higher
// one connects, and says first who it is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "net.hpp"

namespace perf {

struct Mesh {
  std::size_t rank = 0;
  std::uint64_t token = 0;
  // A socket with all options set, for the family; not connected.
  std::function<Fd(int family)> make_socket;
};

// One connection for each of `links`, in their order, with `listener` for those from
// higher ranks. Whoever does not know the token is not let in.
std::vector<Fd> connect_mesh(const Mesh& mesh, int listener, std::span<const dblp::Address> ranks,
                             std::span<const std::size_t> links, std::int64_t until_ns);

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "transport.hpp"

namespace perf {

std::unique_ptr<Transport> open_transport(const TransportSetup& setup) {
  switch (setup.options.protocol()) {
    case Protocol::kDblp:
      return open_dblp(setup);
    case Protocol::kTcp:
      return open_tcp(setup);
    case Protocol::kSctp:
      return open_sctp(setup);
    case Protocol::kUdp:
      return open_udp(setup);
  }
  return nullptr;
}

}  // namespace perf

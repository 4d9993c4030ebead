// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Everything that a run is given, derived from its seed alone.
#ifndef DBLP_SIM_SCENARIO_H
#define DBLP_SIM_SCENARIO_H

#include <cstdint>
#include <string>
#include <vector>

#include "ledger.h"

namespace dblp::sim {

// What a link does to datagrams.  Probabilities in ppm, times in ns.
struct LinkSpec {
  uint64_t delay = 50'000;
  uint64_t jitter = 0;
  uint64_t rate = 0;  // bytes/s, 0: no serialisation
  uint32_t loss = 0;
  uint32_t burst_enter = 0, burst_leave = 0, burst_loss = 0;  // Gilbert-Elliott
  uint32_t dup = 0;
  uint32_t reorder = 0;
  uint64_t reorder_by = 0;
  uint32_t corrupt = 0;
  uint32_t ce = 0;
  uint32_t misdirect = 0;  // arrives with the address of another endpoint
  uint32_t replay = 0;     // something of the past is sent again
};

enum class Fault {
  blackhole,  // ep -> peer delivers nothing for a while
  restart,    // ep loses everything and comes back with a new incarnation
  close,      // ep ends its flows as close() does, and is silent for a while
  pause,      // ep does nothing for a while; what arrives waits
  shutdown,   // ep asks for judgement of all it sends
  icmp,       // ep's flow to peer is killed as by a port unreachable
  replay,     // many datagrams of the past are sent again
};

struct FaultSpec {
  Fault kind;
  uint32_t ep, peer;
  uint64_t at, length;
};

struct EndpointSpec {
  uint64_t budget = 1 << 22;
  uint64_t limit = 1 << 29;
  bool partial = false;
  bool coalesce = false;  // several packets in a datagram
  bool fixed_rate = false;
  uint64_t read_delay = 0;  // from judgement to recvmsg(), at most
  uint64_t dead = 10'000'000'000;
  uint32_t room = 1472;
};

struct Scenario {
  uint64_t seed = 0;
  bool clean = false;            // the pipe does nothing wrong and there is room
  bool deliver_corrupt = false;  // content is not asserted
  uint32_t no_memory = 0;        // ppm of allocations at the receiver that fail
  uint64_t jitter_from = 0;      // of a clean pipe: when it begins to reorder
  uint64_t hostile_until = 0;    // after this every link only delays
  LinkSpec link[2];              // towards a higher / lower endpoint
  std::vector<EndpointSpec> endpoints;
  std::vector<FaultSpec> faults;
  std::vector<MsgSpec> messages;  // by time

  // Clean, and no datagram overtakes another.
  bool in_order() const { return clean && !link[0].jitter && !link[1].jitter; }
  std::string describe() const;
};

Scenario make_scenario(uint64_t seed);

}  // namespace dblp::sim

#endif  // DBLP_SIM_SCENARIO_H

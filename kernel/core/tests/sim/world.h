// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Virtual time, the pipes between the endpoints, and the run itself.
#ifndef DBLP_SIM_WORLD_H
#define DBLP_SIM_WORLD_H

#include <cstdint>
#include <cstdio>
#include <memory>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

#include "endpoint.h"
#include "ledger.h"
#include "rng.h"
#include "scenario.h"

namespace dblp::sim {

// What became of a flow at its receiver, by the receiver's id of it.
enum class Fate : uint8_t { never, alive, silent, finished, idle, gone };

struct RunStats {
  uint64_t packets = 0, bytes = 0, events = 0, messages = 0, segments = 0;
  uint64_t resent = 0, ok = 0, below = 0, refused = 0, unknown = 0, incomplete_ok = 0;
  uint64_t longest = 0;  // virtual ns until everything was complete
  double crowded = 0;    // packets sent / packets allowed
};

class World {
 public:
  // @trace: readable events go there, nullptr none.
  World(const Scenario& scenario, FILE* trace);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Runs to the end; false: the ledger names the invariant that was violated.
  bool run();

  // For endpoints.
  uint64_t now() const { return now_; }
  Ledger& ledger() { return ledger_; }
  Rng& rng() { return rng_; }
  const Scenario& scenario() const { return s_; }
  // Puts a datagram on the pipe.
  void send(uint32_t from, uint32_t to, std::span<const uint8_t> datagram);
  // Calls the endpoint's timer() at @at.
  void wake(uint32_t ep, uint64_t at);
  Fate fate(uint64_t flow) const;
  void set_fate(uint64_t flow, Fate fate) { fates_[flow] = fate; }
  bool tracing() const { return trace_ != nullptr; }
  void trace(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void trace_packet(const char* what, uint32_t from, uint32_t to, const uint8_t* p, uint32_t len);
  const RunStats& stats() const { return stats_; }
  RunStats& stats() { return stats_; }

 private:
  enum class What : uint8_t { datagram, wake, submit, fault, fault_end, housekeeping };

  struct Event {
    uint64_t at, order;
    What what;
    uint32_t a, b;
    bool operator>(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  struct Datagram {
    uint32_t from, to;
    uint8_t ecn;
    std::vector<uint8_t> bytes;
  };

  struct Link {
    uint64_t free_at = 0;  // serialisation
    bool burst = false;
    uint64_t black_until = 0;
  };

  const LinkSpec& spec(uint32_t from, uint32_t to) const { return s_.link[from < to ? 0 : 1]; }
  Link& link(uint32_t from, uint32_t to) { return links_[from * s_.endpoints.size() + to]; }
  bool hostile() const { return now_ < s_.hostile_until; }
  void push(uint64_t at, What what, uint32_t a, uint32_t b);
  uint32_t take_slot();
  void deliver_at(uint64_t at, uint32_t from, uint32_t to, uint8_t ecn,
                  std::span<const uint8_t> bytes);
  void remember(uint32_t from, uint32_t to, std::span<const uint8_t> bytes);
  void replay(uint64_t at);
  void arrive(uint32_t slot);
  void fault(const FaultSpec& f);
  void fault_end(const FaultSpec& f);
  void handle(const Event& e);
  bool housekeeping();
  uint64_t packets_allowed() const;

  Scenario s_;
  FILE* trace_;
  Rng rng_;
  Ledger ledger_;
  RunStats stats_;
  uint64_t now_ = 0, order_ = 0;
  uint64_t quiet_at_ = 0;  // nothing hostile and no new work after this
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Datagram> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<Datagram> history_;
  uint64_t remembered_ = 0;
  std::vector<Link> links_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::unordered_map<uint64_t, Fate> fates_;
};

}  // namespace dblp::sim

#endif  // DBLP_SIM_WORLD_H

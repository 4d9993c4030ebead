// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Bulk senders through one bottleneck, in virtual time: the real sentlog, rtt, cc and
// ackset, around them a link with a rate, a drop-tail queue and random loss.  Loss comes
// after the queue, so that lost packets take their time on the link as they do outside.
#ifndef DBLP_TESTS_PATH_SIM_H
#define DBLP_TESTS_PATH_SIM_H

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "ackset.h"
#include "cc.h"
#include "pace.h"
#include "probe.h"
#include "rtt.h"
#include "seed.h"
#include "sentlog.h"

namespace dblp::test {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;
constexpr uint64_t kSec = 1000 * kMs;
constexpr uint32_t kPacket = 1472;  // UDP payload of a full packet

struct PathSpec {
  uint64_t rate;          // bytes/s
  uint64_t rtprop;        // ns, half of it each way
  uint64_t queue;         // bytes that may wait
  double loss = 0;        // share lost after the queue
  uint64_t ce_above = 0;  // bytes waiting above which packets are marked, 0 never
  uint64_t jitter = 0;    // ns at most by which an ACK is late; ACKs keep their order
  // Now and then a host does nothing at all, and then everything that has become due.
  // The senders are on one host and the receivers on another.
  uint64_t stall_min = 0, stall_max = 0;  // ns
  uint64_t stall_every = 0;               // ns between two on average, 0 never

  uint64_t bdp() const { return rate * (rtprop / 1000) / 1000000; }
};

class PathSim {
 public:
  PathSim(const PathSpec& spec, uint32_t flows, uint64_t seed,
          const dblp_cc_ops* cc = &dblp_cc_bdp);
  ~PathSim();

  void run_until(uint64_t t);
  void run_rtts(uint64_t n) { run_until(now_ + n * spec_.rtprop); }
  uint64_t now() const { return now_; }
  PathSpec& spec() { return spec_; }  // may be changed between two calls of run

  // The application of a flow sends, or sends nothing.
  void set_active(uint32_t flow, bool active);

  struct Counts {
    uint64_t sent = 0, delivered = 0;  // packets, delivered to the receiver
    uint64_t queue_drops = 0, path_drops = 0;
    uint64_t spurious = 0, persistent = 0, probes = 0;
    uint64_t bytes = 0;  // delivered
  };
  Counts counts(uint32_t flow) const;
  Counts total() const;
  const dblp_cc& cc(uint32_t flow) const;
  const dblp_rtt& rtt(uint32_t flow) const;
  const dblp_sentlog& log(uint32_t flow) const;
  // Bytes waiting, largest and smallest since the last call of reset_queue_range().
  uint64_t queue_max() const { return queue_max_; }
  uint64_t queue_min() const { return queue_min_; }
  void reset_queue_range();

 private:
  enum class What : uint8_t { kFlow, kServed, kArrive, kAckTimer, kAck };
  struct Event {
    uint64_t at = 0, order = 0;
    What what = What::kFlow;
    uint32_t flow = 0;
    uint64_t pn = 0;
    uint32_t size = 0;
    bool ce = false;
    std::shared_ptr<dblp_f_ack> ack = nullptr;
    bool at_sender() const { return what == What::kFlow || what == What::kAck; }
    bool operator<(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct Flow;
  struct Waiting {
    uint32_t flow;
    uint64_t pn;
    uint32_t size;
    bool ce;
  };

  // The host's present or next stall.
  struct Stall {
    uint64_t begin = 0, end = 0;
  };

  bool stalled(Event& e);
  void post(Event e);
  void wake(Flow& f);
  void flow_due(Flow& f);
  void transmit(Flow& f, uint32_t size);
  void serve();
  void ack_due(Flow& f);

  PathSpec spec_;
  Random random_;
  uint64_t now_ = 0, order_ = 0;
  std::priority_queue<Event> events_;
  std::vector<std::unique_ptr<Flow>> flows_;
  std::deque<Waiting> queue_;
  uint64_t queued_ = 0, queue_max_ = 0, queue_min_ = 0;
  bool serving_ = false;
  Stall sender_, receiver_;
};

}  // namespace dblp::test

#endif  // DBLP_TESTS_PATH_SIM_H

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// The glue around the core, as a bound socket is in the kernel: owns memory, finds flows,
// answers the handshake, shares the budget, reads messages.
#ifndef DBLP_SIM_ENDPOINT_H
#define DBLP_SIM_ENDPOINT_H

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "../../handshake.h"
#include "../../rx.h"
#include "../../tx.h"
#include "scenario.h"

namespace dblp::sim {

class World;
class Endpoint;

// Packet numbers that were delivered; a run has few.
class Numbers {
 public:
  // True if @pn is new.  Of corrupted ones only some are remembered.
  bool add(uint32_t pn) {
    if (pn >= (1U << 20)) return false;
    if (pn >= seen_.size()) seen_.resize(pn + 64);
    const bool fresh = !seen_[pn];
    seen_[pn] = true;
    return fresh;
  }

 private:
  std::vector<bool> seen_;
};

struct TxMsg : dblp_txmsg {
  uint32_t uid;
  std::vector<dblp_txseg> segments;
  std::vector<std::unique_ptr<uint64_t[]>> leaves;
};

struct TxFlow : dblp_tx {
  Endpoint* ep;
  uint32_t peer;
  std::vector<dblp_sent> sent;
  std::map<uint64_t, std::unique_ptr<TxMsg>> owned;  // by id
  // What may have begun a new pass of each message: the highest pass of the NEEDs that
  // came, and how many BUSYs and GRANTs.
  struct Asked {
    uint32_t need = 0, budget = 0;
  };
  std::map<uint32_t, Asked> asked;
  // The truth, for judging the reasons that the core gives.
  Numbers seen;
  uint64_t heard = 0;       // when a new packet for this flow was delivered last
  uint64_t busy_since = 0;  // since when something is outstanding without a break
  bool reset_seen = false, icmp_seen = false, closed = false;
};

struct RxFlow;

struct RxMsg : dblp_rxmsg {
  RxFlow* flow;
  std::vector<uint8_t> data;
  std::vector<bool> kept;
  std::vector<std::unique_ptr<uint64_t[]>> leaves;
  bool judged_once;
};

struct RxFlow : dblp_rx {
  Endpoint* ep;
  uint32_t peer;
  std::unordered_map<dblp_rxmsg*, std::unique_ptr<RxMsg>> owned;
  std::map<uint32_t, uint16_t> marks;  // highest pass of the MARKs that came, by id
  Numbers seen;
  uint64_t heard = 0;
  bool killed = false;  // kept so that a replayed ECHO cannot open it anew
};

class Endpoint {
 public:
  Endpoint(World& world, uint32_t index, const EndpointSpec& spec);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // Each of these is a call from outside: it leaves nothing to be polled.
  void submit(const MsgSpec& spec);
  void deliver(uint32_t from, uint8_t ecn, std::span<const uint8_t> datagram);
  void timer();
  void shutdown();
  void icmp(uint32_t peer);
  void restart();  // all state is lost
  void close();    // as close(): FIN, everything dropped; down until restart()

  bool up() const { return up_; }
  bool empty() const { return tx_.empty() && rx_.empty() && reads_.empty(); }
  // Checks the budget; called when nothing is left.
  void check_released();

  uint64_t paused_until = 0;

 private:
  struct Read {
    uint64_t at;
    dblp_claim claim;
  };

  static const dblp_rx_ops kOps;

  TxFlow& flow_to(uint32_t peer);
  RxFlow* rx_by_id(uint64_t id);
  TxFlow* tx_by_id(uint64_t id);
  void boot();
  void drop_everything();
  uint32_t address(uint32_t peer, uint8_t* out) const;
  void packet(uint32_t from, uint8_t ecn, const uint8_t* p, const dblp_hdr& h);
  void hello(uint32_t from, const uint8_t* p, const dblp_hdr& h);
  bool echo(uint32_t from, const dblp_f_hello& f);
  void reset_received(uint32_t from, const dblp_hdr& h, uint8_t reason);
  void reset_send(uint32_t to, const dblp_hdr& h);
  void tx_packet(TxFlow& f, const uint8_t* p, const dblp_hdr& h);
  void rx_packet(RxFlow& f, uint8_t ecn, const uint8_t* p, const dblp_hdr& h);
  void pump(TxFlow& f);
  void pump(RxFlow& f);
  void reap(TxFlow& f);
  void tx_died(TxFlow& f);
  void tx_drop(TxFlow& f);
  void rx_drop(RxFlow& f);
  void grant();
  void settle();  // at the end of each call from outside
  void check_sent(TxFlow& f, const uint8_t* p, const dblp_pkt& pkt);
  void check_budget();
  uint64_t next_timer();

  // dblp_rx_ops
  dblp_rxmsg* open(RxFlow& f, uint32_t len, uint32_t seg_size, uint32_t nsegs);
  int store(RxMsg& m, const dblp_f_data& d, const uint8_t* pkt);
  void judged(RxMsg& m);
  void release(RxFlow& f, RxMsg& m);

  World& world_;
  const uint32_t index_;
  const EndpointSpec spec_;
  bool up_ = false;
  uint64_t incarnation_ = 0;
  uint64_t key_ = 0;
  dblp_hs hs_{};
  dblp_budget budget_{};
  std::map<uint32_t, std::unique_ptr<TxFlow>> tx_;  // by peer
  std::map<uint64_t, std::unique_ptr<RxFlow>> rx_;  // by our id
  std::deque<Read> reads_;
  uint64_t reset_at_ = 0;  // rate limit
  uint64_t armed_ = UINT64_MAX;
  std::vector<uint8_t> out_;  // the datagram that is being filled
};

}  // namespace dblp::sim

#endif  // DBLP_SIM_ENDPOINT_H

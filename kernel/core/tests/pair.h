// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// One sender and one receiver joined by a pipe in virtual time, for tests that say exactly
// which packet is lost.  The simulator in sim/ is for random ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "handshake.h"
#include "rx.h"
#include "tx.h"

namespace dblp_test {

// A packet on its way, with the types of the frames it carries.
struct Packet {
  bool to_receiver;
  uint64_t at;  // arrives, ns
  std::vector<uint8_t> bytes;
  std::vector<dblp_frame> frames;

  [[nodiscard]] bool has(dblp_frame_type type) const {
    return std::any_of(frames.begin(), frames.end(),
                       [type](const dblp_frame& f) { return f.type == type; });
  }
  [[nodiscard]] const dblp_frame* find(dblp_frame_type type) const {
    for (const auto& f : frames)
      if (f.type == type) return &f;
    return nullptr;
  }
};

struct TxMessage {
  dblp_txmsg m{};
  std::vector<dblp_txseg> segs;
  std::vector<std::vector<uint64_t>> leaves;
  bool done = false;
};

struct Delivered {
  uint64_t id;
  uint8_t verdict;
  uint32_t missing;
  std::vector<bool> missing_map;
};

struct RxMessage {
  dblp_rxmsg m{};  // first, so that it can be cast back
  std::vector<std::vector<uint64_t>> leaves;
};

class Pair;

// The receiver and who owns it.
struct OwnedRx : dblp_rx {
  Pair* owner;
};

class Pair {
 public:
  static constexpr uint64_t kDelay = 1'000'000;  // one way, ns
  static constexpr uint32_t kRoom = 1472;

  // Return true to lose the packet.
  std::function<bool(const Packet&)> drop = [](const Packet&) { return false; };
  std::function<void(Packet&)> change = [](Packet&) {};
  uint64_t now = 1'000'000'000;
  uint64_t dead_ns = DBLP_DEAD_NS;
  uint64_t limit = DBLP_MSG_LEN_MAX;
  bool room_there = true;
  bool store_fails = false;

  dblp_tx tx{};
  OwnedRx rx{};
  bool rx_alive = false;
  std::vector<Packet> history;
  std::vector<Delivered> delivered;
  std::array<uint64_t, DBLP_REJECT_COUNT> tx_rejects{}, rx_rejects{};
  std::vector<std::unique_ptr<TxMessage>> messages;
  std::set<RxMessage*> rx_messages;
  std::vector<dblp_rxmsg*> waiting;

  explicit Pair(const dblp_cc_ops* cc = &dblp_cc_bdp) : log_(4096) {
    dblp_tx_cfg cfg{};
    cfg.flow = 0x1111;
    cfg.incarnation = 0xaaaa;
    cfg.seed = 7;
    cfg.room = kRoom;
    cfg.dead_ns = dead_ns;
    cfg.cc = cc;
    cfg.log = log_.data();
    cfg.log_size = static_cast<uint32_t>(log_.size());
    cfg.reject = [](void* ctx, dblp_reject r) { static_cast<Pair*>(ctx)->tx_rejects[r]++; };
    cfg.ctx = this;
    dblp_tx_init(&tx, &cfg, now);
    rx.owner = this;
    hs_.incarnation = 0xbbbb;
    hs_.mac = [](const void*, uint32_t label, const uint8_t* p, uint32_t n) {
      uint64_t h = 1469598103934665603ULL + label;
      for (uint32_t i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211ULL;
      return h;
    };
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    if (rx_alive) dblp_rx_kill(&rx);
  }

  // A message of `len` bytes in segments of `seg`; the caller may change it before submit().
  TxMessage& message(uint32_t len, uint16_t seg = 1000) {
    auto t = std::make_unique<TxMessage>();
    t->m.len = len;
    t->m.seg_size = seg;
    const uint32_t n = dblp_nsegs(len, seg);
    t->segs.resize(n);
    t->m.seg = t->segs.data();
    t->leaves.resize(dblp_segmap_leaves(n));
    for (uint32_t i = 0; i < t->leaves.size(); i++) {
      t->leaves[i].assign(dblp_segmap_leaf_bytes(n, i) / 8, 0);
      t->m.map.leaf[i] = t->leaves[i].data();
    }
    messages.push_back(std::move(t));
    return *messages.back();
  }
  int submit(TxMessage& t) { return dblp_tx_submit(&tx, &t.m, now); }

  // Sends what may be sent now.
  void pump() {
    std::array<uint8_t, 2048> buf{};
    dblp_pkt pkt{};
    while (dblp_tx_poll(&tx, now, buf.data(), buf.size(), &pkt)) {
      std::vector<uint8_t> bytes(buf.begin(), buf.begin() + pkt.len);
      bytes.resize(pkt.len + pkt.payload, 0x5a);
      enqueue(true, std::move(bytes));
    }
    while (dblp_txmsg* m = dblp_tx_reap(&tx))
      for (auto& t : messages)
        if (&t->m == m) t->done = true;
    while (rx_alive) {
      const uint32_t n = dblp_rx_poll(&rx, now, buf.data(), buf.size());
      if (!n) break;
      enqueue(false, {buf.begin(), buf.begin() + n});
    }
  }

  // Runs until all messages are done and the pipe is empty, or until the time is over.
  bool run(uint64_t ns = 60'000'000'000ULL) {
    const uint64_t end = now + ns;
    for (;;) {
      pump();
      if (pipe_.empty() && !dblp_tx_busy(&tx)) return true;
      const uint64_t next = next_event();
      if (next > end) {
        now = end;
        return false;
      }
      step(next);
    }
  }

  // Runs for some time, whatever happens.
  void run_for(uint64_t ns) {
    const uint64_t end = now + ns;
    for (;;) {
      pump();
      const uint64_t next = next_event();
      if (next > end) break;
      step(next);
    }
    now = end;
  }

  void grant() {
    room_there = true;
    auto w = std::move(waiting);
    for (auto* m : w) dblp_rx_granted(&rx, m, now);
  }

  [[nodiscard]] uint32_t sent(dblp_frame_type type) const {
    return static_cast<uint32_t>(std::count_if(history.begin(), history.end(),
                                               [type](const Packet& p) { return p.has(type); }));
  }

  // Puts a packet into the pipe again.
  void inject(Packet p) {
    p.at = now + kDelay;
    pipe_.push_back(std::move(p));
  }

  void forget_receiver() {
    dblp_rx_kill(&rx);
    rx_alive = false;
    hs_.incarnation++;
  }

 private:
  void enqueue(bool to_receiver, std::vector<uint8_t> bytes) {
    Packet p{to_receiver, now + kDelay, std::move(bytes), {}};
    dblp_hdr h;
    dblp_reader r;
    dblp_frame f;
    if (!dblp_hdr_get(p.bytes.data(), p.bytes.size(), &h)) {
      dblp_reader_init(&r, p.bytes.data(), p.bytes.size(), &h);
      while (dblp_frame_next(&r, &f) == 1) p.frames.push_back(f);
    }
    history.push_back(p);
    if (drop(p)) return;
    change(p);
    pipe_.push_back(std::move(p));
  }

  [[nodiscard]] uint64_t next_event() const {
    uint64_t t = dblp_tx_timer(&tx);
    if (rx_alive) t = std::min(t, dblp_rx_timer(&rx));
    for (const auto& p : pipe_) t = std::min(t, p.at);
    return t;
  }

  void step(uint64_t t) {
    now = std::max(now, t);
    std::vector<Packet> due;
    for (auto it = pipe_.begin(); it != pipe_.end();) {
      if (it->at <= now) {
        due.push_back(std::move(*it));
        it = pipe_.erase(it);
      } else {
        ++it;
      }
    }
    std::stable_sort(due.begin(), due.end(),
                     [](const Packet& a, const Packet& b) { return a.at < b.at; });
    for (auto& p : due) deliver(p);
    if (dblp_tx_timer(&tx) <= now) dblp_tx_timeout(&tx, now);
    if (rx_alive && dblp_rx_timer(&rx) <= now) dblp_rx_timeout(&rx, now);
  }

  void deliver(Packet& p) {
    dblp_hdr h;
    if (dblp_hdr_get(p.bytes.data(), p.bytes.size(), &h)) return;
    if (!p.to_receiver) {
      if (!p.frames.empty() && p.frames[0].type == DBLP_F_RESET)
        dblp_tx_reset(&tx, &h, p.frames[0].u.reason.reason, now);
      else
        dblp_tx_input(&tx, p.bytes.data(), &h, now);
      return;
    }
    std::array<uint8_t, 256> buf{};
    if (h.flow == 0) {
      const uint32_t n = dblp_hs_challenge(&hs_, &p.frames[0].u.hello, kAddr, sizeof(kAddr), 64,
                                           now, buf.data(), buf.size());
      if (n) enqueue(false, {buf.begin(), buf.begin() + n});
      return;
    }
    if (!rx_alive) {
      uint64_t rtt = 0;
      if (!p.has(DBLP_F_ECHO) ||
          dblp_hs_check(&hs_, &p.find(DBLP_F_ECHO)->u.hello, kAddr, sizeof(kAddr), now, &rtt)) {
        const uint32_t n =
            dblp_hs_reset(h.flow, h.pn, DBLP_RESET_UNKNOWN, buf.data(), buf.size());
        enqueue(false, {buf.begin(), buf.begin() + n});
        return;
      }
      start_receiver(h.flow, p.find(DBLP_F_ECHO)->u.hello.tx_flow, rtt);
    }
    dblp_rx_input(&rx, p.bytes.data(), p.bytes.size(), &h, DBLP_ECN_ECT0, &p, now);
  }

  void start_receiver(uint64_t flow, uint64_t peer, uint64_t rtt) {
    static const dblp_rx_ops ops = {
        .open = [](dblp_rx* rx, uint32_t, uint32_t, uint32_t nsegs) -> dblp_rxmsg* {
          auto* m = new RxMessage;
          m->leaves.resize(dblp_segmap_leaves(nsegs));
          for (uint32_t i = 0; i < m->leaves.size(); i++) {
            m->leaves[i].assign(dblp_segmap_leaf_bytes(nsegs, i) / 8, 0);
            m->m.miss.leaf[i] = m->leaves[i].data();
          }
          self(rx)->rx_messages.insert(m);
          return &m->m;
        },
        .claim =
            [](dblp_rx* rx, dblp_rxmsg* m, uint64_t) {
              if (!self(rx)->room_there) self(rx)->waiting.push_back(m);
              return self(rx)->room_there;
            },
        .store = [](dblp_rx* rx, dblp_rxmsg*, const dblp_f_data*,
                    void*) { return self(rx)->store_fails ? -1 : 0; },
        .judged =
            [](dblp_rx* rx, dblp_rxmsg* m) {
              Delivered d{m->id, m->verdict, m->missing, {}};
              for (uint32_t s = 0; s < m->nsegs; s++)
                d.missing_map.push_back(dblp_segmap_test(&m->miss, s));
              self(rx)->delivered.push_back(std::move(d));
              std::erase(self(rx)->waiting, m);
            },
        .release =
            [](dblp_rx* rx, dblp_rxmsg* m) {
              auto* r = reinterpret_cast<RxMessage*>(m);
              std::erase(self(rx)->waiting, m);
              self(rx)->rx_messages.erase(r);
              delete r;
            },
        .free_kib = [](dblp_rx*) -> uint32_t { return 1024; },
        .reject = [](dblp_rx* rx, dblp_reject r) { self(rx)->rx_rejects[r]++; },
    };
    dblp_rx_cfg cfg{};
    cfg.flow = flow;
    cfg.peer_flow = peer;
    cfg.incarnation = hs_.incarnation;
    cfg.dead_ns = dead_ns;
    cfg.limit = limit;
    cfg.room = kRoom;
    cfg.first_kib = 64;
    cfg.rtt_ns = rtt;
    cfg.ops = &ops;
    dblp_rx_init(&rx, &cfg, now);
    rx_alive = true;
  }

  static Pair* self(dblp_rx* rx) { return static_cast<OwnedRx*>(rx)->owner; }

  static constexpr uint8_t kAddr[4] = {1, 2, 3, 4};
  std::vector<dblp_sent> log_;
  std::deque<Packet> pipe_;
  dblp_hs hs_{};
};

}  // namespace dblp_test

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "world.h"

namespace dblp::sim {
namespace {

constexpr uint64_t kResetGap = 100'000;
constexpr uint32_t kPolls = 100'000;  // of one flow without a pause: a livelock

uint64_t mac(const void* key, uint32_t label, const uint8_t* data, uint32_t len) {
  uint64_t h = *static_cast<const uint64_t*>(key) ^ (label * 0x9e3779b97f4a7c15ULL);
  for (uint32_t i = 0; i < len; i++) {
    h ^= data[i];
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
  }
  return h;
}

void ignore_reject(void*, enum dblp_reject) {}

std::vector<std::unique_ptr<uint64_t[]>> make_leaves(dblp_segmap& map, uint32_t nbits) {
  std::vector<std::unique_ptr<uint64_t[]>> leaves;
  for (uint32_t i = 0; i < dblp_segmap_leaves(nbits); i++) {
    leaves.emplace_back(new uint64_t[dblp_segmap_leaf_bytes(nbits, i) / 8]());
    map.leaf[i] = leaves.back().get();
  }
  return leaves;
}

// Widens byte ranges to segments and merges, as the kernel does for DBLP_CMSG_PROTECT.
uint32_t protect(const MsgSpec& spec, uint32_t seg_size, dblp_segrun* out) {
  auto ranges = spec.protect;
  uint32_t n = 0;

  std::sort(ranges.begin(), ranges.end());
  for (auto [off, len] : ranges) {
    const uint32_t first = off / seg_size, last = (off + len - 1) / seg_size;
    if (n && first <= out[n - 1].first + out[n - 1].count) {
      const uint32_t end = std::max(out[n - 1].first + out[n - 1].count, last + 1);
      out[n - 1].count = end - out[n - 1].first;
    } else if (n < DBLP_PROT_MAX) {
      out[n++] = {first, last - first + 1};
    }
  }
  return n;
}

Endpoint* owner(dblp_rx* rx) { return static_cast<RxFlow*>(rx)->ep; }

// The first frame of a packet decides what to do with one whose flow is not known.
bool first_frame(const uint8_t* p, const dblp_hdr& h, dblp_frame* f) {
  dblp_reader r;
  dblp_reader_init(&r, p, h.len, &h);
  return dblp_frame_next(&r, f) == 1;
}

}  // namespace

const dblp_rx_ops Endpoint::kOps = {
    .open = [](dblp_rx* rx, u32 len, u32 seg_size, u32 nsegs) -> dblp_rxmsg* {
      return owner(rx)->open(*static_cast<RxFlow*>(rx), len, seg_size, nsegs);
    },
    .claim = [](dblp_rx* rx, dblp_rxmsg* m, u64 bytes) -> bool {
      return dblp_budget_claim(&owner(rx)->budget_, &m->claim, bytes);
    },
    .store = [](dblp_rx* rx, dblp_rxmsg* m, const dblp_f_data* f, void* pkt) -> int {
      return owner(rx)->store(*static_cast<RxMsg*>(m), *f, static_cast<const uint8_t*>(pkt));
    },
    .judged = [](dblp_rx* rx, dblp_rxmsg* m) { owner(rx)->judged(*static_cast<RxMsg*>(m)); },
    .release =
        [](dblp_rx* rx, dblp_rxmsg* m) {
          owner(rx)->release(*static_cast<RxFlow*>(rx), *static_cast<RxMsg*>(m));
        },
    .free_kib = [](dblp_rx* rx) -> u32 {
      const uint64_t kib = dblp_budget_free(&owner(rx)->budget_) >> 10;
      return static_cast<u32>(std::min<uint64_t>(kib, UINT32_MAX));
    },
    .reject =
        [](dblp_rx* rx, enum dblp_reject r) {
          World& w = owner(rx)->world_;
          if (w.tracing()) w.trace("  ep%u rejects: %s", owner(rx)->index_, dblp_reject_name(r));
        },
};

Endpoint::Endpoint(World& world, uint32_t index, const EndpointSpec& spec)
    : world_(world), index_(index), spec_(spec) {
  boot();
}

Endpoint::~Endpoint() { drop_everything(); }

void Endpoint::boot() {
  incarnation_ = world_.rng().next();
  key_ = world_.rng().next();
  hs_ = {incarnation_, mac, &key_};
  dblp_budget_init(&budget_, spec_.budget);
  armed_ = UINT64_MAX;
  up_ = true;
}

void Endpoint::drop_everything() {
  for (auto& [peer, f] : tx_)
    for (auto& [id, m] : f->owned) world_.ledger().messages()[m->uid].abandoned = true;
  tx_.clear();
  for (auto& [id, f] : rx_) {
    dblp_rx_kill(f.get());
    world_.set_fate(id, Fate::gone);
  }
  rx_.clear();
  for (Read& r : reads_) dblp_budget_release(&budget_, &r.claim);
  reads_.clear();
  check_released();
}

void Endpoint::restart() {
  drop_everything();
  world_.trace("ep%u restarts", index_);
  boot();
}

void Endpoint::close() {
  uint8_t buf[64];

  for (auto& [peer, f] : tx_) {
    const uint32_t len = dblp_tx_fin(f.get(), DBLP_FIN_CLOSED, buf, sizeof(buf));
    if (len) world_.send(index_, peer, {buf, len});
    f->closed = true;
    dblp_tx_kill(f.get(), ECANCELED, world_.now());
    reap(*f);
  }
  for (auto& [id, f] : rx_) {
    if (f->dead) continue;
    dblp_rx_repeat(f.get());
    pump(*f);
    const uint32_t len = dblp_hs_reset(id, 0, DBLP_RESET_CLOSED, buf, sizeof(buf));
    if (len) world_.send(index_, f->peer, {buf, len});
  }
  drop_everything();
  world_.trace("ep%u closes", index_);
  up_ = false;
}

uint32_t Endpoint::address(uint32_t peer, uint8_t* out) const {
  put_unaligned_be32(peer, out);
  put_unaligned_be32(index_, out + 4);
  return 8;
}

// ---- sending ---------------------------------------------------------------------------

TxFlow& Endpoint::flow_to(uint32_t peer) {
  auto& slot = tx_[peer];
  if (slot) return *slot;
  slot = std::make_unique<TxFlow>();
  TxFlow& f = *slot;
  f.ep = this;
  f.peer = peer;
  f.sent.resize(DBLP_SENTLOG_MIN);
  f.heard = f.busy_since = world_.now();
  dblp_tx_cfg cfg{};
  cfg.flow = world_.rng().next() | 1;
  cfg.incarnation = incarnation_;
  cfg.seed = world_.rng().next();
  cfg.room = spec_.room;
  cfg.dead_ns = spec_.dead;
  cfg.cc = spec_.fixed_rate ? &dblp_cc_fixed : &dblp_cc_bdp;
  cfg.log = f.sent.data();
  cfg.log_size = static_cast<u32>(f.sent.size());
  cfg.reject = ignore_reject;
  dblp_tx_init(&f, &cfg, world_.now());
  if (spec_.fixed_rate) dblp_cc_set_fixed_rate(&f.cc, 50'000'000);
  return f;
}

void Endpoint::submit(const MsgSpec& spec) {
  TxFlow& f = flow_to(spec.to);
  auto owned = std::make_unique<TxMsg>();
  TxMsg& m = *owned;

  m.uid = world_.ledger().next_uid();
  m.len = spec.len;
  m.seg_size = spec.seg_size;
  m.max_rounds = spec.max_rounds;
  m.mode = spec.mode;
  m.phase = static_cast<uint8_t>(m.uid);
  m.ordered = spec.ordered;
  m.ppm = spec.ppm;
  m.deadline_us = spec.deadline_us;
  m.group = spec.group;
  m.tag = m.uid;
  m.nprot = protect(spec, m.seg_size, m.prot);
  const uint32_t nsegs = dblp_nsegs(m.len, m.seg_size);
  m.segments.resize(nsegs);
  m.seg = m.segments.data();
  m.leaves = make_leaves(m.map, nsegs);

  const uint32_t wish = dblp_tx_log_wish(&f, nsegs);
  if (wish > f.sent.size()) {
    std::vector<dblp_sent> larger(wish);
    dblp_sentlog_grow(&f.log, larger.data(), wish);
    f.sent.swap(larger);
  }
  if (!dblp_tx_busy(&f)) f.busy_since = world_.now();
  const int ret = dblp_tx_submit(&f, &m, world_.now());
  if (ret) {
    world_.ledger().fail(Invariant::complete, "submit failed: " + std::to_string(ret));
    return;
  }
  world_.trace("ep%u submits message %u to %u: id %llu, %u bytes, %u segments, A %u", index_, m.uid,
               spec.to, static_cast<unsigned long long>(m.id), m.len, nsegs, m.allow);
  world_.ledger().submitted(spec, f, m, world_.now());
  world_.stats().messages++;
  world_.stats().segments += nsegs;
  f.owned.emplace(m.id, std::move(owned));
  pump(f);
  settle();
}

// What goes out is held against what is known to have come in.
void Endpoint::check_sent(TxFlow& f, const uint8_t* p, const dblp_pkt& pkt) {
  if (pkt.msg) {
    MsgRecord& r = world_.ledger().messages()[static_cast<TxMsg*>(pkt.msg)->uid];
    if (pkt.seg >= r.nsegs || pkt.off != pkt.seg * r.seg_size ||
        pkt.payload != dblp_seg_len(r.spec.len, r.seg_size, pkt.seg))
      return world_.ledger().fail(Invariant::payload, "the sender asks for payload out of bounds");
    if (r.completed) return world_.ledger().fail(Invariant::complete, "DATA of a complete message");
    r.sent[pkt.seg] = true;
  }
  dblp_hdr h;
  dblp_reader r;
  dblp_frame frame;
  if (dblp_hdr_get(p, pkt.len + pkt.payload, &h))
    return world_.ledger().fail(Invariant::check, "the sender built a packet that cannot be read");
  dblp_reader_init(&r, p, h.len, &h);
  int ret;
  while ((ret = dblp_frame_next(&r, &frame)) == 1) {
    if (frame.type != DBLP_F_MARK || !world_.ledger().content()) continue;
    const dblp_f_mark& mark = frame.u.mark;
    const TxFlow::Asked& asked = f.asked[mark.id];
    if (mark.pass > 1 + asked.need + asked.budget)
      world_.ledger().fail(Invariant::rounds, "MARK of pass " + std::to_string(mark.pass) +
                                                  " without a NEED for the one before");
  }
  if (ret) world_.ledger().fail(Invariant::check, "the sender built a frame that cannot be read");
}

void Endpoint::pump(TxFlow& f) {
  uint8_t buf[9216];
  dblp_pkt pkt;
  uint32_t polls = 0;

  out_.clear();
  while (memset(&pkt, 0, sizeof(pkt)), dblp_tx_poll(&f, world_.now(), buf, spec_.room, &pkt)) {
    if (++polls > kPolls) {
      world_.ledger().fail(Invariant::livelock, "dblp_tx_poll() does not end");
      return;
    }
    const uint32_t len = pkt.len + pkt.payload;
    if (len > spec_.room) {
      world_.ledger().fail(Invariant::check, "a packet larger than the room");
      return;
    }
    if (pkt.msg)
      fill_payload(static_cast<TxMsg*>(pkt.msg)->uid, pkt.off, buf + pkt.len, pkt.payload);
    check_sent(f, buf, pkt);
    if (world_.ledger().failed()) return;
    if (!out_.empty() && (!spec_.coalesce || out_.size() + len > spec_.room)) {
      world_.send(index_, f.peer, out_);
      out_.clear();
    }
    out_.insert(out_.end(), buf, buf + len);
  }
  if (!out_.empty()) world_.send(index_, f.peer, out_);
  reap(f);
}

void Endpoint::reap(TxFlow& f) {
  while (dblp_txmsg* done = dblp_tx_reap(&f)) {
    auto it = f.owned.find(done->id);
    if (it == f.owned.end() || it->second.get() != done) {
      world_.ledger().fail(Invariant::complete, "a message came back that is not out");
      return;
    }
    const TxMsg& m = *it->second;
    world_.trace("ep%u completes message %u: outcome %u, missing %u, error %d", index_, m.uid,
                 m.outcome, m.missing_bytes, m.error);
    RunStats& s = world_.stats();
    s.resent += m.resent_bytes;
    (m.outcome == DBLP_TX_OK        ? s.ok
     : m.outcome == DBLP_TX_BELOW   ? s.below
     : m.outcome == DBLP_TX_REFUSED ? s.refused
                                    : s.unknown)++;
    if (m.outcome == DBLP_TX_OK && m.missing_bytes) s.incomplete_ok++;
    s.longest = world_.now();
    if (m.outcome == DBLP_TX_UNKNOWN && f.state != DBLP_TX_DEAD && world_.ledger().content())
      world_.ledger().fail(Invariant::cause, "UNKNOWN on a flow that lives");
    if (world_.scenario().in_order() && m.resent_bytes)
      world_.ledger().fail(Invariant::clean, "message " + std::to_string(m.uid) + ": sent again");
    world_.ledger().completed(m.uid, m, world_.scenario().endpoints[f.peer].limit);
    f.owned.erase(it);
  }
}

// Was there a reason for the death of this flow?
void Endpoint::tx_died(TxFlow& f) {
  Ledger& l = world_.ledger();
  world_.trace("ep%u: flow to %u is dead: error %d", index_, f.peer, f.error);
  if (!f.owned.empty()) return l.fail(Invariant::complete, "a dead flow keeps messages");
  if (!l.content()) return;
  switch (f.error) {
    case ETIMEDOUT:
      if (world_.now() - std::max(f.heard, f.busy_since) < spec_.dead)
        l.fail(Invariant::cause, "ETIMEDOUT without silence");
      break;
    case ECONNRESET:
      if (!f.reset_seen) l.fail(Invariant::cause, "ECONNRESET although the peer had the flow");
      break;
    case ECONNREFUSED:
      if (!f.icmp_seen) l.fail(Invariant::cause, "ECONNREFUSED without ICMP");
      break;
    case ECANCELED:
      if (!f.closed) l.fail(Invariant::cause, "ECANCELED without close()");
      break;
    default:
      l.fail(Invariant::cause, "the flow died of " + std::to_string(f.error));
  }
}

void Endpoint::shutdown() {
  for (auto& [peer, f] : tx_) {
    for (auto& [id, m] : f->owned) world_.ledger().messages()[m->uid].shutdown = true;
    world_.trace("ep%u: shutdown of its flow to %u", index_, peer);
    dblp_tx_close_all(f.get(), world_.now());
    pump(*f);
  }
  settle();
}

void Endpoint::icmp(uint32_t peer) {
  auto it = tx_.find(peer);
  if (it != tx_.end()) {
    it->second->icmp_seen = true;
    dblp_tx_kill(it->second.get(), ECONNREFUSED, world_.now());
    pump(*it->second);
  }
  settle();
}

// ---- receiving -------------------------------------------------------------------------

RxFlow* Endpoint::rx_by_id(uint64_t id) {
  auto it = rx_.find(id);
  return it == rx_.end() ? nullptr : it->second.get();
}

TxFlow* Endpoint::tx_by_id(uint64_t id) {
  for (auto& [peer, f] : tx_)
    if (f->cfg.flow == id) return f.get();
  return nullptr;
}

void Endpoint::deliver(uint32_t from, uint8_t ecn, std::span<const uint8_t> datagram) {
  const uint8_t* p = datagram.data();
  uint32_t left = static_cast<uint32_t>(datagram.size());

  while (left) {
    dblp_hdr h;
    const int ret = dblp_hdr_get(p, left, &h);
    if (ret && ret != DBLP_REJECT_PATH && ret != DBLP_REJECT_RESERVED && ret != DBLP_REJECT_CRYPTO)
      break;
    if (!ret) packet(from, ecn, p, h);
    if (world_.ledger().failed()) return;
    p += h.len;
    left -= h.len;
  }
  settle();
}

void Endpoint::packet(uint32_t from, uint8_t ecn, const uint8_t* p, const dblp_hdr& h) {
  dblp_frame f;

  if (!h.flow) return hello(from, p, h);
  if (h.flags & DBLP_HDR_REV) {
    TxFlow* tx = tx_by_id(h.flow);
    if (tx) {
      if (tx->peer != from) return;
      if (h.pn ? tx->seen.add(h.pn) : !tx->data_sent) tx->heard = world_.now();
      tx_packet(*tx, p, h);
      return;
    }
    if (!first_frame(p, h, &f)) return;
    if (f.type == DBLP_F_RESET)
      reset_received(from, h, f.u.reason.reason);
    else if (f.type != DBLP_F_CHALLENGE)
      reset_send(from, h);
    return;
  }
  RxFlow* rx = rx_by_id(h.flow);
  if (!rx) {
    if (!first_frame(p, h, &f)) return;
    if (f.type != DBLP_F_ECHO) {
      if (f.type != DBLP_F_RESET && f.type != DBLP_F_FIN) reset_send(from, h);
      return;
    }
    if (!echo(from, f.u.hello)) return;
    rx = rx_by_id(h.flow);
    if (!rx) return;
  }
  if (rx->peer != from) return;
  if (rx->seen.add(h.pn) && !rx->dead) rx->heard = world_.now();
  rx_packet(*rx, ecn, p, h);
}

void Endpoint::hello(uint32_t from, const uint8_t* p, const dblp_hdr& h) {
  uint8_t addr[DBLP_HS_ADDR_MAX], buf[128];
  dblp_frame f;

  if (!first_frame(p, h, &f) || f.type != DBLP_F_INIT) return;
  const uint32_t first_kib = static_cast<uint32_t>(
      std::min<uint64_t>(64, dblp_budget_free(&budget_) / (rx_.size() + 1) >> 10));
  const uint32_t len = dblp_hs_challenge(&hs_, &f.u.hello, addr, address(from, addr), first_kib,
                                         world_.now(), buf, sizeof(buf));
  if (!len) return world_.ledger().fail(Invariant::check, "no CHALLENGE was built");
  if (len > h.len) return world_.ledger().fail(Invariant::check, "CHALLENGE larger than INIT");
  world_.send(index_, from, {buf, len});
}

// Opens the flow if the cookie is good.
bool Endpoint::echo(uint32_t from, const dblp_f_hello& hello) {
  uint8_t addr[DBLP_HS_ADDR_MAX];
  uint64_t rtt;

  if (dblp_hs_check(&hs_, &hello, addr, address(from, addr), world_.now(), &rtt)) return false;
  if (rx_by_id(hello.rx_flow)) return true;
  const Fate fate = world_.fate(hello.rx_flow);
  if (fate != Fate::never && world_.ledger().content()) {
    world_.ledger().fail(Invariant::once, "a replayed ECHO opens a flow a second time");
    return false;
  }
  auto flow = std::make_unique<RxFlow>();
  flow->ep = this;
  flow->peer = from;
  flow->heard = world_.now();
  dblp_rx_cfg cfg{};
  cfg.flow = hello.rx_flow;
  cfg.peer_flow = hello.tx_flow;
  cfg.incarnation = incarnation_;
  cfg.dead_ns = spec_.dead;
  cfg.limit = spec_.limit;
  cfg.room = spec_.room;
  cfg.first_kib =
      static_cast<u32>(std::min<uint64_t>(64, dblp_budget_free(&budget_) / (rx_.size() + 1) >> 10));
  cfg.rtt_ns = rtt;
  cfg.ops = &kOps;
  dblp_rx_init(flow.get(), &cfg, world_.now());
  world_.set_fate(hello.rx_flow, Fate::alive);
  rx_[hello.rx_flow] = std::move(flow);
  return true;
}

void Endpoint::reset_received(uint32_t from, const dblp_hdr& h, uint8_t reason) {
  const uint64_t flow = h.flow;
  auto it = tx_.find(from);
  if (it != tx_.end() && it->second->peer_flow == flow) {
    TxFlow& f = *it->second;
    f.reset_seen |= world_.fate(flow) != Fate::alive;
    dblp_tx_reset(&f, &h, reason, world_.now());
    pump(f);
  }
  for (auto& [id, f] : rx_) {
    if (f->peer != from || f->cfg.peer_flow != flow || f->dead) continue;
    world_.set_fate(id, Fate::gone);
    dblp_rx_kill(f.get());
  }
}

void Endpoint::reset_send(uint32_t to, const dblp_hdr& h) {
  uint8_t buf[64];

  if (world_.now() < reset_at_) return;
  reset_at_ = world_.now() + kResetGap;
  const uint32_t len = dblp_hs_reset(h.flow, h.pn, DBLP_RESET_UNKNOWN, buf, sizeof(buf));
  if (len) world_.send(index_, to, {buf, len});
}

void Endpoint::tx_packet(TxFlow& f, const uint8_t* p, const dblp_hdr& h) {
  dblp_reader r;
  dblp_frame frame;

  dblp_reader_init(&r, p, h.len, &h);
  while (dblp_frame_next(&r, &frame) == 1) {
    if (frame.type == DBLP_F_NEED) {
      uint32_t& pass = f.asked[frame.u.need.id].need;
      pass = std::max<uint32_t>(pass, frame.u.need.pass);
    } else if (frame.type == DBLP_F_BUDGET) {
      f.asked[frame.u.budget.id].budget++;
    } else if (frame.type == DBLP_F_CHALLENGE || frame.type == DBLP_F_RESET) {
      f.reset_seen |= f.peer_flow && world_.fate(f.peer_flow) != Fate::alive;
    }
  }
  dblp_tx_input(&f, p, &h, world_.now());
  pump(f);
}

void Endpoint::rx_packet(RxFlow& f, uint8_t ecn, const uint8_t* p, const dblp_hdr& h) {
  dblp_reader r;
  dblp_frame frame;
  bool fin = false;

  dblp_reader_init(&r, p, h.len, &h);
  while (dblp_frame_next(&r, &frame) == 1) {
    if (frame.type == DBLP_F_MARK) {
      uint16_t& pass = f.marks[frame.u.mark.id];
      pass = std::max(pass, frame.u.mark.pass);
    }
    fin |= frame.type == DBLP_F_FIN;
  }
  // The copy ends where the packet does, so that a sanitizer sees every read beyond it.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[h.len]);
  memcpy(copy.get(), p, h.len);
  uint8_t* pkt = copy.get();
  const bool was_dead = f.dead;
  uint32_t linear = h.len;
  if (world_.rng().chance(20000))
    linear = static_cast<uint32_t>(world_.rng().range(DBLP_HDR_LEN, h.len));
  if (linear < h.len) {
    const std::unique_ptr<uint8_t[]> head(new uint8_t[linear]);
    memcpy(head.get(), p, linear);
    if (dblp_rx_input(&f, head.get(), linear, &h, ecn, pkt, world_.now()) != DBLP_READ_LINEAR)
      linear = 0;
  }
  if (linear) dblp_rx_input(&f, pkt, h.len, &h, ecn, pkt, world_.now());
  if (f.dead && !was_dead) world_.set_fate(h.flow, fin ? Fate::finished : Fate::silent);
  pump(f);
}

void Endpoint::pump(RxFlow& f) {
  uint8_t buf[9216];
  uint32_t len, polls = 0;

  out_.clear();
  while ((len = dblp_rx_poll(&f, world_.now(), buf, sizeof(buf))) != 0) {
    if (++polls > kPolls) {
      world_.ledger().fail(Invariant::livelock, "dblp_rx_poll() does not end");
      return;
    }
    if (len > spec_.room) {
      world_.ledger().fail(Invariant::check, "an answer larger than the room");
      return;
    }
    dblp_hdr h;
    dblp_reader r;
    dblp_frame frame;
    if (dblp_hdr_get(buf, len, &h) || h.len != len)
      return world_.ledger().fail(Invariant::check, "the receiver built an unreadable packet");
    dblp_reader_init(&r, buf, len, &h);
    int ret;
    while ((ret = dblp_frame_next(&r, &frame)) == 1) {
      if (frame.type != DBLP_F_NEED || !world_.ledger().content()) continue;
      auto mark = f.marks.find(frame.u.need.id);
      if (mark == f.marks.end() || mark->second != frame.u.need.pass)
        world_.ledger().fail(Invariant::rounds, "NEED that answers no MARK of the current pass");
    }
    if (ret) world_.ledger().fail(Invariant::check, "the receiver built an unreadable frame");
    if (world_.ledger().failed()) return;
    if (!out_.empty() && (!spec_.coalesce || out_.size() + len > spec_.room)) {
      world_.send(index_, f.peer, out_);
      out_.clear();
    }
    out_.insert(out_.end(), buf, buf + len);
  }
  if (!out_.empty()) world_.send(index_, f.peer, out_);
}

void Endpoint::rx_drop(RxFlow& f) {
  if (world_.fate(f.cfg.flow) == Fate::alive) world_.set_fate(f.cfg.flow, Fate::idle);
  dblp_rx_kill(&f);
  if (!f.owned.empty()) world_.ledger().fail(Invariant::memory, "a killed flow keeps messages");
  rx_.erase(f.cfg.flow);
}

// ---- the receiver's memory -------------------------------------------------------------

dblp_rxmsg* Endpoint::open(RxFlow& f, uint32_t len, uint32_t, uint32_t nsegs) {
  if (world_.rng().chance(world_.scenario().no_memory)) return nullptr;
  auto owned = std::make_unique<RxMsg>();
  RxMsg& m = *owned;
  m.flow = &f;
  m.leaves = make_leaves(m.miss, nsegs);
  m.kept.resize(nsegs);
  m.data.resize(len);
  f.owned.emplace(&m, std::move(owned));
  return &m;
}

int Endpoint::store(RxMsg& m, const dblp_f_data& d, const uint8_t* pkt) {
  Ledger& l = world_.ledger();

  if (m.judged_once) l.fail(Invariant::frozen, "a segment was kept after judgement");
  if (!m.claim.held) l.fail(Invariant::budget, "a segment was kept without room for it");
  if (d.seg >= m.kept.size() || d.seg * m.seg_size + d.len > m.data.size()) {
    l.fail(Invariant::payload, "a segment beyond the message");
    return -ENOMEM;
  }
  if (m.kept[d.seg]) l.fail(Invariant::map_true, "a segment was kept twice");
  if (world_.rng().chance(world_.scenario().no_memory)) return -ENOMEM;
  m.kept[d.seg] = true;
  memcpy(&m.data[d.seg * m.seg_size], pkt + d.off, d.len);
  return 0;
}

void Endpoint::judged(RxMsg& m) {
  Ledger& l = world_.ledger();
  const uint64_t uid = m.desc.tag;

  world_.trace("ep%u judges message %llu (id %llu): %s, %u bytes missing", index_,
               static_cast<unsigned long long>(uid), static_cast<unsigned long long>(m.id),
               m.verdict == DBLP_VERDICT_OK ? "OK" : "BELOW", m.missing);
  if (m.judged_once) l.fail(Invariant::once, "the owner was told twice");
  m.judged_once = true;
  if (l.content()) {
    const MsgRecord* r = l.find(uid);
    if (r && (r->spec.to != index_ || r->spec.from != m.flow->peer || r->id != m.id))
      l.fail(Invariant::payload, "a message in a wrong place");
    l.judged(uid, m.verdict, m.kept, m.miss, m.missing);
    for (uint32_t i = 0; i < m.nsegs; i++)
      if (m.kept[i] && !check_payload(uid, i * m.seg_size, &m.data[i * m.seg_size],
                                      dblp_seg_len(m.len, m.seg_size, i)))
        l.fail(Invariant::payload, "message " + std::to_string(uid) + ": segment " +
                                       std::to_string(i) + " is not the one that was sent");
  }
  m.data = {};
  if (m.claim.held && (m.verdict == DBLP_VERDICT_OK || spec_.partial)) {
    uint64_t at = world_.now();
    if (spec_.read_delay) at += world_.rng().below(spec_.read_delay);
    if (!reads_.empty()) at = std::max(at, reads_.back().at);
    Read& read = reads_.emplace_back();
    read.at = at;
    dblp_claim_init(&read.claim);
    read.claim.bytes = m.claim.bytes;
    read.claim.held = true;
    m.claim.held = false;
  } else {
    dblp_budget_release(&budget_, &m.claim);
  }
}

void Endpoint::release(RxFlow& f, RxMsg& m) {
  for (uint32_t i = 0; i < m.nsegs; i++)
    if (dblp_segmap_test(&m.miss, i) == m.kept[i])
      world_.ledger().fail(m.judged_once ? Invariant::frozen : Invariant::map_true,
                           "the map is not what was kept when the message is released");
  dblp_budget_release(&budget_, &m.claim);
  if (!f.owned.erase(&m)) world_.ledger().fail(Invariant::memory, "released twice");
}

// ---- time ------------------------------------------------------------------------------

void Endpoint::timer() {
  const uint64_t now = world_.now();

  if (armed_ <= now) armed_ = UINT64_MAX;
  while (!reads_.empty() && reads_.front().at <= now) {
    dblp_budget_release(&budget_, &reads_.front().claim);
    reads_.pop_front();
  }
  for (auto it = tx_.begin(); it != tx_.end();) {
    TxFlow& f = *(it++)->second;
    if (dblp_tx_timer(&f) > now) continue;
    world_.trace("ep%u: timer of its flow to %u", index_, f.peer);
    dblp_tx_timeout(&f, now);
    pump(f);
    if (world_.ledger().failed()) return;
    if (f.state != DBLP_TX_DEAD && dblp_tx_idle(&f, now)) tx_drop(f);
  }
  for (auto it = rx_.begin(); it != rx_.end();) {
    RxFlow& f = *(it++)->second;
    if (dblp_rx_timer(&f) > now) continue;
    const bool unjudged = f.nopen, was_dead = f.dead;
    world_.trace("ep%u: timer of the flow from %u", index_, f.peer);
    dblp_rx_timeout(&f, now);
    if (f.dead && !was_dead) {
      world_.set_fate(f.cfg.flow, Fate::silent);
      if (world_.ledger().content() && (!unjudged || now - f.heard < spec_.dead))
        world_.ledger().fail(Invariant::cause, "a flow was dropped that was not silent");
    }
    pump(f);
    if (world_.ledger().failed()) return;
    if (dblp_rx_idle(&f, now)) rx_drop(f);
  }
  settle();
}

// An idle flow ends silently and is opened again when it is needed.
void Endpoint::tx_drop(TxFlow& f) {
  uint8_t buf[64];

  if (!f.owned.empty()) world_.ledger().fail(Invariant::complete, "an idle flow keeps messages");
  const uint32_t len = dblp_tx_fin(&f, DBLP_FIN_IDLE, buf, sizeof(buf));
  if (len) world_.send(index_, f.peer, {buf, len});
  tx_.erase(f.peer);
}

uint64_t Endpoint::next_timer() {
  uint64_t at = reads_.empty() ? UINT64_MAX : reads_.front().at;
  for (auto& [peer, f] : tx_) at = std::min(at, dblp_tx_timer(f.get()));
  for (auto& [id, f] : rx_) at = std::min(at, dblp_rx_timer(f.get()));
  return at;
}

void Endpoint::grant() {
  while (dblp_claim* c = dblp_budget_grant(&budget_)) {
    auto* m = static_cast<RxMsg*>(container_of(c, dblp_rxmsg, claim));
    RxFlow& f = *m->flow;
    dblp_rx_granted(&f, m, world_.now());
    pump(f);
  }
}

void Endpoint::settle() {
  grant();
  for (auto it = tx_.begin(); it != tx_.end();) {
    if (it->second->state == DBLP_TX_DEAD) {
      tx_died(*it->second);
      it = tx_.erase(it);
    } else {
      ++it;
    }
  }
  check_budget();
  const uint64_t at = next_timer();
  if (at < armed_) {
    armed_ = std::max(at, world_.now());
    world_.wake(index_, armed_);
  }
}

void Endpoint::check_budget() {
  uint64_t held = 0;
  uint32_t holders = 0;

  for (auto& [id, f] : rx_)
    for (auto& [key, m] : f->owned)
      if (m->claim.held) {
        held += m->claim.bytes;
        holders++;
      }
  for (const Read& r : reads_) {
    held += r.claim.bytes;
    holders++;
  }
  if (held != budget_.used)
    world_.ledger().fail(Invariant::budget, "the sum of what is held is not what is in use");
  if (held > spec_.budget && holders != 1)
    world_.ledger().fail(Invariant::budget, "more than the limit is in use");
}

void Endpoint::check_released() {
  if (budget_.used) world_.ledger().fail(Invariant::budget, "room is in use by nothing");
  if (budget_.nwaiters) world_.ledger().fail(Invariant::budget, "waiters without messages");
}

}  // namespace dblp::sim

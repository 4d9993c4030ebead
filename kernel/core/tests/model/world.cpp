// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "world.h"

#include <algorithm>
#include <cstring>

namespace dblp::model {

World world;

namespace {

constexpr uint32_t kSegSize = DBLP_SEG_MIN;
constexpr uint32_t kRoom = DBLP_ROOM_MIN;
constexpr uint64_t kTxFlow = 0x1111, kRxFlow = 0x2222, kTag = 0x3333;
constexpr uint64_t kStart = 1'000'000'000;
constexpr uint32_t kStepsToTheEnd = 400;

void violate(const char* what) {
  if (!world.violated) world.violated = what;
}

uint32_t all_segments() { return (1U << world.config.segments) - 1; }

uint32_t length(uint32_t mask) {
  return static_cast<uint32_t>(__builtin_popcount(mask)) * kSegSize;
}

void check_verdict(uint32_t missing) {
  const Config& c = world.config;
  const bool met = length(missing) <= c.allow * kSegSize && !(c.protect && missing & 2);
  if (world.verdict == DBLP_VERDICT_OK) {
    if (!met) violate("OK although the bound is not met");
    if (c.mode == 0 && (missing & ~world.sent) && !c.deadline && !c.round_cap)
      violate("pressure: OK without a segment that was never sent");
  } else {
    if (met) violate("BELOW although the bound is met");
    if (!c.deadline && !c.round_cap) violate("BELOW without deadline and round cap");
  }
}

dblp_rxmsg* on_open(dblp_rx*, u32, u32, u32) {
  if (world.open) violate("the message is opened a second time");
  if (world.judged) violate("the message is opened again after its judgement");
  memset(&world.rm, 0, sizeof(world.rm));
  world.rm.miss.leaf[0] = &world.rx_leaf;
  world.open = true;
  return &world.rm;
}

bool on_claim(dblp_rx*, dblp_rxmsg* m, u64 bytes) {
  m->claim.bytes = bytes;
  m->claim.held = true;
  return true;
}

int on_store(dblp_rx*, dblp_rxmsg*, const dblp_f_data* f, void*) {
  if (world.judged) violate("a segment is kept after judgement");
  if (world.kept >> f->seg & 1) violate("a segment is kept twice");
  world.kept |= 1U << f->seg;
  return 0;
}

void on_judged(dblp_rx*, dblp_rxmsg* m) {
  if (world.judged) violate("judged twice");
  world.judged = true;
  world.verdict = m->verdict;
  world.missing = all_segments() & ~world.kept;
  if (world.rx_leaf != world.missing) violate("the receiver's map is not what was kept");
  check_verdict(world.missing);
}

void on_release(dblp_rx*, dblp_rxmsg*) {
  if (world.judged && world.rx_leaf != world.missing) violate("the map changed after judgement");
  world.open = false;
}

u32 on_free_kib(dblp_rx*) { return 1024; }
void on_rx_reject(dblp_rx*, enum dblp_reject) {}
void on_tx_reject(void*, enum dblp_reject) {}

const dblp_rx_ops kOps = {on_open,    on_claim,    on_store,    on_judged,
                          on_release, on_free_kib, on_rx_reject};

void remove_packet(uint32_t i) {
  for (uint32_t k = i + 1; k < world.packets; k++) world.net[k - 1] = world.net[k];
  memset(&world.net[--world.packets], 0, sizeof(Packet));
}

// Leaves out PING and ACK frames that complete nothing; returns the length, 0 if nothing
// is left.
uint32_t without_acks(const uint8_t* bytes, uint32_t len, uint8_t* out) {
  dblp_writer w{out, kMaxBytes, DBLP_HDR_LEN};
  dblp_hdr h;
  dblp_reader r;
  dblp_frame f;
  if (dblp_hdr_get(bytes, len, &h)) return 0;
  dblp_reader_init(&r, bytes, len, &h);
  while (dblp_frame_next(&r, &f) == 1)
    if (f.type != DBLP_F_PING && (f.type != DBLP_F_ACK || f.u.ack.ndone)) dblp_frame_put(&w, &f);
  if (w.len == DBLP_HDR_LEN) return 0;
  h.len = static_cast<uint16_t>(w.len);
  dblp_hdr_put(out, &h);
  return w.len;
}

bool is_bare_ack(const Packet& p) {
  uint8_t rest[kMaxBytes];
  return p.rev && !without_acks(p.bytes, p.len, rest);
}

void emit(bool rev, const uint8_t* bytes, uint32_t len) {
  uint8_t rest[kMaxBytes];

  if (world.packets == kMaxPackets || len > kMaxBytes) return violate("the model is too small");
  if (!world.acks && (rev || bytes[DBLP_HDR_LEN] == DBLP_F_PING)) {
    len = without_acks(bytes, len, rest);
    bytes = rest;
    if (!len) return;
  }
  Packet& p = world.net[world.packets++];
  memset(&p, 0, sizeof(p));
  p.rev = rev;
  p.len = static_cast<uint16_t>(len);
  memcpy(p.bytes, bytes, len);
  // Of bare ACKs only the newest is in flight: any of them may be lost anyway.
  if (!is_bare_ack(p)) return;
  for (uint32_t i = 0; i + 1 < world.packets; i++)
    if (is_bare_ack(world.net[i])) return remove_packet(i);
}

void finish_message() {
  const dblp_txmsg* m = dblp_tx_reap(&world.tx);
  if (!m) return;
  if (world.completed) violate("completed twice");
  world.completed = true;
  world.outcome = m->outcome;
  world.sender_missing = static_cast<uint32_t>(world.tx_leaf);
  if (m->outcome != DBLP_TX_OK && m->outcome != DBLP_TX_BELOW)
    return violate("neither OK nor BELOW");
  if (!world.judged) return violate("completed before the judgement");
  if (m->outcome != (world.verdict == DBLP_VERDICT_OK ? DBLP_TX_OK : DBLP_TX_BELOW))
    violate("the outcomes of the two ends differ");
  if (world.sender_missing != world.missing || m->missing_bytes != length(world.missing))
    violate("the maps of the two ends differ");
}

void poll_tx() {
  uint8_t buf[kRoom];
  dblp_pkt pkt;
  while (dblp_tx_poll(&world.tx, world.tx_now, buf, sizeof(buf), &pkt)) {
    if (pkt.msg) {
      if (world.completed) violate("DATA of a complete message");
      world.sent |= 1U << pkt.seg;
    }
    emit(false, buf, pkt.len);
    if (world.violated) return;
  }
  finish_message();
}

void poll_rx() {
  uint8_t buf[kRoom];
  uint32_t len;
  while ((len = dblp_rx_poll(&world.rx, world.rx_now, buf, sizeof(buf))) != 0) {
    emit(true, buf, len);
    if (world.violated) return;
  }
}

void arrive(const Packet& p) {
  dblp_hdr h;
  // Only a payload may be missing from what was kept.
  const uint32_t whole = get_unaligned_be16(p.bytes + 2);
  if (dblp_hdr_get(p.bytes, whole, &h)) return violate("an unreadable packet");
  if (p.rev) {
    dblp_tx_input(&world.tx, p.bytes, &h, world.tx_now);
    poll_tx();
  } else {
    uint8_t none = 0;
    if (dblp_rx_input(&world.rx, p.bytes, p.len, &h, DBLP_ECN_NOT, &none, world.rx_now))
      return violate("a packet is not linear enough");
    poll_rx();
  }
}

void fire_tx(uint64_t at) {
  world.tx_now = std::max(world.tx_now, at);
  dblp_tx_timeout(&world.tx, world.tx_now);
  poll_tx();
}

void fire_rx(uint64_t at) {
  world.rx_now = std::max(world.rx_now, at);
  dblp_rx_timeout(&world.rx, world.rx_now);
  poll_rx();
}

// Timers that have to do with the message; idle flows are of no interest.
uint64_t tx_timer() {
  if (world.completed) return DBLP_NEVER;
  if (world.acks) return dblp_tx_timer(&world.tx);
  return std::min(world.tm.deadline_at, list_empty(&world.tm.wait) ? DBLP_NEVER : world.tm.ask_at);
}

uint64_t rx_timer() {
  const uint64_t ack = world.acks ? world.rx.acks.ack_at : DBLP_NEVER;
  return std::min(ack, world.rx.timer);
}

class Hash {
 public:
  void add(uint64_t v) {
    h_ = (h_ ^ v) * 0x9e3779b97f4a7c15ULL;
    h_ ^= h_ >> 29;
  }
  uint64_t value() const { return h_; }

 private:
  uint64_t h_ = 0x1234567;
};

// A time is none, over or to come.
uint64_t timer_class(uint64_t at, uint64_t now) { return at == DBLP_NEVER ? 0 : at <= now ? 1 : 2; }

bool rev_seen(uint32_t pn) {
  const dblp_tx& tx = world.tx;
  return pn <= tx.rev_largest && tx.rev_seen[pn / 64 % (DBLP_REV_WINDOW / 64)] >> (pn % 64) & 1;
}

// Packet numbers of the sender.  Without ACKs only their order and whether the receiver
// has them matters, so they are replaced by their rank.
class Numbers {
 public:
  Numbers() {
    if (world.acks) return;
    add(static_cast<uint32_t>(dblp_ackset_largest(&world.rx.acks)));
    for (uint32_t i = 0; i < world.config.segments; i++) add(segment(i));
    for (uint32_t i = 0; i < world.packets; i++) {
      const Packet& p = world.net[i];
      add(p.rev ? need_largest(p) : get_unaligned_be32(p.bytes + 12));
    }
    std::sort(all_, all_ + n_);
  }

  uint64_t operator()(uint32_t pn) const {
    if (world.acks) return pn;
    uint64_t rank = 0;
    for (uint32_t i = 0; i < n_ && all_[i] < pn; i++) rank += !i || all_[i] != all_[i - 1];
    return rank << 1 | dblp_ackset_has(&world.rx.acks, pn);
  }

  // Only of one in flight it matters.
  static uint32_t segment(uint32_t i) {
    return world.seg[i].state == DBLP_SEG_FLYING ? world.seg[i].pn : 0;
  }

 private:
  static uint32_t need_largest(const Packet& p) {
    dblp_hdr h;
    dblp_reader r;
    dblp_frame f;
    dblp_hdr_get(p.bytes, p.len, &h);
    dblp_reader_init(&r, p.bytes, p.len, &h);
    while (dblp_frame_next(&r, &f) == 1)
      if (f.type == DBLP_F_NEED) return f.u.need.largest;
    return 0;
  }
  void add(uint32_t pn) { all_[n_++] = pn; }

  uint32_t all_[kMaxPackets + kMaxSegments + 1] = {};
  uint32_t n_ = 0;
};

uint64_t fingerprint_packet(const Packet& p, const Numbers& number) {
  Hash h;
  dblp_hdr hdr;
  dblp_reader r;
  dblp_frame f;
  dblp_hdr_get(p.bytes, get_unaligned_be16(p.bytes + 2), &hdr);
  dblp_reader_init(&r, p.bytes, p.len, &hdr);
  h.add(p.rev);
  // The sender only asks of a number whether it is new.
  h.add(p.rev ? rev_seen(hdr.pn) : number(hdr.pn));
  h.add(hdr.low);
  while (dblp_frame_next(&r, &f) == 1) {
    h.add(f.type);
    switch (f.type) {
      case DBLP_F_DATA:
        h.add(f.u.data.seg);
        break;
      case DBLP_F_MARK:
      case DBLP_F_CLOSE:
        h.add(f.u.mark.pass);
        h.add(f.u.mark.want);
        break;
      case DBLP_F_ACK:
        if (world.acks) {
          h.add(f.u.ack.largest);
          for (uint32_t i = 0; i < f.u.ack.nranges; i++)
            h.add(static_cast<uint64_t>(f.u.ack.range[i].gap) << 16 | f.u.ack.range[i].len);
        }
        h.add(f.u.ack.ndone);
        break;
      case DBLP_F_DONE:
        h.add(f.u.done.verdict);
        h.add(f.u.done.digest);
        break;
      case DBLP_F_NEED:
        h.add(f.u.need.pass);
        h.add(number(f.u.need.largest));
        h.add(f.u.need.need);
        for (uint32_t i = 0; i < f.u.need.list_len; i++) h.add(f.u.need.list[i]);
        break;
      case DBLP_F_MAP:
        for (uint32_t i = 0; i < f.u.map.list_len; i++) h.add(f.u.map.list[i]);
        break;
      case DBLP_F_BUDGET:
        h.add(f.u.budget.op);
        break;
      default:
        break;
    }
  }
  return h.value();
}

}  // namespace

std::string Config::describe() const {
  return std::to_string(segments) + " segments, " + std::to_string(allow) + " may be missing, " +
         (mode ? "eager" : "pressure") + (deadline ? ", deadline" : "") +
         (round_cap ? ", round cap" : "") + (protect ? ", one protected" : "");
}

void start(const Config& config, bool acks) {
  memset(&world, 0, sizeof(world));
  world.acks = acks;
  world.config = config;
  world.tx_now = world.rx_now = kStart;

  dblp_tx_cfg tc{};
  tc.flow = kTxFlow;
  tc.incarnation = 1;
  tc.room = kRoom;
  tc.dead_ns = DBLP_DEAD_NS;
  tc.cc = &dblp_cc_fixed;
  tc.log = world.log;
  tc.log_size = DBLP_SENTLOG_MIN;
  tc.reject = on_tx_reject;
  dblp_tx_init(&world.tx, &tc, kStart);
  dblp_cc_set_fixed_rate(&world.tx.cc, 1ULL << 40);

  dblp_rx_cfg rc{};
  rc.flow = kRxFlow;
  rc.peer_flow = kTxFlow;
  rc.incarnation = 2;
  rc.dead_ns = DBLP_DEAD_NS;
  rc.limit = DBLP_MSG_LEN_MAX;
  rc.room = kRoom;
  rc.first_kib = 64;
  rc.rtt_ns = 100'000;
  rc.ops = &kOps;
  dblp_rx_init(&world.rx, &rc, kStart);

  dblp_txmsg& m = world.tm;
  m.len = config.segments * kSegSize;
  m.seg_size = kSegSize;
  m.mode = config.mode;
  m.ordered = config.ordered;
  // The least tolerance that gives A.
  m.ppm = (config.allow * 1'000'000 + config.segments - 1) / config.segments;
  m.deadline_us = config.deadline ? 50'000 : 0;
  m.max_rounds = config.round_cap ? 1 : 0;
  m.tag = kTag;
  if (config.protect) {
    m.nprot = 1;
    m.prot[0] = {1, 1};
  }
  m.seg = world.seg;
  m.map.leaf[0] = &world.tx_leaf;
  if (dblp_tx_submit(&world.tx, &m, kStart)) violate("submit failed");
  // The handshake has no part in this: the flow is open.
  world.tx.state = DBLP_TX_OPEN;
  world.tx.peer_flow = kRxFlow;
  world.tx.peer_incarnation = 2;
  world.tx.first_flight = 64 << 10;
  poll_tx();
}

std::vector<Action> possible(const Bounds& b) {
  std::vector<Action> out;
  const World& w = world;

  // Nothing new can happen when the sender knows and the receiver keeps nothing open.
  for (uint32_t i = 0; i < w.packets; i++) {
    if (w.completed && w.net[i].rev) continue;
    out.push_back({Step::deliver, static_cast<uint8_t>(i)});
    if (w.duplicated < b.duplicates) out.push_back({Step::duplicate, static_cast<uint8_t>(i)});
  }
  if (w.packets < b.packets && w.tx_fired < b.tx_timers && tx_timer() != DBLP_NEVER) {
    out.push_back({Step::tx_timer, 0});
    if (w.tm.deadline_at != DBLP_NEVER && w.tm.deadline_at > tx_timer())
      out.push_back({Step::deadline, 0});
  }
  if (w.rx_fired < b.rx_timers && rx_timer() != DBLP_NEVER) {
    out.push_back({Step::rx_timer, 0});
    if (w.open && !w.judged && w.rm.hold_at != DBLP_NEVER && w.rm.hold_at > rx_timer())
      out.push_back({Step::hold, 0});
  }
  return out;
}

void act(const Action& a) {
  switch (a.step) {
    case Step::deliver:
    case Step::duplicate: {
      const Packet p = world.net[a.packet];
      if (a.step == Step::deliver)
        remove_packet(a.packet);
      else
        world.duplicated++;
      arrive(p);
      break;
    }
    case Step::tx_timer:
      world.tx_fired++;
      fire_tx(tx_timer());
      break;
    case Step::rx_timer:
      world.rx_fired++;
      fire_rx(rx_timer());
      break;
    case Step::deadline:
      world.tx_fired++;
      fire_tx(world.tm.deadline_at);
      break;
    case Step::hold:
      world.rx_fired++;
      fire_rx(world.rm.hold_at);
      break;
  }
}

bool run_to_the_end(bool drop) {
  world.acks = true;
  if (drop) world.packets = 0;
  for (uint32_t i = 0; i < kStepsToTheEnd && !world.violated; i++) {
    if (world.packets) {
      const Packet p = world.net[0];
      remove_packet(0);
      arrive(p);
      continue;
    }
    const uint64_t tx_at = tx_timer(), rx_at = rx_timer();
    if (world.completed) return true;
    if (tx_at == DBLP_NEVER && rx_at == DBLP_NEVER) break;
    // The nearer one, each by its own clock.
    const uint64_t tx_in = tx_at == DBLP_NEVER ? DBLP_NEVER : tx_at - std::min(tx_at, world.tx_now);
    const uint64_t rx_in = rx_at == DBLP_NEVER ? DBLP_NEVER : rx_at - std::min(rx_at, world.rx_now);
    const uint64_t in = std::min(tx_in, rx_in);
    world.tx_now += in;
    world.rx_now += in;
    if (tx_in <= rx_in)
      fire_tx(tx_at);
    else
      fire_rx(rx_at);
  }
  if (!world.violated && !world.completed) violate("a fair continuation does not end");
  return !world.violated;
}

uint64_t fingerprint() {
  const World& w = world;
  const Numbers number;
  Hash h;

  const dblp_txmsg& m = w.tm;
  h.add(static_cast<uint64_t>(m.state) << 32 | m.pass);
  h.add(static_cast<uint64_t>(m.rounds) << 32 | m.cursor);
  h.add(static_cast<uint64_t>(m.prot_sent) << 32 | m.perm_pos);
  h.add(static_cast<uint64_t>(m.lost_cursor) << 32 | m.queued_cursor);
  h.add(static_cast<uint64_t>(m.admitted) | m.desc_acked << 1 | m.desc_sent << 2 | m.mark_due << 3 |
        m.close_due << 4 | (list_empty(&m.wait) ? 0 : 1) << 5 |
        (list_empty(&m.rnode) ? 0 : 1) << 6);
  h.add(m.want);
  h.add(w.completed ? 0 : m.digest);
  h.add(w.tx_leaf);
  h.add(m.deadline_at == DBLP_NEVER);
  for (uint32_t i = 0; i < w.config.segments; i++)
    h.add(number(Numbers::segment(i)) << 16 | w.seg[i].state << 8 | w.seg[i].queued);
  if (!w.completed) {
    if (w.acks) {
      h.add(w.tx.log.next);
      h.add(w.tx.log.largest);
      for (uint64_t pn = w.tx.log.una; pn < w.tx.log.next; pn++)
        h.add(w.log[pn % DBLP_SENTLOG_MIN].flags);
      h.add(w.tx.probe.at == DBLP_NEVER);
      h.add(w.tx.ping_due);
    }
  }

  h.add(w.rx.low);
  h.add(number(static_cast<uint32_t>(dblp_ackset_largest(&w.rx.acks))));
  if (w.acks) {
    for (uint32_t i = 0; i < w.rx.acks.n; i++) {
      h.add(w.rx.acks.r[i].first);
      h.add(w.rx.acks.r[i].last);
    }
    h.add(w.rx.acks.unacked);
    h.add(timer_class(w.rx.acks.ack_at, w.rx_now));
  }
  h.add(w.rx.finished[0]);
  h.add(w.rx.clean[0]);
  h.add(w.open);
  if (w.open) {
    const dblp_rxmsg& r = w.rm;
    h.add(static_cast<uint64_t>(r.state) << 32 | r.pass);
    h.add(static_cast<uint64_t>(r.has_desc) | r.close << 1 | r.answer_due << 2 | r.grant_due << 3 |
          r.answered << 4);
    h.add(timer_class(r.reo_at, w.rx_now));
    h.add(timer_class(r.hold_at, w.rx_now));
    h.add(w.rx_leaf);
    h.add(r.parts_due);
  }
  h.add(static_cast<uint64_t>(w.tx_fired) << 32 | w.rx_fired << 8 | w.duplicated);
  h.add(static_cast<uint64_t>(w.judged) | w.completed << 1 | w.verdict << 2 | w.outcome << 4);
  h.add(static_cast<uint64_t>(w.sent) << 32 | w.kept);

  uint64_t net = w.packets;
  for (uint32_t i = 0; i < w.packets; i++) net += fingerprint_packet(w.net[i], number);  // no order
  h.add(net);
  return h.value();
}

std::string describe(const Action& a) {
  static const char* const names[] = {"arrives",          "arrives and stays", "sender's timer",
                                      "receiver's timer", "deadline",          "hold timer"};
  return names[static_cast<int>(a.step)];
}

}  // namespace dblp::model

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "scenario.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <set>
#include <utility>

#include "rng.h"

namespace dblp::sim {
namespace {

constexpr uint64_t kUs = 1'000, kMs = 1'000'000, kSec = 1'000'000'000;

LinkSpec make_link(Rng& rng, bool clean, bool jitter, bool deliver_corrupt) {
  LinkSpec l;
  l.delay = rng.log_range(10 * kUs, 20 * kMs);
  if (clean) {
    // No queue either: it would delay ACKs beyond any probe timer.
    if (jitter) l.jitter = l.delay / 8;
    return l;
  }
  if (rng.chance(300000)) l.rate = rng.log_range(1'000'000, 1'000'000'000);
  if (rng.chance(600000)) l.jitter = rng.log_range(1 * kUs, 10 * kMs);
  if (rng.chance(700000)) l.loss = static_cast<uint32_t>(rng.log_range(1000, 500000));
  if (rng.chance(250000)) {
    l.burst_enter = static_cast<uint32_t>(rng.log_range(1000, 100000));
    l.burst_leave = static_cast<uint32_t>(rng.log_range(20000, 500000));
    l.burst_loss = static_cast<uint32_t>(rng.range(300000, 1000000));
  }
  if (rng.chance(500000)) l.dup = static_cast<uint32_t>(rng.log_range(1000, 300000));
  if (rng.chance(500000)) {
    l.reorder = static_cast<uint32_t>(rng.log_range(1000, 500000));
    l.reorder_by = rng.log_range(10 * kUs, 100 * kMs);
  }
  if (deliver_corrupt || rng.chance(200000))
    l.corrupt = static_cast<uint32_t>(rng.log_range(1000, 300000));
  if (rng.chance(300000)) l.ce = static_cast<uint32_t>(rng.log_range(1000, 300000));
  if (rng.chance(150000)) l.misdirect = static_cast<uint32_t>(rng.log_range(1000, 50000));
  if (rng.chance(300000)) l.replay = static_cast<uint32_t>(rng.log_range(1000, 200000));
  return l;
}

uint32_t make_ppm(Rng& rng) {
  switch (rng.below(8)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return 1000000;
    case 3:
      return static_cast<uint32_t>(rng.below(1000001));
    default:
      return static_cast<uint32_t>(rng.log_range(1000, 500000));
  }
}

// Sizes near multiples of a segment are the interesting ones.
uint32_t make_len(Rng& rng, uint32_t seg_size, uint32_t segs_max) {
  const uint64_t top = static_cast<uint64_t>(seg_size) * segs_max;
  uint64_t len;
  switch (rng.below(4)) {
    case 0:
      len = rng.log_range(1, seg_size);
      break;
    case 1:
      len = seg_size * rng.range(1, std::max(1U, segs_max / 2)) + rng.below(9) - 4;
      break;
    default:
      len = rng.log_range(1, top);
  }
  return static_cast<uint32_t>(std::clamp<uint64_t>(len, 1, top));
}

void make_messages(Rng& rng, Scenario& s) {
  const bool many = rng.chance(60000);
  const bool large = !many && rng.chance(80000);
  const uint32_t count = static_cast<uint32_t>(many ? rng.range(20, 150) : rng.log_range(1, 8));
  const uint32_t segs_max = many ? 4 : large ? 400 : 40;
  const uint64_t span = rng.log_range(10 * kUs, 2 * kSec);
  const bool both_ways = rng.chance(500000);
  const bool deadlines = rng.chance(500000), caps = rng.chance(400000);
  const bool groups = rng.chance(400000), protect = rng.chance(400000);
  const uint32_t group_count = rng.chance(100000) ? 12 : 2;
  const uint32_t shared_ppm = make_ppm(rng);
  const bool small_segs = rng.chance(600000);
  const uint32_t n = static_cast<uint32_t>(s.endpoints.size());
  uint64_t segs_left = 700;

  for (uint32_t i = 0; i < count && segs_left; i++) {
    MsgSpec m;
    m.from = static_cast<uint32_t>(both_ways ? rng.below(n) : n == 2 ? 0 : rng.range(1, n - 1));
    m.to = m.from == 0 ? static_cast<uint32_t>(rng.range(1, n - 1)) : 0;
    m.at = rng.chance(300000) ? 0 : rng.below(span);
    const uint16_t largest = dblp_seg_size_for(s.endpoints[m.from].room);
    m.seg_size = small_segs ? static_cast<uint16_t>(rng.range(DBLP_SEG_MIN / 4, 160) * 4) : largest;
    m.len =
        make_len(rng, m.seg_size, static_cast<uint32_t>(std::min<uint64_t>(segs_max, segs_left)));
    segs_left -= std::min<uint64_t>(segs_left, m.len / m.seg_size + 1);
    m.ppm = rng.chance(500000) ? shared_ppm : make_ppm(rng);
    m.mode = static_cast<uint8_t>(rng.below(2));
    m.ordered = rng.chance(300000);
    if (deadlines && rng.chance(500000))
      m.deadline_us = static_cast<uint32_t>(rng.log_range(20, 2'000'000));
    if (caps && rng.chance(500000)) m.max_rounds = static_cast<uint16_t>(rng.log_range(1, 12));
    if (groups && rng.chance(700000)) {
      m.group = static_cast<uint32_t>(rng.range(1, group_count));
      if (rng.chance(800000)) m.ppm = shared_ppm;
    }
    if (protect && rng.chance(500000)) {
      const uint64_t ranges = rng.log_range(1, 40);
      for (uint64_t k = 0; k < ranges; k++) {
        const uint32_t off = static_cast<uint32_t>(rng.below(m.len));
        const uint64_t most = std::min<uint64_t>(m.len - off, rng.chance(200000) ? m.len : 1000);
        m.protect.emplace_back(off, static_cast<uint32_t>(rng.log_range(1, most)));
      }
    }
    s.messages.push_back(m);
  }
  std::stable_sort(s.messages.begin(), s.messages.end(),
                   [](const MsgSpec& a, const MsgSpec& b) { return a.at < b.at; });
}

// Its map has several parts.
void make_huge_message(Rng& rng, Scenario& s) {
  MsgSpec m;
  m.to = 1;
  m.len = static_cast<uint32_t>(rng.range(DBLP_PART_SEGS, 3 * DBLP_PART_SEGS) * DBLP_SEG_MIN);
  m.ppm = make_ppm(rng);
  m.mode = static_cast<uint8_t>(rng.below(2));
  m.ordered = rng.chance(300000);
  s.messages.push_back(m);
}

// More ids than the window holds.
void make_swarm(Rng& rng, Scenario& s) {
  const uint64_t count = rng.range(DBLP_ID_WINDOW + 1, DBLP_ID_WINDOW + 400);
  const uint32_t ppm = make_ppm(rng);
  const uint64_t span = rng.log_range(1, 100 * kMs);
  for (uint64_t i = 0; i < count; i++) {
    MsgSpec m;
    m.to = 1;
    m.at = span * i / count;
    m.len = static_cast<uint32_t>(rng.log_range(1, 2 * DBLP_SEG_MIN));
    m.ppm = ppm;
    m.mode = static_cast<uint8_t>(rng.below(2));
    s.messages.push_back(m);
  }
}

// Reordering within the window that the receiver waits, once all flows are open: what
// overtakes ECHO is lost.
void start_jitter_later(Scenario& s) {
  std::set<std::pair<uint32_t, uint32_t>> open;
  s.jitter_from = 200 * kMs;
  for (MsgSpec& m : s.messages)
    m.at = open.insert({m.from, m.to}).second ? 0 : m.at + s.jitter_from;
  std::stable_sort(s.messages.begin(), s.messages.end(),
                   [](const MsgSpec& a, const MsgSpec& b) { return a.at < b.at; });
}

void make_faults(Rng& rng, Scenario& s) {
  const uint64_t n = s.endpoints.size();
  const uint64_t span = s.hostile_until;
  auto add = [&](Fault kind, uint32_t ppm, uint64_t length_max) {
    if (!rng.chance(ppm)) return;
    const uint64_t times = rng.log_range(1, 3);
    for (uint64_t i = 0; i < times; i++) {
      FaultSpec f{kind, static_cast<uint32_t>(rng.below(n)), 0, rng.log_range(1, span),
                  rng.log_range(1, length_max)};
      f.peer = f.ep ? 0 : static_cast<uint32_t>(rng.range(1, n - 1));
      s.faults.push_back(f);
    }
  };

  add(Fault::blackhole, 200000, rng.chance(200000) ? 15 * kSec : 500 * kMs);
  add(Fault::pause, 150000, rng.chance(200000) ? 15 * kSec : 500 * kMs);
  add(Fault::restart, 150000, 1);
  add(Fault::close, 80000, 3 * kSec);
  add(Fault::shutdown, 80000, 1);
  add(Fault::icmp, 50000, 1);
  if (rng.chance(250000)) {
    // Also long after everything is over: flows live for 60 s after their last packet.
    const uint64_t times = rng.log_range(1, 4);
    for (uint64_t i = 0; i < times; i++)
      s.faults.push_back({Fault::replay, 0, 0, rng.log_range(1 * kMs, 100 * kSec), 1});
  }
}

}  // namespace

Scenario make_scenario(uint64_t seed) {
  Scenario s;
  Rng rng(seed);

  s.seed = seed;
  s.clean = rng.chance(100000);
  s.deliver_corrupt = !s.clean && rng.chance(50000);
  const bool tight = !s.clean && rng.chance(250000);
  const uint64_t n = rng.chance(tight ? 700000 : 150000) ? rng.range(3, 5) : 2;
  const bool short_dead = !s.clean && rng.chance(100000);
  s.hostile_until = s.clean ? 1 : rng.log_range(1 * kMs, 4 * kSec);

  for (uint64_t i = 0; i < n; i++) {
    EndpointSpec e;
    e.room = static_cast<uint32_t>(rng.chance(50000)    ? rng.range(1473, 8996)
                                   : rng.chance(500000) ? DBLP_ROOM_MIN
                                                        : rng.range(DBLP_ROOM_MIN, 1472));
    if (tight) {
      e.budget = rng.log_range(4096, 1 << 18);
      if (rng.chance(500000)) e.limit = rng.log_range(1, e.budget);
    } else if (rng.chance(50000)) {
      e.limit = rng.log_range(512, 1 << 16);
    }
    e.partial = rng.chance(500000);
    e.coalesce = rng.chance(300000);
    e.fixed_rate = rng.chance(200000);
    e.read_delay = rng.chance(500000) ? 0 : rng.log_range(1 * kUs, 500 * kMs);
    if (short_dead) e.dead = rng.log_range(100 * kMs, 5 * kSec);
    s.endpoints.push_back(e);
  }
  const bool jitter = rng.chance(300000);
  for (LinkSpec& l : s.link) l = make_link(rng, s.clean, jitter, s.deliver_corrupt);
  if (rng.chance(500))
    make_huge_message(rng, s);
  else if (rng.chance(1000))
    make_swarm(rng, s);
  else
    make_messages(rng, s);
  if (s.clean && jitter) start_jitter_later(s);
  if (!s.clean) make_faults(rng, s);
  if (!s.clean && rng.chance(100000))
    s.no_memory = static_cast<uint32_t>(rng.log_range(1000, 300000));
  return s;
}

namespace {

void append(std::string& out, const char* format, ...) __attribute__((format(printf, 2, 3)));

void append(std::string& out, const char* format, ...) {
  char line[256];
  va_list args;

  va_start(args, format);
  vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  out += line;
}

const char* fault_name(Fault f) {
  static const char* const names[] = {"blackhole", "restart", "close", "pause",
                                      "shutdown",  "icmp",    "replay"};
  return names[static_cast<int>(f)];
}

}  // namespace

std::string Scenario::describe() const {
  std::string out;

  append(out, "seed %" PRIu64 "%s%s, hostile until %.6f s\n", seed, clean ? ", clean" : "",
         deliver_corrupt ? ", corruption delivered" : "", static_cast<double>(hostile_until) / 1e9);
  for (size_t i = 0; i < endpoints.size(); i++) {
    const EndpointSpec& e = endpoints[i];
    append(out,
           "endpoint %zu: room %u, budget %" PRIu64 ", limit %" PRIu64
           ", read after <= %.6f s, dead %.3f s%s%s%s\n",
           i, e.room, e.budget, e.limit, static_cast<double>(e.read_delay) / 1e9,
           static_cast<double>(e.dead) / 1e9, e.partial ? ", partial" : "",
           e.coalesce ? ", coalesce" : "", e.fixed_rate ? ", fixed rate" : "");
  }
  for (const LinkSpec& l : link)
    append(out,
           "link: delay %.6f +%.6f s, %" PRIu64
           " B/s, ppm: loss %u, burst %u/%u/%u, dup %u, reorder %u by %.6f s, corrupt %u, ce %u, "
           "misdirect %u, replay %u\n",
           static_cast<double>(l.delay) / 1e9, static_cast<double>(l.jitter) / 1e9, l.rate, l.loss,
           l.burst_enter, l.burst_leave, l.burst_loss, l.dup, l.reorder,
           static_cast<double>(l.reorder_by) / 1e9, l.corrupt, l.ce, l.misdirect, l.replay);
  for (const FaultSpec& f : faults)
    append(out, "fault: %s of %u (peer %u) at %.6f for %.6f s\n", fault_name(f.kind), f.ep, f.peer,
           static_cast<double>(f.at) / 1e9, static_cast<double>(f.length) / 1e9);
  for (size_t i = 0; i < messages.size(); i++) {
    const MsgSpec& m = messages[i];
    append(
        out, "message: %u to %u at %.6f, %u bytes in %u, %u ppm, %s%s, deadline %u us, rounds %u",
        m.from, m.to, static_cast<double>(m.at) / 1e9, m.len, m.seg_size, m.ppm,
        m.mode ? "eager" : "pressure", m.ordered ? ", ordered" : "", m.deadline_us, m.max_rounds);
    append(out, ", group %u", m.group);
    for (auto [off, len] : m.protect) append(out, ", protect %u+%u", off, len);
    out += '\n';
  }
  return out;
}

}  // namespace dblp::sim

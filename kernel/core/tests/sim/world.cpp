// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "world.h"

#include <algorithm>
#include <cstdarg>
#include <cstring>

#include "trace.h"

namespace dblp::sim {
namespace {

constexpr uint64_t kUs = 1'000, kMs = 1'000'000, kSec = 1'000'000'000;
constexpr size_t kHistory = 96;
constexpr uint64_t kStorm = 48;  // datagrams of a replay fault
constexpr uint64_t kHousekeeping = 5 * kSec;
// After the last hostile event: death by silence, a chain of waits for room, reading.
constexpr uint64_t kPatience = 90 * kSec;
constexpr uint64_t kAfter = 200 * kSec;  // then all flows are gone

}  // namespace

World::World(const Scenario& scenario, FILE* trace)
    : s_(scenario),
      trace_(trace),
      rng_(scenario.seed ^ 0x5eed),
      ledger_(!scenario.deliver_corrupt) {
  links_.resize(s_.endpoints.size() * s_.endpoints.size());
  for (uint32_t i = 0; i < s_.endpoints.size(); i++)
    endpoints_.push_back(std::make_unique<Endpoint>(*this, i, s_.endpoints[i]));
}

World::~World() { endpoints_.clear(); }

void World::push(uint64_t at, What what, uint32_t a, uint32_t b) {
  events_.push({at, order_++, what, a, b});
}

void World::wake(uint32_t ep, uint64_t at) {
  if (at != UINT64_MAX) push(at, What::wake, ep, 0);
}

Fate World::fate(uint64_t flow) const {
  auto it = fates_.find(flow);
  return it == fates_.end() ? Fate::never : it->second;
}

void World::trace(const char* format, ...) {
  va_list args;

  if (!trace_) return;
  fprintf(trace_, "%12.6f ", static_cast<double>(now_) / 1e9);
  va_start(args, format);
  vfprintf(trace_, format, args);
  va_end(args);
  fputc('\n', trace_);
}

void World::trace_packet(const char* what, uint32_t from, uint32_t to, const uint8_t* p,
                         uint32_t len) {
  if (!trace_) return;
  trace("%u > %u %s %s", from, to, what, describe_datagram(p, len).c_str());
}

// ---- the pipe --------------------------------------------------------------------------

uint32_t World::take_slot() {
  if (free_slots_.empty()) {
    slots_.emplace_back();
    return static_cast<uint32_t>(slots_.size() - 1);
  }
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void World::deliver_at(uint64_t at, uint32_t from, uint32_t to, uint8_t ecn,
                       std::span<const uint8_t> bytes) {
  const uint32_t slot = take_slot();
  Datagram& d = slots_[slot];
  d.from = from;
  d.to = to;
  d.ecn = ecn;
  d.bytes.assign(bytes.begin(), bytes.end());
  push(at, What::datagram, slot, 0);
}

// Keeps a sample of all that was ever sent.
void World::remember(uint32_t from, uint32_t to, std::span<const uint8_t> bytes) {
  remembered_++;
  size_t at = history_.size();
  if (at < kHistory) {
    history_.emplace_back();
  } else {
    at = rng_.below(remembered_);
    if (at >= kHistory) return;
  }
  Datagram& d = history_[at];
  d.from = from;
  d.to = to;
  d.bytes.assign(bytes.begin(), bytes.end());
}

void World::replay(uint64_t at) {
  if (history_.empty()) return;
  const Datagram& d = history_[rng_.below(history_.size())];
  deliver_at(at, d.from, d.to, DBLP_ECN_NOT, d.bytes);
}

void World::send(uint32_t from, uint32_t to, std::span<const uint8_t> datagram) {
  Link& l = link(from, to);
  const LinkSpec& s = spec(from, to);
  uint8_t ecn = DBLP_ECN_ECT0;

  stats_.packets++;
  stats_.bytes += datagram.size();
  const uint64_t allowed = packets_allowed();
  stats_.crowded =
      std::max(stats_.crowded, static_cast<double>(stats_.packets) / static_cast<double>(allowed));
  if (stats_.packets > allowed) ledger_.fail(Invariant::livelock, "too many packets for the work");
  uint64_t at = now_;
  if (s.rate) {
    l.free_at = std::max(l.free_at, now_) + datagram.size() * kSec / s.rate;
    at = l.free_at;
  }
  at += s.delay;
  if (!hostile()) {
    if (s.jitter && s_.clean && now_ >= s_.jitter_from) at += rng_.below(s.jitter);
    trace_packet("sent", from, to, datagram.data(), static_cast<uint32_t>(datagram.size()));
    deliver_at(at, from, to, ecn, datagram);
    if (!s_.clean) remember(from, to, datagram);
    return;
  }
  remember(from, to, datagram);
  if (s.replay && rng_.chance(s.replay)) replay(now_ + rng_.log_range(1 * kUs, 20 * kSec));

  if (s.burst_enter && rng_.chance(l.burst ? s.burst_leave : s.burst_enter)) l.burst = !l.burst;
  if (rng_.chance(s.loss) || (l.burst && rng_.chance(s.burst_loss)) || now_ < l.black_until) {
    trace_packet("lost", from, to, datagram.data(), static_cast<uint32_t>(datagram.size()));
    return;
  }
  if (s.jitter) at += rng_.below(s.jitter);
  if (rng_.chance(s.reorder)) at += rng_.below(s.reorder_by);
  if (rng_.chance(s.ce)) ecn = DBLP_ECN_CE;
  if (rng_.chance(s.misdirect) && s_.endpoints.size() > 2) {
    uint32_t other = static_cast<uint32_t>(rng_.below(s_.endpoints.size()));
    if (other != from) deliver_at(at, other, to, ecn, datagram);
  }
  const bool corrupt = rng_.chance(s.corrupt);
  trace_packet(corrupt ? "corrupt" : "sent", from, to, datagram.data(),
               static_cast<uint32_t>(datagram.size()));
  if (rng_.chance(s.dup)) deliver_at(at + rng_.below(s.delay * 4), from, to, ecn, datagram);
  if (!corrupt) {
    deliver_at(at, from, to, ecn, datagram);
  } else if (s_.deliver_corrupt) {
    std::vector<uint8_t> bytes(datagram.begin(), datagram.end());
    const uint64_t flips = rng_.log_range(1, 8);
    // Mostly in what is parsed, not in payload.
    const uint64_t span = rng_.chance(700000) ? std::min<uint64_t>(bytes.size(), 80) : bytes.size();
    for (uint64_t i = 0; i < flips; i++)
      bytes[rng_.below(span)] ^= static_cast<uint8_t>(1 << rng_.below(8));
    deliver_at(at, from, to, ecn, bytes);
  }  // else the checksum saw it
}

void World::arrive(uint32_t slot) {
  const Datagram d = std::move(slots_[slot]);
  Endpoint& ep = *endpoints_[d.to];

  free_slots_.push_back(slot);
  if (now_ < ep.paused_until) {
    deliver_at(ep.paused_until, d.from, d.to, d.ecn, d.bytes);
    return;
  }
  if (!ep.up()) return;
  trace_packet("arrives", d.from, d.to, d.bytes.data(), static_cast<uint32_t>(d.bytes.size()));
  ep.deliver(d.from, d.ecn, d.bytes);
}

// ---- events ----------------------------------------------------------------------------

void World::fault(const FaultSpec& f) {
  Endpoint& ep = *endpoints_[f.ep];

  switch (f.kind) {
    case Fault::blackhole:
      link(f.ep, f.peer).black_until = now_ + f.length;
      trace("nothing passes from %u to %u for %.6f s", f.ep, f.peer,
            static_cast<double>(f.length) / 1e9);
      break;
    case Fault::restart:
      if (ep.up()) ep.restart();
      break;
    case Fault::close:
      if (!ep.up()) break;
      ep.close();
      push(now_ + f.length, What::fault_end, static_cast<uint32_t>(&f - s_.faults.data()), 0);
      break;
    case Fault::pause:
      ep.paused_until = std::max(ep.paused_until, now_ + f.length);
      trace("ep%u pauses for %.6f s", f.ep, static_cast<double>(f.length) / 1e9);
      break;
    case Fault::shutdown:
      if (ep.up() && now_ >= ep.paused_until) ep.shutdown();
      break;
    case Fault::icmp:
      if (ep.up() && now_ >= ep.paused_until) ep.icmp(f.peer);
      break;
    case Fault::replay:
      trace("replay");
      for (uint64_t i = 0; i < kStorm; i++) replay(now_ + rng_.below(kMs));
      break;
  }
}

void World::fault_end(const FaultSpec& f) {
  if (f.kind == Fault::close && !endpoints_[f.ep]->up()) endpoints_[f.ep]->restart();
}

void World::handle(const Event& e) {
  switch (e.what) {
    case What::datagram:
      arrive(e.a);
      break;
    case What::wake: {
      Endpoint& ep = *endpoints_[e.a];
      if (now_ < ep.paused_until)
        push(ep.paused_until, What::wake, e.a, 0);
      else if (ep.up())
        ep.timer();
      break;
    }
    case What::submit: {
      const MsgSpec& m = s_.messages[e.a];
      Endpoint& ep = *endpoints_[m.from];
      if (!ep.up() || now_ < ep.paused_until)
        push(std::max(now_ + 10 * kMs, ep.paused_until), What::submit, e.a, 0);
      else
        ep.submit(m);
      break;
    }
    case What::fault:
      fault(s_.faults[e.a]);
      break;
    case What::fault_end:
      fault_end(s_.faults[e.a]);
      break;
    case What::housekeeping:
      if (!housekeeping()) push(now_ + kHousekeeping, What::housekeeping, 0, 0);
      break;
  }
}

// True: nothing is left anywhere.
bool World::housekeeping() {
  bool empty = true;

  for (auto& ep : endpoints_) empty &= ep->empty();
  if (!empty && now_ > quiet_at_ + kPatience + kAfter)
    ledger_.fail(Invariant::memory, "flows or messages are left at the end");
  else if (now_ > quiet_at_ + kPatience)
    ledger_.finish(s_.clean);
  return empty && now_ > quiet_at_;
}

// Handshake, marks, probes and acknowledgements of each message, repairs at 95 % loss, and
// a second's worth of probing under the back-off for all the time that may pass.
uint64_t World::packets_allowed() const {
  return 3000 + 400 * stats_.messages + 40 * stats_.segments +
         20 * (now_ / kSec) * (1 + stats_.messages);
}

bool World::run() {
  quiet_at_ = s_.hostile_until;
  for (uint32_t i = 0; i < s_.messages.size(); i++) {
    push(s_.messages[i].at, What::submit, i, 0);
    quiet_at_ = std::max(quiet_at_, s_.messages[i].at);
  }
  uint64_t reads = 0;
  for (const EndpointSpec& e : s_.endpoints) reads = std::max(reads, e.read_delay);
  for (uint32_t i = 0; i < s_.faults.size(); i++) {
    push(s_.faults[i].at, What::fault, i, 0);
    quiet_at_ = std::max(quiet_at_, s_.faults[i].at + s_.faults[i].length);
  }
  quiet_at_ += reads * s_.messages.size();
  push(kHousekeeping, What::housekeeping, 0, 0);

  uint64_t same_time = 0;
  while (!events_.empty() && !ledger_.failed()) {
    const Event e = events_.top();
    events_.pop();
    same_time = e.at == now_ ? same_time + 1 : 0;
    if (same_time > 20'000) ledger_.fail(Invariant::livelock, "virtual time stands still");
    now_ = e.at;
    stats_.events++;
    handle(e);
  }
  if (!ledger_.failed()) ledger_.finish(s_.clean);
  for (auto& ep : endpoints_) {
    if (ledger_.failed()) break;
    if (!ep->empty()) ledger_.fail(Invariant::memory, "a flow or message is left");
    ep->check_released();
  }
  return !ledger_.failed();
}

}  // namespace dblp::sim

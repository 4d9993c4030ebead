// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "path_sim.h"

#include <algorithm>

namespace dblp::test {

struct PathSim::Flow {
  uint32_t index;
  bool active = true;
  bool idle = false;
  uint64_t idle_since = 0;
  std::vector<dblp_sent> memory = std::vector<dblp_sent>(DBLP_SENTLOG_MAX);
  dblp_sentlog log;
  dblp_rtt rtt;
  dblp_cc cc;
  dblp_pace pace = {};
  dblp_probe probe;
  uint64_t armed = DBLP_NEVER;
  // The receiver.
  dblp_ackset set;
  uint64_t ack_armed = DBLP_NEVER, last_ack_arrives = 0;
  Counts counts;
};

namespace {

const dblp_sent_events kEvents = {
    .acked = [](void*, u64, const dblp_sent*) {},
    .lost = [](void*, u64, const dblp_sent*) {},
};

}  // namespace

PathSim::PathSim(const PathSpec& spec, uint32_t flows, uint64_t seed, const dblp_cc_ops* cc)
    : spec_(spec), random_(seed) {
  for (uint32_t i = 0; i < flows; i++) {
    auto f = std::make_unique<Flow>();
    f->index = i;
    dblp_sentlog_init(&f->log, f->memory.data(), static_cast<u32>(f->memory.size()));
    dblp_rtt_init(&f->rtt);
    dblp_probe_init(&f->probe);
    // Flows do not begin at the same nanosecond.
    const uint64_t start = i ? pick(random_, 0, 5 * spec.rtprop) : 0;
    dblp_cc_init(&f->cc, cc, kPacket, start);
    dblp_ackset_init(&f->set);
    f->armed = start;
    post({.at = start, .what = What::kFlow, .flow = i});
    flows_.push_back(std::move(f));
  }
}

PathSim::~PathSim() = default;

void PathSim::post(Event e) {
  e.order = order_++;
  events_.push(std::move(e));
}

// Puts off what finds its host stalled.
bool PathSim::stalled(Event& e) {
  if (!spec_.stall_every || e.what == What::kServed) return false;
  Stall& s = e.at_sender() ? sender_ : receiver_;
  while (e.at >= s.end) {
    s.begin = s.end + pick(random_, 0, 2 * spec_.stall_every);
    s.end = s.begin + pick(random_, spec_.stall_min, spec_.stall_max);
  }
  if (e.at < s.begin) return false;
  Flow& f = *flows_[e.flow];
  if (e.what == What::kFlow) f.armed = s.end;
  if (e.what == What::kAckTimer) f.ack_armed = s.end;
  e.at = s.end;
  post(std::move(e));
  return true;
}

void PathSim::reset_queue_range() { queue_max_ = queue_min_ = queued_; }

void PathSim::run_until(uint64_t t) {
  while (!events_.empty() && events_.top().at <= t) {
    Event e = events_.top();
    events_.pop();
    now_ = e.at;
    Flow& f = *flows_[e.flow];
    if ((e.what == What::kFlow && f.armed != e.at) ||
        (e.what == What::kAckTimer && f.ack_armed != e.at) || stalled(e))
      continue;
    switch (e.what) {
      case What::kFlow:
        f.armed = DBLP_NEVER;
        flow_due(f);
        break;
      case What::kServed:
        serve();
        break;
      case What::kArrive:
        f.counts.delivered++;
        f.counts.bytes += e.size;
        dblp_ackset_add(&f.set, e.pn, e.ce ? DBLP_ECN_CE : DBLP_ECN_ECT0, true, now_, spec_.rtprop);
        ack_due(f);
        break;
      case What::kAckTimer:
        f.ack_armed = DBLP_NEVER;
        ack_due(f);
        break;
      case What::kAck: {
        dblp_rate_sample rs;
        if (!dblp_sentlog_ack(&f.log, e.ack.get(), &f.rtt, &kEvents, nullptr, &rs, now_)) {
          if (rs.acked) dblp_probe_heard(&f.probe, &f.rtt, f.log.inflight, now_);
          f.cc.ops->on_ack(&f.cc, &rs, &f.rtt, f.log.delivered, now_);
          f.counts.spurious = f.log.spurious;
        }
        flow_due(f);
        break;
      }
    }
  }
  now_ = std::max(now_, t);
}

void PathSim::transmit(Flow& f, uint32_t size) {
  dblp_sentlog_push(&f.log, size, true, now_);
  f.counts.sent++;
  dblp_probe_sent(&f.probe, &f.rtt, now_);
  if (queued_ + size > spec_.queue && serving_) {
    f.counts.queue_drops++;
    return;
  }
  const bool ce = spec_.ce_above && queued_ > spec_.ce_above;
  queue_.push_back({f.index, f.log.next - 1, size, ce});
  queued_ += size;
  queue_max_ = std::max(queue_max_, queued_);
  if (!serving_) {
    serving_ = true;
    post({.at = now_ + size * kSec / spec_.rate, .what = What::kServed, .flow = f.index});
  }
}

void PathSim::serve() {
  const Waiting w = queue_.front();
  queue_.pop_front();
  queued_ -= w.size;
  queue_min_ = std::min(queue_min_, queued_);
  if (std::uniform_real_distribution<>(0, 1)(random_) < spec_.loss) {
    flows_[w.flow]->counts.path_drops++;
  } else {
    post({.at = now_ + spec_.rtprop / 2,
          .what = What::kArrive,
          .flow = w.flow,
          .pn = w.pn,
          .size = w.size,
          .ce = w.ce});
  }
  serving_ = !queue_.empty();
  if (serving_)
    post({.at = now_ + queue_.front().size * kSec / spec_.rate, .what = What::kServed, .flow = 0});
}

void PathSim::ack_due(Flow& f) {
  if (f.set.ack_at > now_) {
    if (f.set.ack_at != DBLP_NEVER && f.set.ack_at != f.ack_armed) {
      f.ack_armed = f.set.ack_at;
      post({.at = f.ack_armed, .what = What::kAckTimer, .flow = f.index});
    }
    return;
  }
  auto ack = std::make_shared<dblp_f_ack>();
  dblp_ackset_fill(&f.set, ack.get(), now_);
  uint64_t at = now_ + spec_.rtprop / 2;
  if (spec_.jitter) at += pick(random_, 0, spec_.jitter);
  f.last_ack_arrives = std::max(f.last_ack_arrives, at);
  post({.at = f.last_ack_arrives, .what = What::kAck, .flow = f.index, .ack = std::move(ack)});
}

void PathSim::set_active(uint32_t flow, bool active) {
  flows_[flow]->active = active;
  flow_due(*flows_[flow]);
}

void PathSim::flow_due(Flow& f) {
  dblp_sentlog_detect(&f.log, &f.rtt, &kEvents, nullptr, now_);
  switch (dblp_probe_timeout(&f.probe, f.log.inflight, now_)) {
    case DBLP_PROBE_LOST:
      f.counts.persistent++;
      dblp_sentlog_lose_all(&f.log, &kEvents, nullptr);
      f.cc.ops->on_persistent_loss(&f.cc, now_);
      [[fallthrough]];
    case DBLP_PROBE_ASK:
      f.counts.probes++;
      transmit(f, 48);  // a PING
      break;
    default:
      break;
  }
  if (!f.active) {
    dblp_sentlog_app_limited(&f.log);
    if (!f.idle && !f.log.inflight) {
      f.idle = true;
      f.idle_since = now_;
    }
  } else if (f.idle) {
    f.idle = false;
    f.cc.ops->restart(&f.cc, now_ - f.idle_since, now_);
  }
  dblp_pace_begin(&f.pace, now_);
  while (f.active && dblp_sentlog_room(&f.log) &&
         f.log.inflight + kPacket <= std::max<uint64_t>(f.cc.inflight_cap, kPacket) &&
         dblp_pace_may_send(&f.pace, now_)) {
    transmit(f, kPacket);
    dblp_pace_sent(&f.pace, &f.cc, &f.rtt, kPacket, now_);
  }
  wake(f);
}

void PathSim::wake(Flow& f) {
  const uint64_t at = std::min({f.probe.at, dblp_sentlog_loss_timer(&f.log, &f.rtt),
                                dblp_pace_timer(&f.pace, &f.cc, &f.rtt)});
  if (at == f.armed) return;
  f.armed = at;
  if (at != DBLP_NEVER) post({.at = at, .what = What::kFlow, .flow = f.index});
}

PathSim::Counts PathSim::counts(uint32_t flow) const { return flows_[flow]->counts; }

PathSim::Counts PathSim::total() const {
  Counts t;
  for (const auto& f : flows_) {
    t.sent += f->counts.sent;
    t.delivered += f->counts.delivered;
    t.queue_drops += f->counts.queue_drops;
    t.path_drops += f->counts.path_drops;
    t.spurious += f->counts.spurious;
    t.persistent += f->counts.persistent;
    t.probes += f->counts.probes;
    t.bytes += f->counts.bytes;
  }
  return t;
}

const dblp_cc& PathSim::cc(uint32_t flow) const { return flows_[flow]->cc; }
const dblp_rtt& PathSim::rtt(uint32_t flow) const { return flows_[flow]->rtt; }
const dblp_sentlog& PathSim::log(uint32_t flow) const { return flows_[flow]->log; }

}  // namespace dblp::test

// SPDX-License-Identifier: GPL-2.0

#include "rank.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "failure.hpp"

namespace perf {
namespace {

// A peer that ended says why on the control connection, or that one ends, too.
constexpr std::int64_t kExplanationTime = kSecond;

// Only who sends needs a table as long as its messages.
std::uint64_t longest_sent(const Workload& workload, std::size_t rank, std::size_t ranks) {
  const bool client = rank == 0;
  switch (workload.test) {
    case Test::kStream:
    case Test::kMessage:
      return client ? workload.bytes : 0;
    case Test::kMaerts:
    case Test::kIncast:
      return client ? 0 : workload.bytes;
    default:
      return largest_message(workload, ranks);
  }
}

}  // namespace

std::vector<std::size_t> links_of(Test test, std::size_t rank, std::size_t ranks) {
  std::vector<std::size_t> links;
  for (std::size_t other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    const bool neighbours = (rank + 1) % ranks == other || (other + 1) % ranks == rank;
    const bool star = rank == 0 || other == 0;
    if (test == Test::kTranspose || (test == Test::kRing ? neighbours : star))
      links.push_back(other);
  }
  return links;
}

Rank::Rank(const Config& config, const TransportSetup& setup, std::vector<Control*> controls,
           int stop_fd)
    : config_(config),
      setup_(setup),
      controls_(std::move(controls)),
      stop_fd_(stop_fd),
      pattern_(config.workload.seed, longest_sent(config.workload, setup.rank, setup.ranks)),
      transport_(open_transport(setup)) {}

void Rank::connect(std::span<const dblp::Address> ranks, std::int64_t until_ns) {
  transport_->connect(ranks, links_of(config_.workload.test, id(), setup_.ranks), until_ns);
}

void Rank::begin(std::uint64_t number, std::uint32_t phase) {
  number_ = number;
  phase_ = phase;
  record_ = {};
}

void Rank::send(std::size_t peer, std::uint32_t step, std::uint64_t bytes, std::uint32_t ppm) {
  Outgoing message;
  message.peer = peer;
  message.tag = tag(step);
  message.data = pattern_.message(id(), message.tag, bytes);
  message.tolerance_ppm = ppm;
  message.phase = static_cast<std::uint8_t>(phase_);
  record_.bytes += bytes;
  try {
    record_.start_ns = std::min(record_.start_ns, now_ns());
    transport_->send(message);
  } catch (const PeerGone& gone) {
    explain(gone);
  }
}

void Rank::receive(std::size_t peer, std::uint32_t step) {
  const Key key{peer, tag(step)};
  for (;;) {
    pump();
    if (const auto found = arrived_.find(key); found != arrived_.end()) {
      const Noted& noted = found->second;
      record_.end_ns = std::max(record_.end_ns, noted.at_ns);
      record_.delivered += noted.bytes - noted.missing;
      record_.missing += noted.missing;
      record_.below += noted.below ? 1 : 0;
      arrived_.erase(found);
      return;
    }
    wait(kNever);
  }
}

void Rank::finish() {
  for (pump(); transport_->unfinished() > 0; pump()) wait(kNever);
}

Json Rank::receive_control(Control& control, const char* type) {
  for (pump(); !control.has_message(); pump()) wait(kNever, true);
  return type == nullptr ? control.receive(now_ns()) : control.expect(type, now_ns());
}

void Rank::pause_until(std::int64_t until_ns) {
  while (now_ns() < until_ns) {
    pump();
    wait(until_ns);
  }
}

std::vector<Noted> Rank::take_all() {
  pump();
  std::vector<Noted> taken;
  // What an iteration before left on its way belongs to none.
  for (const auto& [key, noted] : arrived_)
    if (number_of(noted.tag) == number_) taken.push_back(noted);
  arrived_.clear();
  return taken;
}

void Rank::pump() {
  try {
    while (const auto arrival = transport_->take()) note(*arrival);
  } catch (const PeerGone& gone) {
    explain(gone);
  }
}

void Rank::note(const Arrival& arrival) {
  if (config_.workload.verify) {
    const auto wrong = pattern_.wrong_bytes(arrival.peer, arrival.tag, arrival.data, arrival.holes);
    if (wrong != 0)
      throw Failure(fmt::format("{}: {} of {} bytes of a message from host {} are wrong",
                                config_.transport.name, wrong, arrival.data.size(), arrival.peer));
    verified_ += arrival.data.size() - arrival.missing;
  }
  const Noted noted{arrival.peer,        arrival.tag,     arrival.at_ns,
                    arrival.data.size(), arrival.missing, arrival.below};
  const bool again = !config_.workload.timed() && number_of(arrival.tag) < number_;
  if (again || !arrived_.emplace(Key{arrival.peer, arrival.tag}, noted).second)
    throw Failure(fmt::format("{}: a message from host {} arrived twice", config_.transport.name,
                              arrival.peer));
}

void Rank::wait(std::int64_t until_ns, bool for_control) {
  fds_.clear();
  for (const auto* control : controls_) fds_.push_back({control->fd(), POLLIN, 0});
  fds_.push_back({stop_fd_, POLLIN, 0});
  transport_->watch(fds_);
  wait_fds(fds_, std::min(until_ns, transport_->wake_ns()));
  watch_controls(std::span(fds_).first(controls_.size() + 1), for_control);
}

void Rank::watch_controls(std::span<pollfd> fds, bool for_control) {
  for (std::size_t i = 0; i < controls_.size(); ++i) {
    if (fds[i].revents == 0) continue;
    controls_[i]->pump();
    // A message may be the last one; but who waits for none would wait for ever.
    if (controls_[i]->closed() && !for_control) controls_[i]->gone();
  }
  if (fds.back().revents != 0) throw Failure("stopped by a signal");
}

void Rank::explain(const PeerGone& gone) {
  const std::int64_t until = now_ns() + kExplanationTime;
  while (now_ns() < until) {
    fds_.clear();
    for (const auto* control : controls_) fds_.push_back({control->fd(), POLLIN, 0});
    fds_.push_back({stop_fd_, POLLIN, 0});
    if (wait_fds(fds_, until) > 0) watch_controls(fds_, false);
  }
  throw gone;
}

}  // namespace perf

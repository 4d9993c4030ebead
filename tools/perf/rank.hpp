// SPDX-License-Identifier: GPL-2.0
//
// One rank of a test: its transport, the messages that arrived, and what a round
// cost. While it waits for anything it serves its transport, and watches the control
// connections: when a peer's process ends, so does the waiting.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "config.hpp"
#include "control.hpp"
#include "failure.hpp"
#include "pattern.hpp"
#include "transport.hpp"

namespace perf {

// What one rank knows of a round. Times are its own clock's.
struct RoundRecord {
  std::int64_t start_ns = kNever;  // just before its first send()
  std::int64_t end_ns = 0;         // when the last message it waited for was there
  std::uint64_t bytes = 0;         // of the messages it sent
  std::uint64_t delivered = 0;
  std::uint64_t missing = 0;
  std::uint64_t below = 0;  // messages
};

struct Noted {
  std::size_t peer = 0;
  std::uint64_t tag = 0;
  std::int64_t at_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t missing = 0;
  bool below = false;
};

class Rank {
 public:
  Rank(const Config& config, const TransportSetup& setup, std::vector<Control*> controls,
       int stop_fd);

  [[nodiscard]] std::size_t id() const { return setup_.rank; }
  [[nodiscard]] std::size_t ranks() const { return setup_.ranks; }
  [[nodiscard]] const Workload& workload() const { return config_.workload; }
  [[nodiscard]] std::uint16_t port() const { return transport_->port(); }

  void connect(std::span<const dblp::Address> ranks, std::int64_t until_ns);

  // All that follows belongs to round `number`, in which a tolerance holds that
  // depends on `phase`.
  void begin(std::uint64_t number, std::uint32_t phase);
  [[nodiscard]] const RoundRecord& record() const { return record_; }
  // When the last message it waited for was there.
  [[nodiscard]] std::int64_t last_ns() const { return record_.end_ns; }

  // A message whose tolerance is that of the round.
  void send(std::size_t peer, std::uint32_t step, std::uint64_t bytes) {
    send(peer, step, bytes, config_.transport.tolerance_of(phase_));
  }
  // One of which nothing may be missing.
  void send_whole(std::size_t peer, std::uint32_t step, std::uint64_t bytes) {
    send(peer, step, bytes, 0);
  }
  // Waits for that message, which counts for the round.
  void receive(std::size_t peer, std::uint32_t step);
  // Waits until this end has got rid of all it sent.
  void finish();
  [[nodiscard]] std::size_t unfinished() const { return transport_->unfinished(); }

  // Waits for the next message on a control connection; of that type, unless it is null.
  Json receive_control(Control& control, const char* type);
  void pause_until(std::int64_t until_ns);

  // For workloads that wait in their own way: take() what is there (those messages
  // do not count for the round), then wait().
  std::vector<Noted> take_all();
  void wait(std::int64_t until_ns, bool for_control = false);

  [[nodiscard]] Traffic traffic() { return transport_->traffic(); }
  [[nodiscard]] std::uint64_t verified() const { return verified_; }

 private:
  using Key = std::pair<std::size_t, std::uint64_t>;

  void send(std::size_t peer, std::uint32_t step, std::uint64_t bytes, std::uint32_t ppm);
  [[nodiscard]] std::uint64_t tag(std::uint32_t step) const { return number_ << 32 | step; }
  static std::uint64_t number_of(std::uint64_t tag) { return tag >> 32; }
  void pump();
  void note(const Arrival& arrival);
  void watch_controls(std::span<pollfd> fds, bool for_control);
  [[noreturn]] void explain(const PeerGone& gone);

  Config config_;
  TransportSetup setup_;
  std::vector<Control*> controls_;
  int stop_fd_;
  Pattern pattern_;
  std::unique_ptr<Transport> transport_;
  std::map<Key, Noted> arrived_;
  std::vector<pollfd> fds_;
  std::uint64_t number_ = 0;
  std::uint32_t phase_ = 0;
  RoundRecord record_;
  std::uint64_t verified_ = 0;
};

// The ranks that `rank` exchanges messages with.
std::vector<std::size_t> links_of(Test test, std::size_t rank, std::size_t ranks);

}  // namespace perf

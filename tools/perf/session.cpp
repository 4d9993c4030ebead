// SPDX-License-Identifier: GPL-2.0

#include "session.hpp"

#include <fmt/format.h>

#include "clock.hpp"
#include "failure.hpp"
#include "host.hpp"
#include "messages.hpp"
#include "rank.hpp"
#include "workloads.hpp"

namespace perf {
namespace {

// A stranger that says nothing does not hold a place for longer.
constexpr std::int64_t kSetupTime = 10 * kSecond;
constexpr std::int64_t kConnectTime = 15 * kSecond;
constexpr std::uint64_t kMaxRanks = 1024;

class Session {
 public:
  Session(Control& control, std::uint64_t jitter_us, int stop_fd)
      : control_(control), jitter_us_(jitter_us), stop_fd_(stop_fd) {}

  void run() {
    set_up();
    connect();
    for (;;) {
      const Json message = rank_->receive_control(control_, nullptr);
      const auto& type = message["type"].get_ref<const std::string&>();
      if (type == "go")
        go(message);
      else if (type == "settle")
        settle();
      else if (type == "bye")
        return part();
      else
        throw Failure("control connection: unexpected '" + type + "'");
    }
  }

 private:
  // Others may still listen to this host's transport.
  void part() {
    control_.send({{"type", "bye"}});
    try {
      control_.receive(now_ns() + kConnectTime, stop_fd_);
    } catch (const Failure&) {
      // It went, or this server is told to: either way the client has all answers.
    }
  }

  void set_up() {
    const Json message = control_.expect("setup", now_ns() + kSetupTime, stop_fd_);
    const auto version = get_number(message, "version", ~std::uint64_t{0});
    if (version != kControlVersion)
      throw Failure(
          fmt::format("client and server have different versions of dblp-perf "
                      "(protocol {} and {})",
                      version, kControlVersion));
    if (get_string(message, "byte_order", 16) != byte_order())
      throw Failure("client and server have different byte orders, which is not supported");
    config_ = config_from_json(message);
    TransportSetup setup;
    setup.options = config_.transport;
    setup.ranks = get_number(message, "ranks", kMaxRanks);
    validate(config_, setup.ranks);
    setup.rank = get_number(message, "rank", setup.ranks - 1);
    setup.token = get_number(message, "token", ~std::uint64_t{0});
    setup.max_message = largest_message(config_.workload, setup.ranks);
    setup.local = address_from_json(message, "address");
    rank_.emplace(config_, setup, std::vector<Control*>{&control_}, stop_fd_);
    control_.send({{"type", "ready"}, {"port", rank_->port()}, {"host", describe_host()}});
  }

  void connect() {
    for (;;) {
      const Json message = control_.receive(now_ns() + kConnectTime, stop_fd_);
      const auto& type = message["type"].get_ref<const std::string&>();
      if (type == "ping") {
        control_.send({{"type", "pong"}, {"now_ns", now_ns()}});
        continue;
      }
      if (type != "connect") throw Failure("control connection: unexpected '" + type + "'");
      rank_->connect(addresses_from_json(message, "addresses", rank_->ranks()),
                     now_ns() + kConnectTime);
      break;
    }
    control_.send({{"type", "connected"}});
  }

  void go(const Json& message) {
    rank_->begin(get_number(message, "number", ~std::uint32_t{0}),
                 static_cast<std::uint32_t>(get_number(message, "phase", ~std::uint32_t{0})));
    if (first_) rank_->pause_until(now_ns() + static_cast<std::int64_t>(jitter_us_) * 1000);
    first_ = false;
    const auto stopped = [this] { return control_.has_message(); };
    switch (config_.workload.test) {
      case TestKind::kStream:
        receive(receive_stream(*rank_, stopped));
        return;
      case TestKind::kMaerts: {
        const std::array<std::size_t, 1> client{0};
        control_.send({{"type", "done"}, {"start_ns", send_stream(*rank_, client)}});
        return;
      }
      case TestKind::kRr:
        respond(*rank_, stopped);
        rank_->receive_control(control_, "stop");
        control_.send({{"type", "done"}});
        return;
      default:
        run_round(*rank_);
        control_.send(round_to_json(rank_->record()));
    }
  }

  void receive(const std::vector<Noted>& noted) {
    const Json stop = rank_->receive_control(control_, "stop");
    const auto start = static_cast<std::int64_t>(get_number(stop, "start_ns", kNever / 2));
    Json answer = stream_to_json(count_stream(config_.workload, noted, 0, start));
    answer["type"] = "done";
    control_.send(answer);
  }

  void settle() { control_.send(traffic_to_json(rank_->traffic(), rank_->verified())); }

  Control& control_;
  std::uint64_t jitter_us_;
  int stop_fd_;
  Config config_;
  std::optional<Rank> rank_;
  bool first_ = true;
};

}  // namespace

void serve_session(Control& control, std::uint64_t jitter_us, int stop_fd) {
  try {
    Session(control, jitter_us, stop_fd).run();
  } catch (const PeerGone&) {
    throw;
  } catch (const std::exception& error) {
    try {
      control.send({{"type", "error"}, {"text", error.what()}});
    } catch (const Failure&) {
      // The client is gone, and the first reason is the one that counts.
    }
    throw;
  }
}

}  // namespace perf

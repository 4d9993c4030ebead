// SPDX-License-Identifier: GPL-2.0

#include "client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "clock.hpp"
#include "clock_offset.hpp"
#include "failure.hpp"
#include "host.hpp"
#include "progress.hpp"
#include "session.hpp"
#include "workloads.hpp"

namespace perf {
namespace {

constexpr std::int64_t kSetupTime = 30 * kSecond;

class Client {
 public:
  explicit Client(const Options& options)
      : options_(options), workload_(options.config.workload), progress_(options.json) {}

  Result run() {
    connect_controls();
    set_up();
    connect_transport();
    if (workload_.timed())
      run_iterations();
    else
      run_rounds();
    progress_.clear();
    part();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t ranks() const { return options_.hosts.size() + 1; }

  void connect_controls() {
    const auto local = options_.bind.empty() ? dblp::Address() : resolve(options_.bind, 0);
    for (const auto& host : options_.hosts)
      controls_.push_back(
          std::make_unique<Control>(Control::connect(local, resolve(host, options_.port))));
    for (auto& control : controls_) pointers_.push_back(control.get());
  }

  void set_up() {
    const auto& names = options_.data_hosts.empty() ? options_.hosts : options_.data_hosts;
    data_.push_back(options_.data_bind.empty() ? with_port(local_address(controls_[0]->fd()), 0)
                                               : resolve(options_.data_bind, 0));
    for (const auto& name : names) data_.push_back(resolve(name, 0));
    result_.hosts.push_back({"client", host_of(data_[0]), describe_host()});
    std::random_device random;
    const std::uint64_t token = std::uint64_t{random()} << 32 | random();
    Json message = to_json(options_.config);
    message["type"] = "setup";
    message["version"] = kControlVersion;
    message["byte_order"] = byte_order();
    message["ranks"] = ranks();
    message["token"] = token;
    for (std::size_t i = 0; i < controls_.size(); ++i) {
      message["rank"] = i + 1;
      message["address"] = data_[i + 1].to_string();
      controls_[i]->send(message);
    }
    TransportSetup setup;
    setup.options = options_.config.transport;
    setup.ranks = ranks();
    setup.token = token;
    setup.max_message = largest_message(workload_, ranks());
    setup.local = data_[0];
    rank_.emplace(options_.config, setup, pointers_, -1);
  }

  void connect_transport() {
    data_[0] = with_port(data_[0], rank_->port());
    for (std::size_t i = 0; i < controls_.size(); ++i) {
      const Json ready = controls_[i]->expect("ready", now_ns() + kSetupTime);
      data_[i + 1] =
          with_port(data_[i + 1], static_cast<std::uint16_t>(get_number(ready, "port", 65535)));
      Host host{options_.hosts[i], host_of(data_[i + 1]), ready.value("host", Json::object())};
      host.same_clock = host.about.value("clock", "") == result_.hosts[0].about.value("clock", "?");
      ClockOffset offset;
      if (!host.same_clock) offset = measure_clock(*controls_[i]);
      host.clock_error_ns = offset.error_ns;
      offsets_.push_back(offset.ns);
      result_.hosts.push_back(std::move(host));
    }
    Json addresses = Json::array();
    for (const auto& address : data_) addresses.push_back(address.to_string());
    tell_all({{"type", "connect"}, {"addresses", addresses}});
    rank_->connect(data_, now_ns() + kSetupTime);
    for (auto& control : controls_) control->expect("connected", now_ns() + kSetupTime);
  }

  // Nobody takes his transport down before all know that the test is over.
  void part() {
    tell_all({{"type", "bye"}});
    for (auto& control : controls_) control->expect("bye", now_ns() + kSetupTime);
  }

  void tell_all(const Json& message) {
    for (auto& control : controls_) control->send(message);
  }

  void begin(std::uint32_t phase) {
    if (number_ == 0)
      rank_->pause_until(now_ns() + static_cast<std::int64_t>(options_.jitter_us) * 1000);
    tell_all({{"type", "go"}, {"number", number_}, {"phase", phase}});
    rank_->begin(number_, phase);
    ++number_;
  }

  // A server's time as the client's clock has it.
  [[nodiscard]] std::int64_t here(std::size_t server, std::int64_t there_ns) const {
    return there_ns == kNever || there_ns == 0 ? there_ns : there_ns - offsets_[server];
  }

  void run_rounds() {
    const std::uint32_t all = workload_.warm_rounds + workload_.rounds;
    settle();
    for (std::uint32_t i = 0; i < all; ++i) {
      if (i > 0 && workload_.compute_us > 0)
        rank_->pause_until(now_ns() + static_cast<std::int64_t>(workload_.compute_us) * 1000);
      const bool warm = i < workload_.warm_rounds;
      const Round round = run_one(warm ? i : i - workload_.warm_rounds);
      (warm ? result_.warm : result_.rounds).push_back(round);
      progress_.show(i + 1, all, "rounds");
    }
  }

  Round run_one(std::uint32_t phase) {
    begin(phase);
    run_round(*rank_);
    RoundRecord sum = rank_->record();
    for (std::size_t i = 0; i < controls_.size(); ++i) {
      const RoundRecord one = round_from_json(rank_->receive_control(*controls_[i], "done"));
      sum.start_ns = std::min(sum.start_ns, here(i, one.start_ns));
      sum.end_ns = std::max(sum.end_ns, here(i, one.end_ns));
      sum.bytes += one.bytes;
      sum.delivered += one.delivered;
      sum.missing += one.missing;
      sum.below += one.below;
    }
    result_.below += sum.below;
    const std::uint64_t before = result_.traffic.retransmitted.value_or(0);
    settle();
    return {sum.start_ns,  sum.end_ns,  sum.bytes,
            sum.delivered, sum.missing, result_.traffic.retransmitted.value_or(0) - before};
  }

  // All hosts' counters, as they are now.
  void settle() {
    tell_all({{"type", "settle"}});
    result_.traffic = rank_->traffic();
    result_.verified = rank_->verified();
    for (auto& control : controls_) {
      const Settled one = traffic_from_json(rank_->receive_control(*control, "settled"));
      auto& sum = result_.traffic;
      sum.offered += one.traffic.offered;
      add(sum.sent, one.traffic.sent);
      add(sum.retransmitted, one.traffic.retransmitted);
      add(sum.tolerated, one.traffic.tolerated);
      result_.verified += one.verified;
    }
  }

  static void add(std::optional<std::uint64_t>& sum, std::optional<std::uint64_t> value) {
    sum = sum && value ? std::optional(*sum + *value) : std::nullopt;
  }

  void run_iterations() {
    for (std::uint32_t i = 0; i < options_.max_iterations; ++i) {
      begin(i);
      switch (workload_.test) {
        case Test::kStream:
          stream();
          break;
        case Test::kMaerts:
          maerts();
          break;
        default:
          transactions();
      }
      settle();
      progress_.show(i + 1, options_.max_iterations, "iterations");
    }
  }

  void stream() {
    std::vector<std::size_t> peers(controls_.size());
    std::iota(peers.begin(), peers.end(), 1);
    const std::int64_t start = send_stream(*rank_, peers);
    for (std::size_t i = 0; i < controls_.size(); ++i)
      controls_[i]->send({{"type", "stop"}, {"start_ns", start + offsets_[i]}});
    Iteration sum;
    for (std::size_t i = 0; i < controls_.size(); ++i) {
      auto one = stream_from_json(rank_->receive_control(*controls_[i], "done"));
      one.last_ns = here(i, one.last_ns);
      add_stream(sum, one, start);
    }
    result_.iterations.push_back(std::move(sum));
  }

  void maerts() {
    const auto noted = receive_stream(*rank_, [this] {
      return std::ranges::all_of(controls_, [](const auto& c) { return c->has_message(); });
    });
    Iteration sum;
    for (std::size_t i = 0; i < controls_.size(); ++i) {
      const Json done = rank_->receive_control(*controls_[i], "done");
      const auto start =
          here(i, static_cast<std::int64_t>(get_number(done, "start_ns", kNever / 2)));
      add_stream(sum, count_stream(workload_, noted, i + 1, start), start);
    }
    result_.iterations.push_back(std::move(sum));
  }

  static void add_stream(Iteration& sum, const StreamCount& one, std::int64_t start) {
    sum.seconds = std::max(sum.seconds,
                           static_cast<double>(one.last_ns - start) / static_cast<double>(kSecond));
    sum.messages += one.messages;
    sum.bytes += one.bytes;
    sum.missing += one.missing;
    sum.below += one.below;
    sum.intervals.resize(std::max(sum.intervals.size(), one.intervals.size()));
    for (std::size_t i = 0; i < one.intervals.size(); ++i) sum.intervals[i] += one.intervals[i];
  }

  void transactions() {
    const auto made = request(*rank_);
    tell_all({{"type", "stop"}});
    for (auto& control : controls_) rank_->receive_control(*control, "done");
    Iteration sum;
    for (const auto& one : made) {
      Round round;
      round.start_ns = one.start_ns;
      round.end_ns = one.end_ns;
      round.bytes = workload_.bytes + workload_.response_bytes;
      result_.rounds.push_back(round);
    }
    sum.messages = made.size();
    if (!made.empty())
      sum.seconds = static_cast<double>(made.back().end_ns - made.front().start_ns) /
                    static_cast<double>(kSecond);
    sum.bytes = rank_->record().delivered;
    sum.missing = rank_->record().missing;
    sum.below = rank_->record().below;
    result_.iterations.push_back(std::move(sum));
  }

  const Options& options_;
  const Workload& workload_;
  Progress progress_;
  std::vector<std::unique_ptr<Control>> controls_;
  std::vector<Control*> pointers_;
  std::vector<dblp::Address> data_;
  std::vector<std::int64_t> offsets_;  // of a server's clock against this one
  std::optional<Rank> rank_;
  std::uint64_t number_ = 0;
  Result result_;
};

}  // namespace

Result run_client(const Options& options) { return Client(options).run(); }

}  // namespace perf

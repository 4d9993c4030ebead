// SPDX-License-Identifier: GPL-2.0

#include "server.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "message.hpp"
#include "model.hpp"

namespace train {
namespace {

using dblp::Error;
using dblp::Result;

class Server {
 public:
  Server(Transport& transport, const ServerOptions& options)
      : transport_(transport),
        options_(options),
        slots_(options.workers),
        average_(kHeaderBytes + kParameters * sizeof(float)) {
    for (auto& slot : slots_) slot.gradient.resize(kParameters);
  }

  Result<ServerReport> run(const std::function<void(const RoundReport&)>& progress) {
    auto result = gather(Kind::kHello, 0);
    if (!result) return result.error();
    if (!checksums_agree()) return Error(EINVAL, "the workers do not start from the same model");

    ServerReport report;
    const auto start = Clock::now();
    result = broadcast({.kind = Kind::kStart, .round = options_.rounds});
    for (std::uint32_t round = 0; result && round < options_.rounds; ++round) {
      result = gather(Kind::kGradient, round);
      if (!result) break;
      report.rounds.push_back(average(round));
      result = send_average(report.rounds.back());
      progress(report.rounds.back());
    }
    if (!result) return result.error();
    report.total_s = std::chrono::duration<double>(Clock::now() - start).count();

    result = gather(Kind::kFinal, options_.rounds);
    if (!result) return result.error();
    const bool agree = checksums_agree();
    report.checksum = slots_.front().header.checksum;
    result = broadcast({.kind = Kind::kVerdict, .checksum = agree ? 1U : 0U});
    if (result) result = transport_.finish(Clock::now() + options_.patience);
    if (!result) return result.error();
    if (!agree) return Error(ECANCELED, "the replicas are not equal");
    report.traffic = transport_.traffic();
    return report;
  }

 private:
  struct Slot {
    bool present = false;
    std::size_t peer = 0;
    Header header;
    std::uint64_t missing = 0;
    std::vector<float> gradient;
  };

  // One message of this kind and round from every worker.
  Result<void> gather(Kind kind, std::uint32_t round) {
    for (auto& slot : slots_) slot.present = false;
    for (std::uint32_t count = 0; count < options_.workers; ++count) {
      auto incoming = transport_.receive(Clock::now() + options_.patience);
      if (!incoming) return incoming.error();
      auto header = decode(incoming->bytes);
      if (!header) return header.error();
      auto result = take(*incoming, *header, kind, round);
      if (!result) return result;
    }
    return {};
  }

  Result<void> take(const Incoming& incoming, const Header& header, Kind kind,
                    std::uint32_t round) {
    if (header.rank >= slots_.size())
      return Error(EBADMSG, "rank " + std::to_string(header.rank) + " of " +
                                std::to_string(slots_.size()) + " workers");
    const std::string who = "worker " + std::to_string(header.rank);
    auto& slot = slots_[header.rank];
    if (header.kind != kind || header.round != round || slot.present)
      return Error(EPROTO, who + " is out of step");
    if (header.floats != (kind == Kind::kGradient ? kParameters : 0))
      return Error(EBADMSG, who + " sent " + std::to_string(header.floats) + " floats");
    slot.present = true;
    slot.peer = incoming.peer;
    slot.header = header;
    slot.missing = incoming.missing;
    std::memcpy(slot.gradient.data(), incoming.bytes.data() + kHeaderBytes,
                header.floats * sizeof(float));
    return {};
  }

  // In the order of the ranks, so that the sum does not depend on who came first.
  RoundReport average(std::uint32_t round) {
    RoundReport report{.round = round + 1};
    const float share = 1.0F / static_cast<float>(slots_.size());
    std::vector<float>& sum = slots_.front().gradient;
    std::uint64_t missing = 0;
    for (std::size_t rank = 0; rank < slots_.size(); ++rank) {
      report.loss += slots_[rank].header.loss * share;
      missing += slots_[rank].missing;
      if (rank == 0) continue;
      for (std::size_t i = 0; i < kParameters; ++i) sum[i] += slots_[rank].gradient[i];
    }
    for (float& value : sum) value *= share;
    std::memcpy(average_.data() + kHeaderBytes, sum.data(), kParameters * sizeof(float));
    report.missing =
        static_cast<double>(missing) / static_cast<double>(slots_.size() * average_.size());
    return report;
  }

  Result<void> send_average(const RoundReport& report) {
    Header header{.kind = Kind::kAverage, .round = report.round - 1, .floats = kParameters};
    header.loss = report.loss;
    double squares = 0;
    for (const auto& slot : slots_) squares += slot.header.norm * slot.header.norm;
    header.norm = std::sqrt(squares / static_cast<double>(slots_.size()));
    encode(header, average_);
    return send_all(average_);
  }

  Result<void> broadcast(const Header& header) {
    std::vector<std::byte> message(kHeaderBytes);
    encode(header, message);
    return send_all(message);
  }

  Result<void> send_all(std::span<const std::byte> message) {
    for (const auto& slot : slots_) {
      auto result = transport_.send(slot.peer, message, {}, 0);
      if (!result) return result;
    }
    return {};
  }

  [[nodiscard]] bool checksums_agree() const {
    return std::ranges::all_of(slots_, [&](const Slot& slot) {
      return slot.header.checksum == slots_.front().header.checksum;
    });
  }

  Transport& transport_;
  ServerOptions options_;
  std::vector<Slot> slots_;
  std::vector<std::byte> average_;
};

}  // namespace

Result<ServerReport> serve(Transport& transport, const ServerOptions& options,
                           const std::function<void(const RoundReport&)>& progress) {
  return Server(transport, options).run(progress);
}

}  // namespace train

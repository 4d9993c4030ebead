// SPDX-License-Identifier: GPL-2.0

#include "worker.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>

#include "batches.hpp"
#include "message.hpp"

namespace train {
namespace {

using dblp::Error;
using dblp::Result;

class Worker {
 public:
  Worker(Transport& transport, const WorkerOptions& options, const Dataset& data, Model& model)
      : transport_(transport),
        options_(options),
        data_(data),
        model_(model),
        batches_(data.size(), options.workers, options.rank, options.batch, options.seed),
        gradient_(kParameters),
        average_(kParameters),
        message_(kHeaderBytes + kParameters * sizeof(float)) {}

  Result<WorkerReport> run() {
    auto result = send_checksum(Kind::kHello, 0);
    if (!result) return result.error();
    auto start = receive(Kind::kStart, std::nullopt);
    if (!start) return start.error();
    const std::uint32_t rounds = start->round;
    Descent descent(options_.rate, options_.momentum, rounds);

    WorkerReport report;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      result = exchange(round, rounds, report);
      if (!result) return result.error();
      descent.step(model_.parameters(), average_);
    }

    result = send_checksum(Kind::kFinal, rounds);
    if (!result) return result.error();
    auto verdict = receive(Kind::kVerdict, std::nullopt);
    if (!verdict) return verdict.error();
    result = transport_.finish(Clock::now() + options_.patience);
    if (!result) return result.error();
    if (verdict->checksum != 1) return Error(ECANCELED, "the replicas are not equal");
    report.traffic = transport_.traffic();
    return report;
  }

 private:
  Result<void> exchange(std::uint32_t round, std::uint32_t rounds, WorkerReport& report) {
    Header header{.kind = Kind::kGradient, .rank = options_.rank, .round = round};
    header.floats = kParameters;
    header.loss = model_.gradient(data_, batches_.next(), gradient_);
    header.norm = std::sqrt(squared_norm(gradient_));
    if (!std::isfinite(header.loss) || !std::isfinite(header.norm))
      return Error(EDOM, "training diverged in round " + std::to_string(round + 1));

    const auto ready = Clock::now();
    encode(header, message_);
    std::memcpy(message_.data() + kHeaderBytes, gradient_.data(), kParameters * sizeof(float));
    auto sent = transport_.send(0, message_, options_.schedule.at(round, rounds), kHeaderBytes);
    if (!sent) return sent;
    auto back = receive(Kind::kAverage, round);
    if (!back) return back.error();
    const auto done = Clock::now();

    report.ready_s.push_back(std::chrono::duration<double>(ready.time_since_epoch()).count());
    report.round_ms.push_back(std::chrono::duration<double, std::milli>(done - ready).count());
    return {};
  }

  Result<void> send_checksum(Kind kind, std::uint32_t round) {
    Header header{.kind = kind, .rank = options_.rank, .round = round};
    header.checksum = checksum(model_.parameters());
    std::vector<std::byte> message(kHeaderBytes);
    encode(header, message);
    return transport_.send(0, message, {}, 0);
  }

  Result<Header> receive(Kind kind, std::optional<std::uint32_t> round) {
    auto incoming = transport_.receive(Clock::now() + options_.patience);
    if (!incoming) return incoming.error();
    auto header = decode(incoming->bytes);
    if (!header) return header;
    if (header->kind != kind || (round && header->round != *round))
      return Error(EPROTO, "the server is out of step");
    // What the server sends is reliable: a hole would part the replicas.
    if (incoming->missing != 0) return Error(EBADMSG, "the server's message has holes");
    if (header->floats != (kind == Kind::kAverage ? kParameters : 0))
      return Error(EBADMSG, "the server sent " + std::to_string(header->floats) + " floats");
    std::memcpy(average_.data(), incoming->bytes.data() + kHeaderBytes,
                header->floats * sizeof(float));
    return header;
  }

  Transport& transport_;
  WorkerOptions options_;
  const Dataset& data_;
  Model& model_;
  Batches batches_;
  std::vector<float> gradient_;
  std::vector<float> average_;
  std::vector<std::byte> message_;
};

}  // namespace

Result<WorkerReport> work(Transport& transport, const WorkerOptions& options, const Dataset& data,
                          Model& model) {
  return Worker(transport, options, data, model).run();
}

}  // namespace train

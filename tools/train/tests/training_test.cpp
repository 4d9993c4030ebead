// SPDX-License-Identifier: GPL-2.0
//
// Server and workers together: as processes over TCP, and with a transport that
// is only played.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <span>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <numeric>

#include "batches.hpp"
#include "message.hpp"
#include "server.hpp"
#include "synthetic.hpp"
#include "transport.hpp"
#include "worker.hpp"

namespace {

using namespace std::chrono_literals;
using train::checksum;
using train::Endpoint;
using train::Header;
using train::kHeaderBytes;
using train::Kind;
using train::kParameters;

constexpr std::size_t kMaxMessage = kHeaderBytes + kParameters * sizeof(float);

Endpoint endpoint(const std::string& address) {
  return {"tcp", dblp::Address::parse(address).value(), "", kMaxMessage};
}

// Runs f in a process of its own, which ends with what f returns.
template <class F>
pid_t spawn(F&& f) {
  const pid_t pid = fork();
  if (pid == 0) _exit(f());
  return pid;
}

int status_of(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Served {
  pid_t pid;
  std::string address;
};

// A server in a process of its own; returns once it can be reached. It ends with
// 0, or with the errno of its failure.
Served start_server(std::uint32_t workers, std::uint32_t rounds) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t pid = spawn([&] {
    const auto ready = [&](const dblp::Address& address) {
      const std::string text = address.to_string();
      (void)!write(ends[1], text.data(), text.size());
      close(ends[1]);
    };
    auto transport = listen(endpoint("127.0.0.1:0"), workers, ready, train::Clock::now() + 60s);
    if (!transport) return transport.error().code();
    train::ServerOptions options;
    options.workers = workers;
    options.rounds = rounds;
    options.patience = 60s;
    std::uint32_t seen = 0;
    auto report = serve(**transport, options, [&](const train::RoundReport& round) {
      seen += round.round == seen + 1 && round.missing == 0 ? 1 : 0;
    });
    if (!report) return report.error().code();
    const bool good = seen == rounds && report->rounds.size() == rounds &&
                      report->traffic.sent >= report->traffic.payload && report->total_s > 0;
    return good ? 0 : 255;
  });
  close(ends[1]);
  std::string address(64, '\0');
  const ssize_t got = read(ends[0], address.data(), address.size());
  EXPECT_GT(got, 0);
  address.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  close(ends[0]);
  return {pid, address};
}

int run_worker(const std::string& address, std::uint32_t rank, std::uint32_t workers,
               const train::Dataset& data, train::Model& model) {
  auto transport = connect(endpoint(address));
  if (!transport) return transport.error().code();
  train::WorkerOptions options;
  options.rank = rank;
  options.workers = workers;
  options.batch = 16;
  options.seed = 4;
  options.patience = 60s;
  auto report = work(**transport, options, data, model);
  return report ? 0 : report.error().code();
}

// Trains with the last worker in this process, whose model is returned.
train::Model train_over_tcp(const train::Dataset& data, std::uint32_t workers,
                            std::uint32_t rounds) {
  const Served server = start_server(workers, rounds);
  std::vector<pid_t> pids;
  for (std::uint32_t rank = 0; rank + 1 < workers; ++rank)
    pids.push_back(spawn([&] {
      train::Model model(4);
      return run_worker(server.address, rank, workers, data, model);
    }));
  train::Model model(4);
  EXPECT_EQ(run_worker(server.address, workers - 1, workers, data, model), 0);
  for (const pid_t pid : pids) EXPECT_EQ(status_of(pid), 0);
  EXPECT_EQ(status_of(server.pid), 0);
  return model;
}

TEST(TrainingOverTcp, Learns) {
  const auto data = train::synthetic(600, 1);
  const auto test = train::synthetic(300, 2);
  const double before = train::Model(4).evaluate(test).accuracy;
  const double after = train_over_tcp(data, 3, 40).evaluate(test).accuracy;
  EXPECT_LT(before, 0.4);
  EXPECT_GT(after, 0.9);
}

TEST(TrainingOverTcp, EqualsTheSameStepsInOneProcess) {
  constexpr std::uint32_t kWorkers = 2;
  constexpr std::uint32_t kRounds = 5;
  const auto data = train::synthetic(200, 1);

  train::Model model(4);
  train::Descent descent(train::WorkerOptions{}.rate, train::WorkerOptions{}.momentum, kRounds);
  std::vector<train::Batches> batches;
  for (std::size_t rank = 0; rank < kWorkers; ++rank)
    batches.emplace_back(data.size(), kWorkers, rank, 16, 4);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    std::vector<float> sum(kParameters);
    std::vector<float> other(kParameters);
    model.gradient(data, batches[0].next(), sum);
    model.gradient(data, batches[1].next(), other);
    for (std::size_t i = 0; i < kParameters; ++i) sum[i] = (sum[i] + other[i]) * 0.5F;
    descent.step(model.parameters(), sum);
  }
  const auto expected = checksum(model.parameters());
  // Twice: whoever comes first must not matter.
  EXPECT_EQ(checksum(train_over_tcp(data, kWorkers, kRounds).parameters()), expected);
  EXPECT_EQ(checksum(train_over_tcp(data, kWorkers, kRounds).parameters()), expected);
}

TEST(TrainingOverTcp, NeedsOneAndTheSameModel) {
  const auto data = train::synthetic(100, 1);
  const Served server = start_server(2, 3);
  const pid_t other = spawn([&] {
    train::Model model(5);
    return run_worker(server.address, 0, 2, data, model);
  });
  train::Model model(4);
  EXPECT_NE(run_worker(server.address, 1, 2, data, model), 0);
  EXPECT_NE(status_of(other), 0);
  EXPECT_EQ(status_of(server.pid), EINVAL);
}

// What a peer that is not a worker can do to a server.
class BadPeer : public testing::Test {
 protected:
  static int after(const std::string& bytes) {
    const Served server = start_server(1, 1);
    const auto address = dblp::Address::parse(server.address).value();
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(fd, address.data(), address.size()), 0);
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    shutdown(fd, SHUT_WR);
    const int status = status_of(server.pid);
    close(fd);
    return status;
  }
  static std::string framed(const Header& header) {
    std::string frame(4 + kHeaderBytes, '\0');
    const std::uint32_t length = htonl(kHeaderBytes);
    std::memcpy(frame.data(), &length, 4);
    encode(header, std::as_writable_bytes(std::span(frame)).subspan(4));
    return frame;
  }
};

TEST_F(BadPeer, ThatLeaves) {
  EXPECT_EQ(after("x"), ECONNRESET);
  EXPECT_EQ(after(std::string("\0\0\0\x40 cut", 8)), ECONNRESET);
  EXPECT_EQ(after(framed({.kind = Kind::kHello})), ECONNRESET);
}

TEST_F(BadPeer, ThatClaimsALongMessage) {
  EXPECT_EQ(after("\xff\xff\xff\xff"), EMSGSIZE);
  EXPECT_EQ(after(std::string(4, '\0')), EMSGSIZE);
}

TEST_F(BadPeer, ThatSpeaksSomethingElse) {
  EXPECT_EQ(after(std::string("\0\0\0\5GET /", 9)), EBADMSG);
  EXPECT_EQ(after(framed({.kind = Kind::kHello, .rank = 1})), EBADMSG);
  EXPECT_EQ(after(framed({.kind = Kind::kFinal})), EPROTO);
}

TEST(Transport, SaysWhatIsWrong) {
  const auto ready = [](const dblp::Address&) {};
  const auto now = train::Clock::now();
  auto bad = endpoint("127.0.0.1:0");
  bad.congestion = "no such thing";
  auto result = listen(bad, 1, ready, now);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find("no such thing"), std::string::npos);

  result = listen(endpoint("127.0.0.1:0"), 2, ready, now);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ETIMEDOUT);
  EXPECT_NE(result.error().message().find("0 of 2 workers"), std::string::npos);

  result = connect(endpoint("127.0.0.1:1"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ECONNREFUSED);

  bad = endpoint("127.0.0.1:0");
  bad.transport = "pigeon";
  EXPECT_FALSE(connect(bad));
  if (std::filesystem::exists("/sys/module/dblp")) return;
  bad.transport = "dblp";
  result = connect(bad);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), EAFNOSUPPORT);
  EXPECT_NE(result.error().message().find("module"), std::string::npos);
}

// Hands the server what the test has prepared, and keeps what it sends.
class Played final : public train::Transport {
 public:
  struct Message {
    std::size_t peer;
    std::vector<std::byte> bytes;
    std::uint64_t missing;
  };

  void add(std::size_t peer, Header header, float value = 0, std::uint64_t holes = 0) {
    std::vector<std::byte> bytes(kHeaderBytes + header.floats * sizeof(float));
    encode(header, bytes);
    const std::vector<float> floats(header.floats, value);
    // A header may come alone, and no floats have no address.
    std::ranges::copy(std::as_bytes(std::span(floats)), bytes.begin() + kHeaderBytes);
    // Holes are at the end here, and zeros, as the kernel leaves them.
    std::fill(bytes.end() - static_cast<std::ptrdiff_t>(holes), bytes.end(), std::byte{0});
    incoming_.push_back({peer, std::move(bytes), holes});
  }

  dblp::Result<void> send(std::size_t peer, std::span<const std::byte> message,
                          dblp::Tolerance tolerance, std::size_t) override {
    EXPECT_TRUE(tolerance.reliable()) << "replicas would part";
    sent.push_back({peer, {message.begin(), message.end()}, 0});
    return {};
  }
  dblp::Result<train::Incoming> receive(train::Clock::time_point) override {
    if (incoming_.empty()) return dblp::Error(ETIMEDOUT, "nothing more is played");
    current_ = std::move(incoming_.front());
    incoming_.pop_front();
    return train::Incoming{current_.peer, current_.bytes, current_.missing};
  }
  dblp::Result<void> finish(train::Clock::time_point) override { return {}; }
  [[nodiscard]] train::Traffic traffic() const override { return {}; }

  std::vector<Message> sent;

 private:
  std::deque<Message> incoming_;
  Message current_{};
};

class PlayedRound : public testing::Test {
 protected:
  static Header gradient(std::uint32_t rank, std::uint32_t round = 0) {
    return {.kind = Kind::kGradient, .rank = rank, .round = round, .floats = kParameters};
  }
  int error_of(std::uint32_t rounds = 1) {
    train::ServerOptions options;
    options.workers = 2;
    options.rounds = rounds;
    auto report = serve(transport_, options, [](const train::RoundReport&) {});
    if (report) report_ = *report;
    return report ? 0 : report.error().code();
  }
  void hello() {
    transport_.add(1, {.kind = Kind::kHello, .rank = 0});
    transport_.add(0, {.kind = Kind::kHello, .rank = 1});
  }

  Played transport_;
  train::ServerReport report_;
};

TEST_F(PlayedRound, AddsZerosWhereBytesAreMissing) {
  hello();
  transport_.add(0, gradient(1), 3.0F, 400);
  transport_.add(1, gradient(0), 1.0F);
  transport_.add(0, {.kind = Kind::kFinal, .rank = 1, .round = 1, .checksum = 8});
  transport_.add(1, {.kind = Kind::kFinal, .rank = 0, .round = 1, .checksum = 8});
  ASSERT_EQ(error_of(), 0);

  ASSERT_EQ(transport_.sent.size(), 6U);  // start, average, verdict
  const auto& average = transport_.sent[2].bytes;
  EXPECT_EQ(average, transport_.sent[3].bytes);
  EXPECT_NE(transport_.sent[2].peer, transport_.sent[3].peer);
  std::vector<float> values(kParameters);
  std::memcpy(values.data(), average.data() + kHeaderBytes, kParameters * sizeof(float));
  for (std::size_t i = 0; i < kParameters; ++i)
    ASSERT_EQ(values[i], i < kParameters - 100 ? 2.0F : 0.5F) << "at " << i;
  EXPECT_DOUBLE_EQ(report_.rounds[0].missing, 400.0 / (2.0 * kMaxMessage));
  EXPECT_EQ(train::decode(transport_.sent[4].bytes).value().checksum, 1U);
}

TEST_F(PlayedRound, FindsReplicasThatParted) {
  hello();
  transport_.add(0, gradient(1), 3.0F);
  transport_.add(1, gradient(0), 1.0F);
  transport_.add(0, {.kind = Kind::kFinal, .rank = 1, .round = 1, .checksum = 8});
  transport_.add(1, {.kind = Kind::kFinal, .rank = 0, .round = 1, .checksum = 9});
  EXPECT_EQ(error_of(), ECANCELED);
  EXPECT_EQ(train::decode(transport_.sent.back().bytes).value().checksum, 0U);
}

TEST_F(PlayedRound, RefusesWorkersThatAreOutOfStep) {
  hello();
  transport_.add(0, gradient(1), 3.0F);
  transport_.add(0, gradient(1), 3.0F);  // twice
  EXPECT_EQ(error_of(), EPROTO);
}

TEST_F(PlayedRound, RefusesAnotherRound) {
  hello();
  transport_.add(0, gradient(1, 1), 3.0F);
  EXPECT_EQ(error_of(), EPROTO);
}

TEST_F(PlayedRound, RefusesAGradientOfAnotherSize) {
  hello();
  Header header = gradient(1);
  header.floats = 10;
  transport_.add(0, header, 3.0F);
  EXPECT_EQ(error_of(), EBADMSG);
}

}  // namespace

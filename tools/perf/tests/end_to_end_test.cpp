// SPDX-License-Identifier: GPL-2.0
//
// The program itself over loopback: all tests over TCP and UDP, and what it says when
// something goes wrong.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frame.hpp"
#include "net.hpp"

namespace perf {
namespace {

// A run of dblp-perf, with a pipe from its standard output and one from its error.
class Program {
 public:
  explicit Program(std::vector<std::string> words) {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    EXPECT_EQ(::pipe2(out.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(err.data(), O_CLOEXEC), 0);
    out_ = Fd(out[0]);
    err_ = Fd(err[0]);
    const Fd out_end(out[1]);
    const Fd err_end(err[1]);
    words.insert(words.begin(), DBLP_PERF);
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out_end.get(), 1);
    posix_spawn_file_actions_adddup2(&actions, err_end.get(), 2);
    EXPECT_EQ(posix_spawn(&pid_, DBLP_PERF, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ < 0) return;
    kill(SIGKILL);
    wait();
  }

  void kill(int signal) const { ::kill(pid_, signal); }
  // Its exit status, or minus the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Waits until it has `count` threads.
  void wait_for_threads(std::size_t count) const {
    const std::filesystem::path tasks = fmt::format("/proc/{}/task", pid_);
    for (int i = 0; i < 3000; ++i) {
      if (static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(tasks), {})) >=
          count)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "waited in vain for " << count << " threads";
  }
  std::string read_line() const { return read_until(out_, '\n'); }
  std::string read_error_line() const { return read_until(err_, '\n'); }
  std::string read_all() const { return read_until(out_, '\0'); }
  std::string read_errors() const { return read_until(err_, '\0'); }

 private:
  static std::string read_until(const Fd& fd, char end) {
    std::string text;
    char c = 0;
    while (::read(fd.get(), &c, 1) == 1 && c != end) text += c;
    return text;
  }

  pid_t pid_ = -1;
  Fd out_;
  Fd err_;
};

class Server : public Program {
 public:
  explicit Server(const std::string& address) : Program({"--server", "-B", address, "-p", "0"}) {
    const std::string line = read_line();
    port_ = line.substr(line.rfind(':') + 1);
  }
  [[nodiscard]] const std::string& port() const { return port_; }
  // A client has its own thread there.
  void wait_for_client() const { wait_for_threads(2); }

 private:
  std::string port_;
};

struct Case {
  const char* test;
  const char* transport;
};

// Part of the test's name.
void PrintTo(const Case& one, std::ostream* out) { *out << one.test << " over " << one.transport; }

class EndToEnd : public testing::TestWithParam<Case> {};

// Between two hosts; all bytes add up, and were verified.
TEST_P(EndToEnd, Runs) {
  const std::string test = GetParam().test;
  const bool timed = test == "STREAM" || test == "MAERTS" || test == "RR";
  Server one("127.0.0.1");
  std::vector<std::string> words{"-H", "127.0.0.1",          "-p", one.port(), "-t", test,
                                 "-T", GetParam().transport, "-J", "--seed",   "7",  "--"};
  if (timed)
    words.insert(words.end(), {"-l", "0.2", "-m", "3000"});
  else
    words.insert(words.end(), {"-m", "300001", "-r", "4", "-w", "1", "--compute-us", "100"});
  Program client(words);
  const std::string text = client.read_all();
  ASSERT_EQ(client.wait(), 0) << client.read_errors();
  const Json json = Json::parse(text);
  const Json& end = json["end"];
  EXPECT_GT(end["seconds"], 0);
  EXPECT_GT(end["delivered_bytes"], 0);
  EXPECT_EQ(end["delivered_bytes"].get<std::uint64_t>() + end["missing_bytes"].get<std::uint64_t>(),
            end["offered_bytes"].get<std::uint64_t>());
  EXPECT_GE(end["verified_bytes"], end["delivered_bytes"]);
  if (!timed) {
    ASSERT_EQ(json["rounds"].size(), 4U);
    EXPECT_EQ(json["warm_rounds"].size(), 1U);
    std::int64_t before = 0;
    for (const auto& round : json["rounds"]) {
      EXPECT_GE(round["start_ns"], before + 100'000) << "there is time between rounds";
      EXPECT_GT(round["end_ns"], round["start_ns"]);
      before = round["end_ns"];
      const std::uint64_t vectors = test == "MESSAGE" || test == "INCAST" ? 1 : 2;
      EXPECT_EQ(round["bytes"], 300'001U * vectors);
    }
  }
  one.kill(SIGTERM);
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(one.read_errors(), "");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* transport : {"tcp-cubic", "udp"})
    for (const char* test :
         {"STREAM", "MAERTS", "RR", "MESSAGE", "INCAST", "PS", "RING", "TRANSPOSE"})
      cases.push_back({test, transport});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, EndToEnd, testing::ValuesIn(all_cases()), [](const auto& param) {
  std::string name = fmt::format("{}_{}", param.param.test, param.param.transport);
  for (auto& c : name)
    if (c == '-') c = '_';
  return name;
});

struct Failed {
  int status;
  std::string error;
};

Failed fail(const std::vector<std::string>& words) {
  Program program(words);
  std::string error = program.read_errors();
  return {program.wait(), error};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(EndToEndErrors, AWrongTestName) {
  const Failed failed = fail({"-H", "127.0.0.1", "-t", "STREEM"});
  EXPECT_EQ(failed.status, 2);
  EXPECT_TRUE(contains(failed.error, "did you mean STREAM?")) << failed.error;
}

TEST(EndToEndErrors, AnUnknownTransport) {
  const Failed failed = fail({"-H", "127.0.0.1", "-T", "quic"});
  EXPECT_EQ(failed.status, 2);
  EXPECT_TRUE(contains(failed.error, "no transport 'quic'")) << failed.error;
}

TEST(EndToEndErrors, AClosedPort) {
  // Bound but not listening: nobody else can have it.
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any = dblp::Address::parse("127.0.0.1:0").value();
  ASSERT_EQ(::bind(fd.get(), any.data(), any.size()), 0);
  const auto port = std::to_string(local_address(fd.get()).port());
  const Failed failed = fail({"-H", "127.0.0.1", "-p", port, "-T", "tcp-cubic"});
  EXPECT_EQ(failed.status, 1);
  EXPECT_TRUE(contains(failed.error, "nobody listens there")) << failed.error;
}

TEST(EndToEndErrors, APortThatIsTaken) {
  const Server server("127.0.0.1");
  const Failed failed = fail({"--server", "-B", "127.0.0.1", "-p", server.port()});
  EXPECT_EQ(failed.status, 1);
  EXPECT_TRUE(contains(failed.error, "another server?")) << failed.error;
}

TEST(EndToEndErrors, AKilledServer) {
  Server server("127.0.0.1");
  Program client(
      {"-H", "127.0.0.1", "-p", server.port(), "-T", "tcp-cubic", "-t", "RR", "-l", "600"});
  server.wait_for_client();
  server.kill(SIGKILL);
  EXPECT_EQ(server.wait(), -SIGKILL);
  EXPECT_EQ(client.wait(), 1);
  const std::string error = client.read_errors();
  EXPECT_TRUE(contains(error, "went away")) << error;
  EXPECT_EQ(error.find('\n'), error.size() - 1) << error;
}

TEST(EndToEndErrors, AKilledClientLeavesAServerThatServes) {
  Server server("127.0.0.1");
  for (int i = 0; i < 3; ++i) {
    Program client({"-H", "127.0.0.1", "-p", server.port(), "-T", "tcp-cubic", "-l", "600"});
    server.wait_for_client();
    Program other({"-H", "127.0.0.1", "-p", server.port(), "-T", "udp", "-t", "RR", "-l", "0.1"});
    EXPECT_EQ(other.wait(), 0);
    client.kill(SIGKILL);
    client.wait();
    const std::string line = server.read_error_line();
    EXPECT_TRUE(contains(line, "went away")) << line;
  }
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST(EndToEndErrors, AServerThatIsStoppedSaysSo) {
  Server server("127.0.0.1");
  Program client({"-H", "127.0.0.1", "-p", server.port(), "-T", "udp", "-t", "RR", "-l", "600"});
  server.wait_for_client();
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_EQ(client.wait(), 1);
  const std::string error = client.read_errors();
  EXPECT_TRUE(contains(error, "stopped by a signal")) << error;
}

}  // namespace
}  // namespace perf

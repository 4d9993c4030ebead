// SPDX-License-Identifier: GPL-2.0
//
// A server's part, with a client that is hostile, or none.

#include "session.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "clock.hpp"
#include "config.hpp"
#include "failure.hpp"
#include "host.hpp"
#include "net.hpp"

namespace perf {
namespace {

constexpr std::int64_t kPatience = 20 * kSecond;

class SessionTest : public testing::Test {
 protected:
  SessionTest() : stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto any = dblp::Address::parse("127.0.0.1:0").value();
    EXPECT_EQ(::bind(listener.get(), any.data(), any.size()), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    client_.emplace(Control::connect(dblp::Address(), local_address(listener.get())));
    Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    server_ = std::thread([this, fd = std::move(accepted)]() mutable {
      Control control(std::move(fd), "client");
      try {
        serve_session(control, 0, stop_.get());
        how_ = "well";
      } catch (const std::exception& error) {
        how_ = error.what();
      }
    });
  }

  ~SessionTest() override {
    client_.reset();
    if (server_.joinable()) server_.join();
  }

  // How the session ended.
  const std::string& ended() {
    server_.join();
    return how_;
  }

  std::string answer() {
    try {
      return client_->receive(now_ns() + kPatience)["type"].get<std::string>();
    } catch (const Failure& failure) {
      return failure.what();
    }
  }

  static Json setup() {
    Config config;
    config.workload.bytes = 1000;
    config.transport.name = "tcp-cubic";
    Json message = to_json(config);
    message["type"] = "setup";
    message["version"] = kControlVersion;
    message["byte_order"] = byte_order();
    message["ranks"] = 2;
    message["rank"] = 1;
    message["token"] = 5;
    message["address"] = "127.0.0.1:0";
    return message;
  }

  void send_raw(const std::string& text) {
    write_exactly(client_->fd(), std::as_bytes(std::span(text)), now_ns() + kPatience);
  }

  Fd stop_;
  std::optional<Control> client_;
  std::thread server_;
  std::string how_;
};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_F(SessionTest, AClientThatGoesAwayAtOnce) {
  client_.reset();
  EXPECT_TRUE(contains(ended(), "went away")) << how_;
}

TEST_F(SessionTest, AStrangerIsToldSo) {
  send_raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(contains(answer(), "not a message of dblp-perf"));
  EXPECT_TRUE(contains(ended(), "not a message of dblp-perf"));
}

TEST_F(SessionTest, AnotherVersionIsToldSo) {
  Json message = setup();
  message["version"] = kControlVersion + 1;
  client_->send(message);
  EXPECT_TRUE(contains(answer(), "different versions"));
}

TEST_F(SessionTest, AWrongConfigurationIsToldSo) {
  Json message = setup();
  message["transport"]["name"] = "quic";
  client_->send(message);
  EXPECT_TRUE(contains(answer(), "no transport 'quic'"));
}

TEST_F(SessionTest, ARankBeyondTheLastOne) {
  Json message = setup();
  message["rank"] = 2;
  client_->send(message);
  EXPECT_TRUE(contains(answer(), "'rank' is too large"));
}

TEST_F(SessionTest, NoRanksAtAll) {
  Json message = setup();
  message["ranks"] = 0;
  client_->send(message);
  EXPECT_TRUE(contains(answer(), "hosts: 0"));
}

TEST_F(SessionTest, AnAddressOfAnotherHost) {
  Json message = setup();
  message["address"] = "192.0.2.1:0";
  client_->send(message);
  EXPECT_TRUE(contains(answer(), "192.0.2.1"));
}

TEST_F(SessionTest, MessagesInTheWrongOrder) {
  client_->send({{"type", "go"}});
  EXPECT_TRUE(contains(answer(), "instead of 'setup'"));
}

TEST_F(SessionTest, AClientThatGoesAwayInTheMiddle) {
  client_->send(setup());
  EXPECT_EQ(answer(), "ready");
  client_.reset();
  EXPECT_TRUE(contains(ended(), "went away")) << how_;
}

TEST_F(SessionTest, StopsWhenTheServerDoes) {
  client_->send(setup());
  EXPECT_EQ(answer(), "ready");
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(stop_.get(), &one, sizeof(one)), 8);
  EXPECT_TRUE(contains(answer(), "stopped by a signal"));
}

}  // namespace
}  // namespace perf

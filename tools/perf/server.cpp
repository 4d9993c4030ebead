// SPDX-License-Identifier: GPL-2.0

#include "server.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <list>
#include <thread>

#include "clock.hpp"
#include "failure.hpp"
#include "session.hpp"

namespace perf {
namespace {

constexpr std::size_t kMaxClients = 256;

struct Client {
  std::atomic<bool> over = false;
  std::thread thread;
};

void say(const std::string& line) { fmt::print(stderr, "dblp-perf: {}\n", line); }

class Server {
 public:
  explicit Server(const Options& options) : options_(options) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    // Before there are threads, which have the same mask.
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signals_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    stop_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!signals_ || !stop_) fail_errno("signalfd");
    listen();
  }

  ~Server() {
    // All sessions see it, and none takes it away.
    const std::uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    for (auto& client : clients_) client.thread.join();
  }

  void run() {
    for (;;) {
      std::array<pollfd, 2> fds{{{listener_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
      wait_fds(fds, kNever);
      if (fds[1].revents != 0) return;
      if (fds[0].revents == 0) continue;
      Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      clients_.remove_if([](Client& client) {
        if (!client.over) return false;
        client.thread.join();
        return true;
      });
      if (fd) start(std::move(fd));
    }
  }

 private:
  void listen() {
    const auto address = options_.bind.empty() ? any() : resolve(options_.bind, options_.port);
    listener_ = Fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_) fail_errno("socket");
    set_option(listener_.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    if (::bind(listener_.get(), address.data(), address.size()) != 0) {
      const char* cure = errno == EADDRINUSE      ? " (another server? choose a port with -p)"
                         : errno == EADDRNOTAVAIL ? " (-B wants an address of this host)"
                                                  : "";
      fail_errno(fmt::format("cannot listen on {}{}", address.to_string(), cure));
    }
    if (::listen(listener_.get(), SOMAXCONN) != 0) fail_errno("listen");
  }

  [[nodiscard]] dblp::Address any() const {
    // Takes IPv4, too, where there is IPv6 at all.
    const Fd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const char* all = probe ? "[::]:{}" : "0.0.0.0:{}";
    return dblp::Address::parse(fmt::format(fmt::runtime(all), options_.port)).value();
  }

  void start(Fd fd) {
    sockaddr_storage storage{};
    socklen_t length = sizeof(storage);
    auto* any = reinterpret_cast<sockaddr*>(&storage);
    if (::getpeername(fd.get(), any, &length) != 0) return;
    const auto from = dblp::Address::from(any, length);
    auto control = std::make_shared<Control>(
        std::move(fd), "client " + (from ? from->to_string() : std::string("?")));
    if (clients_.size() >= kMaxClients) {
      control->send({{"type", "error"}, {"text", "the server is busy with too many clients"}});
      return;
    }
    Client& client = clients_.emplace_back();
    client.thread = std::thread([this, control, &client] {
      try {
        serve_session(*control, options_.jitter_us, stop_.get());
      } catch (const std::exception& error) {
        const std::string text = error.what();
        say(text.starts_with("client ") ? text : control->peer() + ": " + text);
      }
      client.over = true;
    });
  }

  const Options& options_;
  Fd listener_;
  Fd signals_;
  Fd stop_;
  std::list<Client> clients_;
};

}  // namespace

void run_server(const Options& options) { Server(options).run(); }

}  // namespace perf

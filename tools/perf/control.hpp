// SPDX-License-Identifier: GPL-2.0
//
// A control connection: one message at a time in each direction. It never blocks for
// longer than a deadline, and notices at once when the peer's process ends.
#pragma once

#include <deque>
#include <string>

#include "frame.hpp"
#include "net.hpp"

namespace perf {

class Control {
 public:
  Control(Fd fd, std::string peer);

  // Waits until the server listens on that port, or throws with the cure.
  static Control connect(const dblp::Address& local, const dblp::Address& server);

  void send(const Json& message);
  // The next message. Throws PeerGone when the connection ends, Failure with the
  // peer's words when it sends an error, or when `until_ns` is over.
  Json receive(std::int64_t until_ns, int stop_fd = -1);
  // The same, and it must be of that type.
  Json expect(const std::string& type, std::int64_t until_ns, int stop_fd = -1);
  // Reads what is there without waiting, and keeps it. Throws as receive() does, but
  // not for an end of the connection behind a message.
  void pump();
  [[nodiscard]] bool closed() const { return closed_; }
  [[noreturn]] void gone() const;
  [[nodiscard]] bool has_message() const { return !queue_.empty(); }

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& peer() const { return peer_; }

 private:
  void take_frames();

  Fd fd_;
  std::string peer_;
  FrameParser parser_;
  std::deque<Json> queue_;
  bool closed_ = false;
};

}  // namespace perf

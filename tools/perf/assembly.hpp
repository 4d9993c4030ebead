// SPDX-License-Identifier: GPL-2.0
//
// Messages cut into fragments, for transports that carry no message of that size, or
// that lose whole messages where only a part is lost. One per peer.
//
// A message is over when nothing is missing; or, if something may be: as soon as no
// more than that is missing (eager), or once the sender says that it sent everything
// once (pressure); and in any case when the sender says that no more will come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "transport.hpp"

namespace perf {

// Host byte order: the hosts of a test have the same one, which is checked when a
// test begins.
struct Fragment {
  enum Kind : std::uint8_t { kData = 1, kSent = 2, kEnd = 3, kAnswer = 4 };

  std::uint64_t token;
  std::uint64_t tag;
  std::uint32_t length;   // of the message
  std::uint32_t offset;   // a multiple of unit
  std::uint32_t allowed;  // bytes that may be missing
  std::uint16_t unit;     // payload of a fragment; the last one may be shorter
  std::uint8_t kind;
  std::uint8_t rank;  // of the sender, low byte
};
static_assert(sizeof(Fragment) == 32);

// The first fragment of a message from `setup`'s rank, cut into units of `unit` bytes.
[[nodiscard]] Fragment make_fragment(const TransportSetup& setup, const Outgoing& message,
                                     std::uint16_t unit, Fragment::Kind kind);

class Assembly {
 public:
  Assembly(std::size_t peer, std::uint64_t max_message, bool eager)
      : peer_(peer), max_message_(max_message), eager_(eager) {}

  // Takes in a fragment. False if it is none that a sender can have made.
  [[nodiscard]] bool add(const Fragment& fragment, std::span<const std::byte> payload,
                         std::int64_t now);
  // The next message that is over. Valid until the next call.
  std::optional<Arrival> take();

 private:
  struct Message {
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> missing_segments;
    std::uint32_t length = 0;
    std::uint32_t unit = 0;
    std::uint32_t missing = 0;
    std::uint32_t allowed = 0;
    std::int64_t over_ns = 0;
    std::uint64_t tag = 0;
    bool sent = false;
    bool ended = false;
  };

  [[nodiscard]] bool possible(const Fragment& fragment, std::size_t payload) const;
  Message& message_of(const Fragment& fragment);
  [[nodiscard]] bool over(const Message& message) const;
  void forget_oldest();

  std::size_t peer_;
  std::uint64_t max_message_;
  bool eager_;
  std::map<std::uint64_t, Message> open_;
  std::deque<Message> over_;
  std::optional<Message> given_;
  std::vector<std::vector<std::byte>> spare_;
  std::unordered_set<std::uint64_t> done_;
  std::deque<std::uint64_t> done_order_;
};

}  // namespace perf

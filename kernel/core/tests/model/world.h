// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// One sender, one receiver, one message and the packets between them, in one block of
// memory that never moves: a state is saved and restored by copying the block, and the
// core's pointers stay right.
#ifndef DBLP_MODEL_WORLD_H
#define DBLP_MODEL_WORLD_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../../rx.h"
#include "../../tx.h"

namespace dblp::model {

struct Config {
  uint32_t segments;  // 3 or 4, of 512 bytes
  uint32_t allow;     // segments that may be missing
  uint8_t mode;       // 0 pressure, 1 eager
  bool deadline;
  bool round_cap;  // one round
  bool protect;    // segment 1
  bool ordered;

  std::string describe() const;
};

// What the search does not go beyond.
struct Bounds {
  uint32_t packets = 9;     // in flight
  uint32_t tx_timers = 1;   // expiries of the sender's timer
  uint32_t rx_timers = 1;   // … of the receiver's
  uint32_t duplicates = 0;  // deliveries that leave the packet in flight
  // False: of acknowledgements only completed ids reach the sender.  Then packet numbers
  // matter by their order alone and there are far fewer states.
  bool acks = false;
};

enum class Step : uint8_t {
  deliver,    // a packet arrives; never arriving is being lost
  duplicate,  // it arrives and stays in flight
  tx_timer,   // the sender's next timer fires, whatever is in flight
  rx_timer,
  deadline,  // the sender's deadline fires before its other timers
  hold,      // the receiver's hold timer fires before its other timers
};

struct Action {
  Step step;
  uint8_t packet;
};

constexpr uint32_t kMaxPackets = 24;
constexpr uint32_t kMaxBytes = 200;
constexpr uint32_t kMaxSegments = 4;

struct Packet {
  bool rev;
  uint16_t len;  // bytes kept; the payload is not
  uint8_t bytes[kMaxBytes];
};

struct World {
  Config config;
  bool acks;
  dblp_tx tx;
  dblp_rx rx;
  dblp_txmsg tm;
  dblp_rxmsg rm;
  dblp_txseg seg[kMaxSegments];
  uint64_t tx_leaf, rx_leaf;
  dblp_sent log[DBLP_SENTLOG_MIN];
  uint64_t tx_now, rx_now;  // the two clocks need not agree
  Packet net[kMaxPackets];
  uint32_t packets;
  uint32_t tx_fired, rx_fired, duplicated;
  // The truth.
  bool open, judged, completed;
  uint8_t verdict, outcome;
  uint32_t sent, kept, missing, sender_missing;  // bit = segment
  const char* violated;
};

// The one world; saved and restored as bytes.
extern World world;

void start(const Config& config, bool acks);
// What may happen now, within @bounds.
std::vector<Action> possible(const Bounds& bounds);
void act(const Action& action);
// From here on nothing is lost and timers fire in order; @drop: what is in flight is lost
// first.  False, with world.violated set, unless everything ends well.
bool run_to_the_end(bool drop);
// Of what matters for the future; clocks do not.
uint64_t fingerprint();
std::string describe(const Action& action);

}  // namespace dblp::model

#endif  // DBLP_MODEL_WORLD_H

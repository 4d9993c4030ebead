// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// What really happened, kept outside both endpoints, and the rules it must obey.  The
// ledger never looks into the core's state: it computes bounds, maps and sums again from
// what was submitted, stored, judged and completed.
#ifndef DBLP_SIM_LEDGER_H
#define DBLP_SIM_LEDGER_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../../tx.h"

namespace dblp::sim {

// X(name, text)
#define DBLP_SIM_INVARIANTS(X)                                                        \
  X(bound, "OK is never said with more missing than the bound allows")                \
  X(allowance, "the bound that travels is the one the tolerance gives")               \
  X(group, "what a group's messages miss never exceeds its tolerance of their bytes") \
  X(once, "no message is judged twice, whatever is repeated or replayed")             \
  X(protect, "no protected segment is missing from a message judged OK")              \
  X(payload, "every segment kept is the one that was sent")                           \
  X(map_true, "the receiver's map says what was really kept")                         \
  X(frozen, "nothing is written and no map changes after judgement")                  \
  X(map_equal, "the sender's map equals the receiver's, bit for bit")                 \
  X(outcome, "the sender's OK or BELOW is the receiver's verdict")                    \
  X(cause, "UNKNOWN, REFUSED and BELOW have a cause that really happened")            \
  X(complete, "every message completes, once")                                        \
  X(livelock, "packets and timer expiries stay in proportion to the work")            \
  X(budget, "room in use never exceeds the limit and returns to 0")                   \
  X(ids, "ids are unique and grow by one in a flow")                                  \
  X(first_pass, "pressure: nothing that was never sent is missing without a CLOSE")   \
  X(rounds, "a round of repair answers a NEED for the current pass")                  \
  X(clean, "pressure on a clean pipe: nothing sent again, nothing missing")           \
  X(memory, "everything is released")                                                 \
  X(check, "the core's own checks hold")

enum class Invariant {
#define X(name, text) name,
  DBLP_SIM_INVARIANTS(X)
#undef X
};

const char* invariant_name(Invariant i);
const char* invariant_text(Invariant i);

struct MsgSpec {
  uint32_t from = 0, to = 0;
  uint64_t at = 0;   // virtual time of sendmsg()
  uint32_t len = 1;  // bytes
  uint16_t seg_size = 512;
  uint32_t ppm = 0;
  uint8_t mode = 0;  // 0 pressure, 1 eager
  bool ordered = false;
  uint32_t deadline_us = 0;
  uint16_t max_rounds = 0;
  uint32_t group = 0;
  std::vector<std::pair<uint32_t, uint32_t>> protect;  // bytes: offset, length; any order
};

struct MsgRecord {
  MsgSpec spec;
  uint16_t seg_size = 0;
  uint32_t nsegs = 0;
  uint32_t allow = 0;
  uint64_t flow = 0, id = 0, submitted_at = 0;
  std::vector<dblp_segrun> prot;
  std::vector<bool> sent;  // segments that were put on the wire at least once
  bool shutdown = false;   // the sender asked for judgement of everything
  bool abandoned = false;  // the sender's endpoint is gone: no completion will come
  bool judged = false;
  uint8_t verdict = 0;
  uint32_t missing_bytes = 0;
  std::vector<bool> missing;
  bool completed = false;
  uint8_t outcome = 0;
  uint32_t wanted_passes = 0;  // highest pass a NEED was made for
};

class Ledger {
 public:
  // Of a run in which corrupted packets are delivered: then content proves nothing.
  explicit Ledger(bool content) : content_(content) {}

  // Records the first violation only; the run ends at the next event.
  void fail(Invariant what, std::string text);
  bool failed() const { return failed_; }
  Invariant what() const { return what_; }
  const std::string& text() const { return text_; }
  bool content() const { return content_; }

  uint32_t next_uid() const { return static_cast<uint32_t>(msgs_.size()); }
  // @m as it is after dblp_tx_submit(); the tag of @m is the uid returned.
  void submitted(const MsgSpec& spec, const dblp_tx& tx, const dblp_txmsg& m, uint64_t now);
  MsgRecord* find(uint64_t uid) { return uid < msgs_.size() ? &msgs_[uid] : nullptr; }
  std::vector<MsgRecord>& messages() { return msgs_; }

  // The receiver judged: @kept says per segment whether its payload was stored, @map is
  // the core's, set = missing, @verdict the core's.
  void judged(uint64_t uid, uint8_t verdict, const std::vector<bool>& kept, const dblp_segmap& map,
              uint32_t missing_bytes);
  // The sender completed; @receiver_limit is the largest message that the peer takes.
  void completed(uint64_t uid, const dblp_txmsg& m, uint64_t receiver_limit);
  // At the end of a run.
  void finish(bool clean);

 private:
  struct Group {
    uint64_t bytes = 0, missing = 0;
  };

  void fail(Invariant what, uint64_t uid, const char* text);

  bool content_;
  bool failed_ = false;
  Invariant what_ = Invariant::check;
  std::string text_;
  std::vector<MsgRecord> msgs_;
  std::map<uint64_t, uint64_t> last_id_;                              // per flow
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, Group> groups_;  // flow, group, ppm
};

// Payload of message @uid from byte @off, a function of both alone.
void fill_payload(uint64_t uid, uint32_t off, uint8_t* out, uint32_t len);
bool check_payload(uint64_t uid, uint32_t off, const uint8_t* p, uint32_t len);

}  // namespace dblp::sim

#endif  // DBLP_SIM_LEDGER_H

// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "ledger.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "../../rx.h"

namespace dblp::sim {

const char* invariant_name(Invariant i) {
  static const char* const names[] = {
#define X(name, text) #name,
      DBLP_SIM_INVARIANTS(X)
#undef X
  };
  return names[static_cast<int>(i)];
}

const char* invariant_text(Invariant i) {
  static const char* const texts[] = {
#define X(name, text) text,
      DBLP_SIM_INVARIANTS(X)
#undef X
  };
  return texts[static_cast<int>(i)];
}

void Ledger::fail(Invariant what, std::string text) {
  if (failed_) return;
  failed_ = true;
  what_ = what;
  text_ = std::move(text);
}

void Ledger::fail(Invariant what, uint64_t uid, const char* text) {
  const MsgRecord& r = msgs_[uid];
  fail(what, "message " + std::to_string(uid) + " (" + std::to_string(r.spec.from) + " to " +
                 std::to_string(r.spec.to) + ", id " + std::to_string(r.id) + ", " +
                 std::to_string(r.spec.len) + " bytes in " + std::to_string(r.nsegs) +
                 " segments): " + text);
}

void Ledger::submitted(const MsgSpec& spec, const dblp_tx& tx, const dblp_txmsg& m, uint64_t now) {
  const uint64_t uid = msgs_.size();
  MsgRecord& r = msgs_.emplace_back();

  r.spec = spec;
  r.seg_size = m.seg_size;
  r.nsegs = dblp_nsegs(m.len, m.seg_size);
  r.allow = m.allow;
  r.flow = tx.cfg.flow;
  r.id = m.id;
  r.submitted_at = now;
  r.prot.assign(m.prot, m.prot + m.nprot);
  r.sent.assign(r.nsegs, false);

  if (r.id != ++last_id_[r.flow]) fail(Invariant::ids, uid, "its id does not follow the last");
  const uint64_t share = static_cast<uint64_t>(spec.ppm) * spec.len / 1000000;
  if (!spec.group) {
    if (r.allow != share) fail(Invariant::allowance, uid, "the bound is not floor(P * L)");
    return;
  }
  if (r.allow > share + r.seg_size)
    fail(Invariant::allowance, uid, "more than a segment above its own share");
  groups_[{r.flow, spec.group, spec.ppm}].bytes += spec.len;
}

void Ledger::judged(uint64_t uid, uint8_t verdict, const std::vector<bool>& kept,
                    const dblp_segmap& map, uint32_t missing_bytes) {
  if (!content_) return;
  if (uid >= msgs_.size()) return fail(Invariant::payload, "a message was judged that nobody sent");
  MsgRecord& r = msgs_[uid];
  if (r.judged) return fail(Invariant::once, uid, "judged a second time");
  if (kept.size() != r.nsegs) return fail(Invariant::payload, uid, "wrong number of segments");

  uint32_t missing = 0;
  bool map_true = map.nbits == r.nsegs;
  bool never_sent = false;
  r.missing.assign(r.nsegs, false);
  for (uint32_t i = 0; i < r.nsegs && map_true; i++) {
    map_true = dblp_segmap_test(&map, i) != kept[i];
    if (kept[i]) continue;
    r.missing[i] = true;
    never_sent |= !r.sent[i];
    missing += dblp_seg_len(r.spec.len, r.seg_size, i);
  }
  r.judged = true;
  r.verdict = verdict;
  r.missing_bytes = missing;
  if (!map_true || missing != missing_bytes)
    return fail(Invariant::map_true, uid, "the map is not what was kept");

  bool protected_missing = false;
  for (const dblp_segrun& run : r.prot)
    for (uint32_t i = run.first; i < run.first + run.count; i++) protected_missing |= r.missing[i];
  if (verdict == DBLP_VERDICT_OK) {
    if (missing > r.allow) return fail(Invariant::bound, uid, "OK with more missing than A");
    if (protected_missing) return fail(Invariant::protect, uid, "OK without a protected segment");
    if (r.spec.mode == 0 && never_sent && !r.spec.deadline_us && !r.spec.max_rounds && !r.shutdown)
      return fail(Invariant::first_pass, uid, "OK without a segment that was never sent");
    if (r.spec.group) {
      Group& g = groups_[{r.flow, r.spec.group, r.spec.ppm}];
      g.missing += missing;
      if (g.missing > dblp_allowance(r.spec.ppm, g.bytes))
        return fail(Invariant::group, uid, "its group misses more than its tolerance");
    }
  } else {
    if (missing <= r.allow && !protected_missing)
      return fail(Invariant::bound, uid, "BELOW although the bound is met");
    if (!r.spec.deadline_us && !r.spec.max_rounds && !r.shutdown)
      return fail(Invariant::cause, uid, "BELOW without deadline, round cap or shutdown");
  }
}

void Ledger::completed(uint64_t uid, const dblp_txmsg& m, uint64_t receiver_limit) {
  MsgRecord& r = msgs_[uid];
  if (r.completed || r.abandoned) return fail(Invariant::complete, uid, "completed twice");
  r.completed = true;
  r.outcome = m.outcome;
  if (!content_) return;
  switch (m.outcome) {
    case DBLP_TX_OK:
    case DBLP_TX_BELOW: {
      if (!r.judged) return fail(Invariant::outcome, uid, "completed although nobody judged it");
      if (r.verdict != (m.outcome == DBLP_TX_OK ? DBLP_VERDICT_OK : DBLP_VERDICT_BELOW))
        return fail(Invariant::outcome, uid, "the two ends differ");
      uint32_t missing_segs = 0;
      for (uint32_t i = 0; i < r.nsegs; i++) {
        if (dblp_segmap_test(&m.map, i) != r.missing[i])
          return fail(Invariant::map_equal, uid, "the maps differ");
        missing_segs += r.missing[i];
      }
      if (m.missing_bytes != r.missing_bytes || m.missing_segs != missing_segs)
        return fail(Invariant::map_equal, uid, "the counts of what is missing differ");
      break;
    }
    case DBLP_TX_REFUSED:
      if (r.spec.len <= receiver_limit)
        return fail(Invariant::cause, uid, "REFUSED although the receiver takes it");
      if (m.limit != receiver_limit)
        return fail(Invariant::cause, uid, "REFUSED with a wrong limit");
      if (r.judged) return fail(Invariant::outcome, uid, "REFUSED after a judgement");
      break;
    case DBLP_TX_UNKNOWN:
      break;  // its cause is checked where the flow died
    default:
      return fail(Invariant::outcome, uid, "no such outcome");
  }
}

void Ledger::finish(bool clean) {
  for (uint64_t uid = 0; uid < msgs_.size(); uid++) {
    const MsgRecord& r = msgs_[uid];
    if (!r.completed && !r.abandoned) return fail(Invariant::complete, uid, "never completed");
    if (clean && r.outcome != DBLP_TX_OK && r.outcome != DBLP_TX_REFUSED && !r.spec.deadline_us)
      return fail(Invariant::clean, uid, "not OK");
    if (clean && r.judged && r.spec.mode == 0 && !r.spec.deadline_us && r.missing_bytes)
      return fail(Invariant::clean, uid, "incomplete");
  }
}

namespace {

uint32_t payload_word(uint64_t uid, uint32_t off) {
  return (static_cast<uint32_t>(uid) + 1) * 0x9e3779b1U ^ (off + 1) * 0x85ebca6bU;
}

}  // namespace

void fill_payload(uint64_t uid, uint32_t off, uint8_t* out, uint32_t len) {
  uint32_t i = 0;
  for (; i + 4 <= len; i += 4) {
    const uint32_t w = payload_word(uid, off + i);
    memcpy(out + i, &w, 4);
  }
  if (i < len) {
    const uint32_t w = payload_word(uid, off + i);
    memcpy(out + i, &w, len - i);
  }
}

bool check_payload(uint64_t uid, uint32_t off, const uint8_t* p, uint32_t len) {
  uint32_t differ = 0;
  uint32_t i = 0;
  for (; i + 4 <= len; i += 4) {
    uint32_t w;
    memcpy(&w, p + i, 4);
    differ |= w ^ payload_word(uid, off + i);
  }
  if (i < len) {
    const uint32_t w = payload_word(uid, off + i);
    differ |= static_cast<uint32_t>(memcmp(&w, p + i, len - i));
  }
  return !differ;
}

}  // namespace dblp::sim

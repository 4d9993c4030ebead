// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "search.h"

#include <cstring>
#include <deque>
#include <memory>
#include <unordered_set>
#include <vector>

#include "../sim/trace.h"

namespace dblp::model {
namespace {

constexpr size_t kWords = (sizeof(World) + 7) / 8;

// Words of the world that differ from the start.
struct Saved {
  std::vector<uint16_t> where;
  std::vector<uint64_t> what;
};

class Snapshots {
 public:
  Snapshots() : start_(kWords) { load_words(start_); }

  Saved save() {
    load_words(now_);
    Saved s;
    for (size_t i = 0; i < kWords; i++) {
      if (now_[i] == start_[i]) continue;
      s.where.push_back(static_cast<uint16_t>(i));
      s.what.push_back(now_[i]);
    }
    return s;
  }

  void restore(const Saved& s) {
    now_ = start_;
    for (size_t i = 0; i < s.where.size(); i++) now_[s.where[i]] = s.what[i];
    store_words(now_);
  }

 private:
  static void load_words(std::vector<uint64_t>& to) {
    to.assign(kWords, 0);
    memcpy(to.data(), &world, sizeof(world));
  }
  static void store_words(const std::vector<uint64_t>& from) {
    memcpy(&world, from.data(), sizeof(world));
  }

  std::vector<uint64_t> start_, now_;
};

static_assert(kWords < UINT16_MAX);

struct Origin {
  uint32_t parent;
  Action action;
};

// Replays the way to state @at, then @last, and writes it down.
std::string tell(const Config& config, bool acks, const std::vector<Origin>& origins, uint32_t at,
                 const Action* last, const char* violated) {
  std::vector<Action> way;
  for (uint32_t i = at; i; i = origins[i].parent) way.push_back(origins[i].action);
  std::string out = std::string(violated) + "\n  " + config.describe() + "\n";

  start(config, acks);
  auto step = [&out](const Action& a) {
    out += "  " + describe(a);
    if (a.step == Step::deliver || a.step == Step::duplicate) {
      const Packet& p = world.net[a.packet];
      out += ": " + sim::describe_datagram(p.bytes, get_unaligned_be16(p.bytes + 2), p.len);
    }
    out += "\n";
    act(a);
  };
  for (auto it = way.rbegin(); it != way.rend(); ++it) step(*it);
  if (last)
    step(*last);
  else
    out += "  and then nothing is lost any more\n";
  return out;
}

}  // namespace

Result search(const Config& config, const Bounds& bounds, uint64_t max_states) {
  struct Waiting {
    uint32_t index, depth;
    Saved saved;
  };
  Result result;
  std::unordered_set<uint64_t> seen;
  std::vector<Origin> origins;
  std::deque<Waiting> frontier;

  start(config, bounds.acks);
  Snapshots snapshots;
  auto visit = [&](uint32_t parent, const Action& action, uint32_t depth) {
    if (!seen.insert(fingerprint()).second) return;
    origins.push_back({parent, action});
    frontier.push_back({static_cast<uint32_t>(origins.size() - 1), depth, snapshots.save()});
    result.depth = depth;
  };
  visit(0, {}, 0);
  while (!frontier.empty()) {
    const Waiting state = std::move(frontier.front());
    frontier.pop_front();
    result.states++;
    snapshots.restore(state.saved);
    const bool done = world.completed;
    const std::vector<Action> actions = possible(bounds);
    for (const Action& a : actions) {
      snapshots.restore(state.saved);
      act(a);
      result.steps++;
      if (world.violated) {
        result.violation = tell(config, bounds.acks, origins, state.index, &a, world.violated);
        return result;
      }
      if (origins.size() < max_states)
        visit(state.index, a, state.depth + 1);
      else
        result.complete = false;
    }
    for (bool drop : {false, true}) {
      if (done) break;
      snapshots.restore(state.saved);
      result.continuations++;
      if (!run_to_the_end(drop)) {
        result.violation = tell(config, bounds.acks, origins, state.index, nullptr, world.violated);
        return result;
      }
    }
  }
  return result;
}

}  // namespace dblp::model

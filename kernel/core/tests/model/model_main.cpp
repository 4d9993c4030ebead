// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Checks every state that one message can get into, for small messages.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "search.h"

using namespace dblp::model;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif

}  // namespace

int main(int argc, char** argv) {
  Bounds bounds;
  uint64_t max_states = 50'000'000;
  uint32_t segments_only = kSlow ? 3 : 0;
  bool expect = false, verbose = false;

  for (int i = 1; i < argc; i++) {
    const bool more = i + 1 < argc;
    if (!strcmp(argv[i], "--expect-violation")) {
      expect = true;
    } else if (!strcmp(argv[i], "--verbose")) {
      verbose = true;
    } else if (!strcmp(argv[i], "--packets") && more) {
      bounds.packets = static_cast<uint32_t>(atoi(argv[++i]));
    } else if (!strcmp(argv[i], "--tx-timers") && more) {
      bounds.tx_timers = static_cast<uint32_t>(atoi(argv[++i]));
    } else if (!strcmp(argv[i], "--rx-timers") && more) {
      bounds.rx_timers = static_cast<uint32_t>(atoi(argv[++i]));
    } else if (!strcmp(argv[i], "--duplicates") && more) {
      bounds.duplicates = static_cast<uint32_t>(atoi(argv[++i]));
    } else if (!strcmp(argv[i], "--segments") && more) {
      segments_only = static_cast<uint32_t>(atoi(argv[++i]));
    } else if (!strcmp(argv[i], "--acks")) {
      bounds.acks = true;
    } else if (!strcmp(argv[i], "--max-states") && more) {
      max_states = strtoull(argv[++i], nullptr, 0);
    } else {
      fprintf(stderr,
              "usage: model_main [--segments N] [--packets N] [--tx-timers N] [--rx-timers N]\n"
              "                  [--duplicates N] [--acks] [--max-states N] [--verbose]\n"
              "                  [--expect-violation]\n");
      return 2;
    }
  }

  printf(
      "bounds: a probe only while fewer than %u packets are in flight; expiries of timers: "
      "sender %u,\nreceiver %u; %u duplicates; ACKs %s; any loss, any order\n",
      bounds.packets, bounds.tx_timers, bounds.rx_timers, bounds.duplicates,
      bounds.acks ? "are read" : "are lost but for completed ids");
  Result total;
  uint32_t configs = 0;
  for (uint32_t segments : {3U, 4U})
    for (uint32_t allow : {0U, 1U, 2U})
      for (uint8_t mode : {0, 1})
        for (int ending = 0; ending < 3; ending++)
          for (bool protect : {false, true}) {
            if (segments_only && segments != segments_only) continue;
            const Config c{segments, allow, mode, ending == 1, ending == 2, protect, true};
            const Result r = search(c, bounds, max_states);
            configs++;
            total.states += r.states;
            total.steps += r.steps;
            total.continuations += r.continuations;
            if (r.depth > total.depth) total.depth = r.depth;
            total.complete &= r.complete;
            if (verbose)
              printf("%s: %llu states, depth %u%s\n", c.describe().c_str(),
                     static_cast<unsigned long long>(r.states), r.depth,
                     r.complete ? "" : " (cut)");
            if (!r.violation.empty()) {
              printf("violated: %s", r.violation.c_str());
              return expect ? 0 : 1;
            }
          }
  printf("%u configurations, %llu states, %llu steps, %llu continuations to the end, depth %u%s\n",
         configs, static_cast<unsigned long long>(total.states),
         static_cast<unsigned long long>(total.steps),
         static_cast<unsigned long long>(total.continuations), total.depth,
         total.complete ? "" : ": NOT all states");
  return expect || !total.complete ? 1 : 0;
}

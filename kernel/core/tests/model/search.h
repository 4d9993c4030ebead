// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Breadth-first search of all states that a configuration can reach.
#ifndef DBLP_MODEL_SEARCH_H
#define DBLP_MODEL_SEARCH_H

#include <cstdint>
#include <string>

#include "world.h"

namespace dblp::model {

struct Result {
  uint64_t states = 0, steps = 0, continuations = 0;
  uint32_t depth = 0;
  bool complete = true;   // false: stopped at the limit of states
  std::string violation;  // empty, or what was violated and the shortest way to it
};

Result search(const Config& config, const Bounds& bounds, uint64_t max_states);

}  // namespace dblp::model

#endif  // DBLP_MODEL_SEARCH_H

// SPDX-License-Identifier: GPL-2.0
//
// dblp-perf --server: several clients at once, a thread for each.
#pragma once

#include "options.hpp"

namespace perf {

// Serves until SIGTERM or SIGINT. Throws if it cannot listen.
void run_server(const Options& options);

}  // namespace perf

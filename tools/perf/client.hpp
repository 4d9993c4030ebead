// SPDX-License-Identifier: GPL-2.0
//
// The client: rank 0 of a test, and the one who conducts it.
#pragma once

#include <memory>
#include <vector>

#include "messages.hpp"
#include "options.hpp"
#include "result.hpp"

namespace perf {

// Runs the test. Throws what went wrong.
Result run_client(const Options& options);

}  // namespace perf

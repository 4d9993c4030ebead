// SPDX-License-Identifier: GPL-2.0
//
// A server's part in one client's test, from its first message to its last.
#pragma once

#include <cstdint>

#include "control.hpp"

namespace perf {

// Version of what is said on control connections; both ends must have the same.
inline constexpr std::uint64_t kControlVersion = 1;

// Serves `control` until the client is done. Throws what ended it otherwise, after
// having told the client.
void serve_session(Control& control, std::uint64_t jitter_us, int stop_fd);

}  // namespace perf

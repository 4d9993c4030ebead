// SPDX-License-Identifier: GPL-2.0
//
// How far a server's clock is from the client's, where they are not the same one.
#pragma once

#include <cstdint>

#include "control.hpp"

namespace perf {

struct ClockOffset {
  std::int64_t ns = 0;        // to be taken from the server's time
  std::int64_t error_ns = 0;  // it is wrong by that at most
};

// From the quickest of some questions and answers: half of the time that one took is
// the most it can be wrong by.
ClockOffset measure_clock(Control& control);

}  // namespace perf

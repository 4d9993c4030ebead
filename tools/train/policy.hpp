// SPDX-License-Identifier: GPL-2.0
//
// How much of a gradient may get lost in which round. What is lost early in the
// training costs more than what is lost later, so the first rounds are strict.
#pragma once

#include <cstdint>

#include "dblp/send_options.hpp"

namespace train {

struct Schedule {
  double low = 0.008;      // tolerance of the critical rounds
  double high = 0.408;     // and of all others
  double critical = 0.10;  // share of the rounds that are critical: the first ones

  [[nodiscard]] dblp::Tolerance at(std::uint32_t round, std::uint32_t rounds) const {
    return static_cast<double>(round) < critical * static_cast<double>(rounds) ? low : high;
  }
};

}  // namespace train

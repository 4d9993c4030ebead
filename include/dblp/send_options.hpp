// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// How one message is to be sent, above all how much of it may be missing.
//
//   dblp::SendOptions options{.tolerance = 0.05};   // 5 % of the bytes
//   options.protect = {{0, 64}};                    // but never the first 64
#pragma once

#include <linux/dblp.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "dblp/map.hpp"

namespace dblp {

// A share of a message's bytes, in millionths. A share outside 0 to 1 (NaN
// too) is kept as invalid, and sending with it is EINVAL.
class Tolerance {
 public:
  constexpr Tolerance() = default;
  constexpr Tolerance(double share)  // NOLINT: implicit, so that 0.05 is one
      : ppm_(share >= 0.0 && share <= 1.0 ? static_cast<std::uint32_t>(share * DBLP_PPM + 0.5)
                                          : kInvalid) {}
  static constexpr Tolerance ppm(std::uint32_t millionths) {
    Tolerance tolerance;
    tolerance.ppm_ = millionths <= DBLP_PPM ? millionths : kInvalid;
    return tolerance;
  }

  [[nodiscard]] constexpr std::optional<std::uint32_t> ppm() const {
    if (ppm_ == kInvalid) return std::nullopt;
    return ppm_;
  }
  [[nodiscard]] constexpr bool reliable() const { return ppm_ == 0; }

 private:
  static constexpr std::uint32_t kInvalid = ~std::uint32_t{0};

  std::uint32_t ppm_ = 0;
};

enum class Mode : std::uint8_t {
  // Only what the network lost is given up, and only within the tolerance.
  kPressure = DBLP_MODE_PRESSURE,
  // The receiver stops the sender as soon as enough has arrived.
  kEager = DBLP_MODE_EAGER,
};

struct SendOptions {
  Tolerance tolerance{};  // reliable unless set
  Mode mode = Mode::kPressure;
  std::chrono::microseconds deadline{0};  // judged then at the latest; 0: none
  std::vector<Range> protect{};           // must arrive whatever the tolerance
  std::uint8_t phase = 0;                 // for the receiver
  std::uint8_t priority = 0;              // 0 to 7, for the receiver
  std::uint64_t tag = 0;                  // for the receiver and the completion
  std::uint32_t group = 0;                // shares its tolerance; 0: none
  std::uint16_t max_rounds = 0;           // repair rounds; 0: no cap
  bool ordered = false;                   // segments in order, not permuted
};

}  // namespace dblp

// SPDX-License-Identifier: GPL-2.0
//
// Frames of the control connection: four bytes of length, most significant first,
// then that many bytes of one JSON object with a string "type". What a stranger sends
// to the port must do no harm: lengths and depth are bounded, all else is refused.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace perf {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMaxFrame = std::size_t{1} << 20;
inline constexpr int kMaxFrameDepth = 16;

std::vector<std::byte> encode_frame(const Json& message);

class FrameParser {
 public:
  void append(std::span<const std::byte> bytes);
  // The next whole frame, if it is there. Throws Failure for what is none.
  std::optional<Json> next();
  // Bytes that are not part of a whole frame yet.
  [[nodiscard]] std::size_t pending() const { return buffer_.size() - used_; }

 private:
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
};

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "frame.hpp"

#include <cstring>

#include "failure.hpp"

namespace perf {

namespace {

constexpr std::size_t kLengthBytes = 4;

Json parse(const char* text, std::size_t length) {
  const auto shallow = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxFrameDepth) throw Failure("control connection: nested too deeply");
    return true;
  };
  Json message = Json::parse(text, text + length, shallow, false);
  if (!message.is_object() || !message.contains("type") || !message["type"].is_string())
    throw Failure("control connection: not a message of dblp-perf");
  return message;
}

}  // namespace

std::vector<std::byte> encode_frame(const Json& message) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxFrame) throw Failure("control connection: message too long");
  std::vector<std::byte> frame(kLengthBytes + text.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    frame[i] = static_cast<std::byte>(text.size() >> (8 * (kLengthBytes - 1 - i)));
  std::memcpy(frame.data() + kLengthBytes, text.data(), text.size());
  return frame;
}

void FrameParser::append(std::span<const std::byte> bytes) {
  if (used_ > 0) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ = 0;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<Json> FrameParser::next() {
  if (pending() < kLengthBytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length = length << 8 | std::to_integer<std::size_t>(buffer_[used_ + i]);
  if (length == 0 || length > kMaxFrame)
    throw Failure("control connection: not a message of dblp-perf");
  if (pending() < kLengthBytes + length) return std::nullopt;
  const auto* text = reinterpret_cast<const char*>(buffer_.data() + used_ + kLengthBytes);
  used_ += kLengthBytes + length;
  return parse(text, length);
}

}  // namespace perf

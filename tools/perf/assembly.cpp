// SPDX-License-Identifier: GPL-2.0

#include "assembly.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perf {

Fragment make_fragment(const TransportSetup& setup, const Outgoing& message, std::uint16_t unit,
                       Fragment::Kind kind) {
  const auto length = static_cast<std::uint32_t>(message.data.size());
  return {.token = setup.token,
          .tag = message.tag,
          .length = length,
          .offset = 0,
          .allowed =
              static_cast<std::uint32_t>(std::uint64_t{length} * message.tolerance_ppm / 1'000'000),
          .unit = unit,
          .kind = kind,
          .rank = static_cast<std::uint8_t>(setup.rank)};
}
namespace {

// Fragments of a message may come late; of one older than this, no more.
constexpr std::size_t kRemembered = 65536;

std::uint32_t segments_of(std::uint32_t length, std::uint32_t unit) {
  return (length + unit - 1) / unit;
}

}  // namespace

bool Assembly::possible(const Fragment& fragment, std::size_t payload) const {
  if (fragment.length == 0 || fragment.length > max_message_ || fragment.unit == 0) return false;
  if (fragment.allowed > fragment.length) return false;
  if (fragment.kind != Fragment::kData) return payload == 0;
  if (fragment.offset >= fragment.length || fragment.offset % fragment.unit != 0) return false;
  return payload == std::min<std::size_t>(fragment.unit, fragment.length - fragment.offset);
}

Assembly::Message& Assembly::message_of(const Fragment& fragment) {
  const auto [place, is_new] = open_.try_emplace(fragment.tag);
  Message& message = place->second;
  if (!is_new) return message;
  message.tag = fragment.tag;
  message.length = message.missing = fragment.length;
  message.unit = fragment.unit;
  message.allowed = fragment.allowed;
  if (!spare_.empty()) {
    message.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  if (message.bytes.size() < fragment.length) message.bytes.resize(fragment.length);
  const std::uint32_t segments = segments_of(fragment.length, fragment.unit);
  message.missing_segments.assign((segments + 63) / 64, ~std::uint64_t{0});
  return message;
}

bool Assembly::over(const Message& message) const {
  if (message.missing == 0 || message.ended) return true;
  return message.missing <= message.allowed && message.allowed > 0 && (eager_ || message.sent);
}

bool Assembly::add(const Fragment& fragment, std::span<const std::byte> payload, std::int64_t now) {
  if (!possible(fragment, payload.size())) return false;
  if (done_.contains(fragment.tag)) return true;
  Message& message = message_of(fragment);
  if (message.length != fragment.length || message.unit != fragment.unit) return false;
  switch (fragment.kind) {
    case Fragment::kData: {
      const std::uint32_t segment = fragment.offset / fragment.unit;
      auto& word = message.missing_segments[segment / 64];
      const std::uint64_t bit = std::uint64_t{1} << (segment % 64);
      if ((word & bit) == 0) return true;
      word &= ~bit;
      std::memcpy(message.bytes.data() + fragment.offset, payload.data(), payload.size());
      message.missing -= static_cast<std::uint32_t>(payload.size());
      break;
    }
    case Fragment::kSent:
      message.sent = true;
      break;
    case Fragment::kEnd:
      message.ended = true;
      break;
    default:
      return false;
  }
  if (!over(message)) return true;
  message.over_ns = now;
  over_.push_back(std::move(message));
  open_.erase(fragment.tag);
  done_.insert(fragment.tag);
  done_order_.push_back(fragment.tag);
  if (done_order_.size() > kRemembered) forget_oldest();
  return true;
}

void Assembly::forget_oldest() {
  done_.erase(done_order_.front());
  done_order_.pop_front();
}

std::optional<Arrival> Assembly::take() {
  if (given_) {
    spare_.push_back(std::move(given_->bytes));
    given_.reset();
  }
  if (over_.empty()) return std::nullopt;
  given_ = std::move(over_.front());
  over_.pop_front();
  Message& message = *given_;
  Arrival arrival;
  arrival.peer = peer_;
  arrival.tag = message.tag;
  arrival.missing = message.missing;
  arrival.below = message.missing > message.allowed;
  arrival.at_ns = message.over_ns;
  if (message.missing > 0) {
    arrival.holes = dblp::Map(message.length, segments_of(message.length, message.unit),
                              message.unit, std::move(message.missing_segments));
    arrival.holes.for_each_range(
        [&](dblp::Range hole) { std::memset(message.bytes.data() + hole.offset, 0, hole.length); });
  }
  arrival.data = std::span(message.bytes).first(message.length);
  return arrival;
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0

#include "messages.hpp"

#include <fmt/format.h>

#include <limits>

#include "failure.hpp"

namespace perf {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostTime = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kLongestAddress = 64;

std::int64_t time_from(const Json& json, const char* key) {
  return static_cast<std::int64_t>(get_number(json, key, kMostTime));
}

std::optional<std::uint64_t> optional_number(const Json& json, const char* key) {
  if (!json.contains(key) || json[key].is_null()) return std::nullopt;
  return get_number(json, key, kMost);
}

Json optional_json(const std::optional<std::uint64_t>& value) {
  return value ? Json(*value) : Json();
}

dblp::Address parse_address(const std::string& text) {
  auto address = dblp::Address::parse(text);
  if (!address) throw Failure(fmt::format("control connection: '{}' is not an address", text));
  return *address;
}

}  // namespace

dblp::Address address_from_json(const Json& object, const char* key) {
  return parse_address(get_string(object, key, kLongestAddress));
}

std::vector<dblp::Address> addresses_from_json(const Json& object, const char* key,
                                               std::size_t count) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array() || found->size() != count)
    throw Failure(fmt::format("control connection: '{}' is not a list of {}", key, count));
  std::vector<dblp::Address> result;
  for (const auto& one : *found) {
    if (!one.is_string() || one.get_ref<const std::string&>().size() > kLongestAddress)
      throw Failure("control connection: an address is not a text");
    result.push_back(parse_address(one.get<std::string>()));
  }
  return result;
}

Json round_to_json(const RoundRecord& record) {
  return {{"type", "done"},        {"start_ns", record.start_ns},   {"end_ns", record.end_ns},
          {"bytes", record.bytes}, {"delivered", record.delivered}, {"missing", record.missing},
          {"below", record.below}};
}

RoundRecord round_from_json(const Json& json) {
  RoundRecord record;
  record.start_ns = time_from(json, "start_ns");
  record.end_ns = time_from(json, "end_ns");
  record.bytes = get_number(json, "bytes", kMost);
  record.delivered = get_number(json, "delivered", kMost);
  record.missing = get_number(json, "missing", kMost);
  record.below = get_number(json, "below", kMost);
  return record;
}

Json stream_to_json(const StreamCount& count) {
  return {{"messages", count.messages}, {"bytes", count.bytes},     {"missing", count.missing},
          {"below", count.below},       {"last_ns", count.last_ns}, {"intervals", count.intervals}};
}

StreamCount stream_from_json(const Json& json) {
  StreamCount count;
  count.messages = get_number(json, "messages", kMost);
  count.bytes = get_number(json, "bytes", kMost);
  count.missing = get_number(json, "missing", kMost);
  count.below = get_number(json, "below", kMost);
  count.last_ns = time_from(json, "last_ns");
  const auto intervals = json.find("intervals");
  if (intervals == json.end() || !intervals->is_array())
    throw Failure("control connection: there is no 'intervals'");
  for (const auto& one : *intervals) {
    if (!one.is_number_unsigned()) throw Failure("control connection: an interval is not a number");
    count.intervals.push_back(one.get<std::uint64_t>());
  }
  return count;
}

Json traffic_to_json(const Traffic& traffic, std::uint64_t verified) {
  return {{"type", "settled"},
          {"offered", traffic.offered},
          {"sent", optional_json(traffic.sent)},
          {"retransmitted", optional_json(traffic.retransmitted)},
          {"tolerated", optional_json(traffic.tolerated)},
          {"verified", verified}};
}

Settled traffic_from_json(const Json& json) {
  return {{.offered = get_number(json, "offered", kMost),
           .sent = optional_number(json, "sent"),
           .retransmitted = optional_number(json, "retransmitted"),
           .tolerated = optional_number(json, "tolerated")},
          get_number(json, "verified", kMost)};
}

}  // namespace perf

// SPDX-License-Identifier: GPL-2.0
//
// Messages of the control connection that both ends make and read. Those that read
// throw for anything the other end cannot have meant.
#pragma once

#include <vector>

#include "dblp/address.hpp"
#include "frame.hpp"
#include "rank.hpp"
#include "workloads.hpp"

namespace perf {

dblp::Address address_from_json(const Json& object, const char* key);
std::vector<dblp::Address> addresses_from_json(const Json& object, const char* key,
                                               std::size_t count);

Json round_to_json(const RoundRecord& record);
RoundRecord round_from_json(const Json& json);

Json stream_to_json(const StreamCount& count);
StreamCount stream_from_json(const Json& json);

struct Settled {
  Traffic traffic;
  std::uint64_t verified = 0;  // payload bytes
};
Json traffic_to_json(const Traffic& traffic, std::uint64_t verified);
Settled traffic_from_json(const Json& json);

}  // namespace perf

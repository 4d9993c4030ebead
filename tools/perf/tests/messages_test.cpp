// SPDX-License-Identifier: GPL-2.0

#include "messages.hpp"

#include <gtest/gtest.h>

#include "failure.hpp"

namespace perf {
namespace {

Json wire(const Json& json) { return Json::parse(json.dump()); }

TEST(Messages, ComeBackAsTheyWere) {
  const RoundRecord idle;  // a rank that sent and received nothing
  const RoundRecord back = round_from_json(wire(round_to_json(idle)));
  EXPECT_EQ(back.start_ns, kNever);
  EXPECT_EQ(back.end_ns, 0);

  const StreamCount count{3, 4, 5, 6, 7, {8, 9}};
  EXPECT_EQ(stream_to_json(stream_from_json(wire(stream_to_json(count)))), stream_to_json(count));

  const Traffic some{.offered = 1, .sent = {}, .retransmitted = 0, .tolerated = 4};
  const Settled settled = traffic_from_json(wire(traffic_to_json(some, 11)));
  EXPECT_EQ(settled.traffic.sent, std::nullopt);
  EXPECT_EQ(settled.traffic.retransmitted, 0U);
  EXPECT_EQ(settled.traffic.tolerated, 4U);
  EXPECT_EQ(settled.verified, 11U);
}

TEST(Messages, NoTimeIsBelieved) {
  Json json = wire(round_to_json({}));
  json["end_ns"] = ~std::uint64_t{0};
  EXPECT_THROW((void)round_from_json(json), Failure);
  json["end_ns"] = -5;
  EXPECT_THROW((void)round_from_json(json), Failure);
}

TEST(Messages, AddressesAreNumbersAndAsManyAsThereAreHosts) {
  const Json good = Json::parse(R"({"a":["1.2.3.4:5","[::1]:6"]})");
  EXPECT_EQ(addresses_from_json(good, "a", 2).at(1).port(), 6);
  EXPECT_THROW((void)addresses_from_json(good, "a", 3), Failure);
  EXPECT_THROW((void)addresses_from_json(good, "b", 2), Failure);
  for (const char* bad : {R"({"a":[1]})", R"({"a":["localhost:5"]})", R"({"a":["1.2.3.4"]})",
                          R"({"a":[""]})", R"({"a":"1.2.3.4:5"})"})
    EXPECT_THROW((void)addresses_from_json(Json::parse(bad), "a", 1), Failure) << bad;
}

}  // namespace
}  // namespace perf

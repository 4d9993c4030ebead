// SPDX-License-Identifier: GPL-2.0

#include "config.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "failure.hpp"

namespace perf {
namespace {

Config good() {
  Config config;
  config.workload.bytes = 1000;
  return config;
}

// As it comes from the other end.
Json wire(const Config& config) { return Json::parse(to_json(config).dump()); }

std::string reason(const std::function<void()>& what) {
  try {
    what();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "nothing was wrong";
}

TEST(Config, ComesBackAsItWas) {
  Config config = good();
  auto& w = config.workload;
  auto& t = config.transport;
  w.test = TestKind::kTranspose;
  w.bytes = 4'000'000'000;
  w.rounds = 7;
  w.seed = ~std::uint64_t{0};
  w.verify = false;
  t.name = "dblp";
  t.phase_ppm = {1, 2, 1'000'000};
  t.protect = {{0, 64}, {~std::uint64_t{0}, 1}};
  t.eager = true;
  t.congestion = "fixed";
  t.rate = 12345;
  EXPECT_EQ(to_json(config_from_json(wire(config))), to_json(config));
}

// Any field that is missing, of another kind, negative or too large is refused by name.
TEST(Config, NoFieldIsBelieved) {
  const Json all = wire(good());
  for (const char* part : {"workload", "transport"}) {
    for (const auto& [key, value] : all[part].items()) {
      SCOPED_TRACE(key);
      Json json = all;
      json[part].erase(key);
      EXPECT_THROW(config_from_json(json), Failure);
      for (const Json& bad : {Json(), Json(-1), Json(1.5), Json("\x01"), Json({{"a", 1}}),
                              Json::array({Json::array({1, 2, 3})}), Json::array({-1})}) {
        json = all;
        json[part][key] = bad;
        if (value.is_string() && bad.is_string()) continue;
        EXPECT_THROW(config_from_json(json), Failure) << bad;
      }
    }
    Json json = all;
    json[part] = 3;
    EXPECT_THROW(config_from_json(json), Failure);
  }
  Json json = all;
  json["transport"]["priority"] = 256;
  EXPECT_THROW(config_from_json(json), Failure);
  json = all;
  json["workload"]["test"] = std::string(1000, 'x');
  EXPECT_THROW(config_from_json(json), Failure);
}

TEST(Config, WrongNamesAreAnsweredWithThoseThatThereAre) {
  EXPECT_EQ(parse_test("stream"), TestKind::kStream);
  EXPECT_EQ(parse_test("MSG"), TestKind::kMessage);
  const auto test = reason([] { parse_test("STREEM"); });
  EXPECT_NE(test.find("TRANSPOSE"), std::string::npos) << test;
  EXPECT_NE(test.find("did you mean STREAM?"), std::string::npos) << test;
  const auto transport = reason([] { check_transport_name("tcp-cubik"); });
  EXPECT_NE(transport.find("did you mean tcp-cubic?"), std::string::npos) << transport;
  EXPECT_EQ(reason([] { check_transport_name("quic"); }).find("did you mean"), std::string::npos);
}

TEST(Config, RefusesWhatContradictsItself) {
  const auto refused = [](const std::function<void(Config&)>& change, std::size_t ranks = 2) {
    Config config = good();
    change(config);
    EXPECT_THROW(validate(config, ranks), Failure);
  };
  EXPECT_NO_THROW(validate(good(), 2));
  refused([](Config&) {}, 1);
  refused([](Config&) {}, 1025);
  refused([](Config& c) { c.workload.bytes = 0; });
  refused([](Config& c) { c.workload.bytes = (std::uint64_t{1} << 29) + 1; });
  refused([](Config& c) { c.workload.rounds = 0; });
  refused([](Config& c) { c.workload.test = TestKind::kStream; });
  refused([](Config& c) { c.transport.tolerance_ppm = 1'000'001; });
  refused([](Config& c) { c.transport.phase_ppm = {0, 1'000'001}; });
  refused([](Config& c) { c.transport.phase_ppm.assign(257, 0); });
  refused([](Config& c) { c.transport.priority = 8; });
  refused([](Config& c) { c.transport.rate = 1; });
  refused([](Config& c) { c.transport.congestion = "fixed"; });
  refused(
      [](Config& c) {
        c.workload.test = TestKind::kRing;
        c.workload.bytes = 3;
      },
      4);
  for (const char* name : {"tcp-cubic", "sctp"}) {
    refused([&](Config& c) { c.transport.name = name, c.transport.tolerance_ppm = 1; });
    refused([&](Config& c) { c.transport.name = name, c.transport.eager = true; });
    refused([&](Config& c) { c.transport.name = name, c.transport.protect = {{0, 1}}; });
    refused([&](Config& c) { c.transport.name = name, c.transport.max_rtx = 1; });
    refused([&](Config& c) { c.transport.name = name, c.transport.congestion = "bdp"; });
  }
}

TEST(Config, PartsOfAVectorAreAtMostOneMessage) {
  Workload workload;
  workload.test = TestKind::kRing;
  workload.bytes = 10;
  EXPECT_EQ(largest_message(workload, 4), 3U);
  workload.test = TestKind::kMessage;
  EXPECT_EQ(largest_message(workload, 4), 10U);
}

TEST(Config, TolerancesOfRoundsTakeTurns) {
  TransportOptions options;
  options.tolerance_ppm = 9;
  EXPECT_EQ(options.tolerance_of(5), 9U);
  options.phase_ppm = {1, 2, 3};
  EXPECT_EQ(options.tolerance_of(0), 1U);
  EXPECT_EQ(options.tolerance_of(5), 3U);
}

}  // namespace
}  // namespace perf

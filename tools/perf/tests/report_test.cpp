// SPDX-License-Identifier: GPL-2.0

#include "report.hpp"

#include <gtest/gtest.h>

#include "failure.hpp"
#include "summary.hpp"

namespace perf {
namespace {

Options options(TestKind test) {
  Options o;
  o.config.workload.test = test;
  o.config.workload.bytes = 1000;
  o.config.transport.name = "dblp";
  return o;
}

Result rounds() {
  Result result;
  result.hosts.push_back({"client", "10.0.0.1", Json::object()});
  result.warm.push_back({0, 9'000'000, 1000, 980, 20, 20, 20});
  result.rounds.push_back({10'000'000, 12'000'000, 1000, 900, 100, 50, 100});
  result.rounds.push_back({20'000'000, 21'000'000, 1000, 1000, 0, 0});
  result.traffic = {.offered = 3000, .sent = 3050, .retransmitted = 70, .tolerated = 120};
  return result;
}

TEST(Report, RoundsAddUpAndWarmOnesAreApart) {
  const Json json = report_json(options(TestKind::kMessage), rounds());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["rounds"].size(), 2U);
  EXPECT_EQ(json["warm_rounds"].size(), 1U);
  EXPECT_EQ(json["rounds"][0]["missing_bytes"], 100);
  const Json& end = json["end"];
  EXPECT_DOUBLE_EQ(end["seconds"].get<double>(), 0.003);
  EXPECT_EQ(end["offered_bytes"], 2000);
  EXPECT_EQ(end["delivered_bytes"], 1900);
  EXPECT_EQ(end["missing_bytes"], 100);
  EXPECT_EQ(end["retransmitted_bytes"], 50) << "those of warm rounds do not count";
  EXPECT_EQ(end["tolerated_bytes"], 100);
  EXPECT_NEAR(end["bits_per_second"].get<double>(), 1900 * 8 / 0.003, 1);
  EXPECT_DOUBLE_EQ(end["first_round_s"].get<double>(), 0.009);
  EXPECT_DOUBLE_EQ(end["round"]["p50_s"].get<double>(), 0.001);
  EXPECT_DOUBLE_EQ(end["round"]["max_s"].get<double>(), 0.002);
}

TEST(Report, IterationsHaveAMeanAndAWidth) {
  Options o = options(TestKind::kStream);
  o.confidence_level = 95;
  o.confidence_width = 5;
  Result result;
  for (const std::uint64_t bytes : {900, 1000, 1100}) {
    Iteration one;
    one.seconds = 1;
    one.bytes = bytes;
    result.iterations.push_back(one);
  }
  const Summary summary = summarize(o, result);
  EXPECT_DOUBLE_EQ(summary.rate, 8000);
  EXPECT_NEAR(*summary.confidence_width, 49.68, 0.01);
  EXPECT_TRUE(confidence_missed(o, summary));
  EXPECT_EQ(report_json(o, result)["end"]["confidence_reached"], false);
  EXPECT_NE(report_text(o, result).find("WARNING"), std::string::npos);
}

TEST(Report, WhatIsNotKnownIsNull) {
  Result result = rounds();
  result.traffic.retransmitted.reset();
  result.traffic.tolerated.reset();
  const Json end = report_json(options(TestKind::kMessage), result)["end"];
  EXPECT_TRUE(end["retransmitted_bytes"].is_null());
  EXPECT_TRUE(end["tolerated_bytes"].is_null());
}

TEST(Report, LinesFitATerminal) {
  const std::string text = report_text(options(TestKind::kMessage), rounds());
  std::size_t start = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    EXPECT_LE(end - start, 80U) << text.substr(start, end - start);
    start = end + 1;
  }
}

TEST(Report, Selectors) {
  Options o = options(TestKind::kMessage);
  o.selectors = {"PROTOCOL", "P50_LATENCY", "missing_bytes"};
  EXPECT_EQ(report_selected(o, rounds()),
            "PROTOCOL=dblp\nP50_LATENCY=1000.000\nmissing_bytes=100\n");
  o.csv = true;
  EXPECT_EQ(report_selected(o, rounds()),
            "PROTOCOL,P50_LATENCY,missing_bytes\ndblp,1000.000,100\n");
  EXPECT_THROW(check_selectors({"P50_LATENCI"}), Failure);
}

}  // namespace
}  // namespace perf

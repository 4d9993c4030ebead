// SPDX-License-Identifier: GPL-2.0

#include "options.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "failure.hpp"

namespace perf {
namespace {

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "dblp-perf");
  auto options = parse_options(static_cast<int>(words.size()), words.data());
  EXPECT_TRUE(options.has_value());
  return options.value_or(Options{});
}

void refuse(const std::vector<const char*>& words, const char* because) {
  try {
    parse(words);
    ADD_FAILURE() << "was accepted, but for: " << because;
  } catch (const Failure& failure) {
    const std::string text = failure.what();
    EXPECT_NE(text.find(because), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << "more than one line: " << text;
  }
}

TEST(Options, Server) {
  const auto o = parse({"--server", "-B", "10.0.0.1", "-p", "7", "--jitter-us", "20"});
  EXPECT_TRUE(o.server);
  EXPECT_EQ(o.bind, "10.0.0.1");
  EXPECT_EQ(o.port, 7);
  EXPECT_EQ(o.jitter_us, 20U);
}

// As tools/lab calls it.
TEST(Options, OfTheLab) {
  const auto o = parse({"-H",
                        "10.0.0.2,10.0.0.3",
                        "-p",
                        "12865",
                        "-B",
                        "10.0.0.1",
                        "-t",
                        "INCAST",
                        "-T",
                        "dblp",
                        "-J",
                        "--jitter-us",
                        "3",
                        "--seed",
                        "18446744073709551615",
                        "--",
                        "-H",
                        "10.1.0.2,10.1.0.3",
                        "-L",
                        "10.1.0.1",
                        "-m",
                        "1000000",
                        "-r",
                        "20",
                        "-w",
                        "1",
                        "--compute-us",
                        "500",
                        "--mode",
                        "eager",
                        "--phase-ppm",
                        "0,50000",
                        "--deadline-us",
                        "90000",
                        "--tolerance-ppm",
                        "10000"});
  EXPECT_EQ(o.hosts, (std::vector<std::string>{"10.0.0.2", "10.0.0.3"}));
  EXPECT_EQ(o.data_hosts, (std::vector<std::string>{"10.1.0.2", "10.1.0.3"}));
  EXPECT_EQ(o.data_bind, "10.1.0.1");
  EXPECT_TRUE(o.json);
  const auto& w = o.config.workload;
  EXPECT_EQ(w.test, TestKind::kIncast);
  EXPECT_EQ(w.seed, ~std::uint64_t{0});
  EXPECT_EQ(w.bytes, 1'000'000U);
  EXPECT_EQ(w.rounds, 20U);
  EXPECT_EQ(w.warm_rounds, 1U);
  EXPECT_EQ(w.compute_us, 500U);
  const auto& t = o.config.transport;
  EXPECT_TRUE(t.eager);
  EXPECT_EQ(t.phase_ppm, (std::vector<std::uint32_t>{0, 50'000}));
  EXPECT_EQ(t.deadline_us, 90'000U);
  EXPECT_EQ(t.tolerance_ppm, 10'000U);
}

TEST(Options, OfNetperf) {
  const auto o =
      parse({"-H", "a",  "-t",    "rr",   "-T",   "udp",  "-l", "2.5",
             "-P", "0",  "-i",    "10,3", "-I",   "99,5", "-k", "P99_LATENCY,transaction_rate",
             "--", "-r", "64,4K", "-s",   "1M,2m"});
  EXPECT_EQ(o.config.workload.duration_us, 2'500'000U);
  EXPECT_FALSE(o.banner);
  EXPECT_EQ(o.max_iterations, 10U);
  EXPECT_EQ(o.min_iterations, 3U);
  EXPECT_EQ(o.confidence_level, 99);
  EXPECT_EQ(o.confidence_width, 5);
  EXPECT_EQ(o.selectors, (std::vector<std::string>{"P99_LATENCY", "transaction_rate"}));
  EXPECT_EQ(o.config.workload.bytes, 64U);
  EXPECT_EQ(o.config.workload.response_bytes, 4096U);
  EXPECT_EQ(o.config.transport.send_buffer, 1U << 20);
  EXPECT_EQ(o.config.transport.receive_buffer, 2'000'000U);
}

TEST(Options, LengthOfTheTestWins) {
  EXPECT_EQ(parse({"-H", "a", "-T", "udp", "--", "-l", "0.5"}).config.workload.duration_us,
            500'000U);
  EXPECT_EQ(parse({"-H", "a", "-T", "udp", "-l", "3"}).config.workload.duration_us, 3'000'000U);
}

TEST(Options, WrongOnesAreNamed) {
  refuse({}, "-H HOST");
  refuse({"-H", "a", "-t", "STREAMS"}, "did you mean STREAM?");
  refuse({"-H", "a", "-T", "tpc-bbr"}, "did you mean tcp-bbr?");
  refuse({"-H", "a", "--bogus"}, "--bogus");
  refuse({"-H", "a", "--", "--bogus"}, "--bogus");
  refuse({"-H", "a", "-p", "70000"}, "70000");
  refuse({"-H", "a", "-l", "0.0001"}, "-l");
  refuse({"-H", "a", "-t", "RING", "-l", "1"}, "-l");
  refuse({"-H", "a", "-l", "-1"}, "-l");
  refuse({"-H", "a", "-l", "nan"}, "-l");
  refuse({"-H", "a", "--", "-m", "0"}, "-m");
  refuse({"-H", "a", "--", "-m", "1X"}, "-m");
  refuse({"-H", "a", "--", "-m", "99999999999999999999"}, "-m");
  refuse({"-H", "a", "--", "-m", "18446744073709551615K"}, "-m");
  refuse({"-H", "a", "--", "-r", "3"}, "STREAM");
  refuse({"-H", "a", "-i", "2,3"}, "MIN");
  refuse({"-H", "a", "-I", "100"}, "-I");
  refuse({"-H", "a", "-t", "MESSAGE", "-i", "3"}, "-r");
  refuse({"-H", "a", "-t", "RR", "-D", "1"}, "-D");
  refuse({"-H", "a", "-k", "THROUGHPUTT"}, "THROUGHPUTT");
  refuse({"-H", "a", "-J", "-k", "THROUGHPUT"}, "one of them");
  refuse({"-H", "a,b", "--", "-H", "a"}, "one for each");
  refuse({"-H", "a", "-T", "tcp-cubic", "--", "--tolerance-ppm", "5"}, "tolerance");
  refuse({"-H", "a", "--", "--mode", "lazy"}, "lazy");
  refuse({"-H", "a", "--", "--protect", "5"}, "OFFSET:LENGTH");
  refuse({"-H", "a", "--", "--protect", "5:0"}, "0 bytes");
  refuse({"--server", "-H", "a"}, "--server");
  refuse({"--server", "--", "-m", "5"}, "--server");
}

TEST(Options, UnitsOfBytes) {
  EXPECT_EQ(parse_bytes("1", "x"), 1U);
  EXPECT_EQ(parse_bytes("2k", "x"), 2000U);
  EXPECT_EQ(parse_bytes("2K", "x"), 2048U);
  EXPECT_EQ(parse_bytes("3m", "x"), 3'000'000U);
  EXPECT_EQ(parse_bytes("3M", "x"), 3U << 20);
  EXPECT_EQ(parse_bytes("1g", "x"), 1'000'000'000U);
  EXPECT_EQ(parse_bytes("1G", "x"), 1U << 30);
  for (const char* bad : {"", "K", "-1", "1.5", " 1", "1 ", "1KK", "0x10"})
    EXPECT_THROW((void)parse_bytes(bad, "x"), Failure) << bad;
}

}  // namespace
}  // namespace perf

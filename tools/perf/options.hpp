// SPDX-License-Identifier: GPL-2.0
//
// The command line: as netperf's, global options, then "--", then those of the test.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config.hpp"

namespace perf {

inline constexpr std::uint16_t kDefaultPort = 12865;

struct Options {
  bool server = false;
  std::vector<std::string> hosts;  // of control connections
  std::uint16_t port = kDefaultPort;
  std::string bind;  // own address of control connections
  std::uint64_t jitter_us = 0;
  bool json = false;
  bool banner = true;
  // -i MAX,MIN and -I LEVEL,WIDTH: repeated until the mean is known well enough.
  std::uint32_t min_iterations = 1;
  std::uint32_t max_iterations = 1;
  double confidence_level = 0;          // percent; 0: not asked for
  double confidence_width = 0;          // percent of the mean
  std::vector<std::string> data_hosts;  // of what is measured
  std::string data_bind;
  std::vector<std::string> selectors;  // -k, -o
  bool csv = false;
  Config config;
};

// Throws Failure for what cannot be. nullopt if all was said that there is to say
// (--help, --version), which is then on standard output.
std::optional<Options> parse_options(int argc, const char* const* argv);

// "64K" is 65536: K, M, G are powers of 1024 as in netperf, k, m, g of 1000.
std::uint64_t parse_bytes(const std::string& text, const char* what);
// "OFFSET:LENGTH"
dblp::Range parse_range(const std::string& text);

}  // namespace perf

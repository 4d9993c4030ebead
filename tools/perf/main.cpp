// SPDX-License-Identifier: GPL-2.0
//
// dblp-perf. Exit status: 0 all went well; 1 it did not, and the last line on standard
// error says why; 2 wrong usage.

#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "client.hpp"
#include "failure.hpp"
#include "options.hpp"
#include "report.hpp"
#include "server.hpp"

namespace {

int run(const perf::Options& options) {
  if (options.server) {
    perf::run_server(options);
    return 0;
  }
  const perf::Result result = perf::run_client(options);
  std::string text;
  if (options.json)
    text = perf::report_json(options, result).dump(2) + "\n";
  else if (!options.selectors.empty())
    text = perf::report_selected(options, result);
  else
    text = perf::report_text(options, result);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw perf::Failure("cannot write the result to standard output");
  return 0;
}

void complain(const char* text) { fmt::print(stderr, "dblp-perf: {}\n", text); }

}  // namespace

int main(int argc, char** argv) {
  std::optional<perf::Options> options;
  try {
    options = perf::parse_options(argc, argv);
  } catch (const std::exception& error) {
    complain(error.what());
    return 2;
  }
  if (!options) return 0;
  try {
    return run(*options);
  } catch (const std::exception& error) {
    complain(error.what());
    return 1;
  }
}

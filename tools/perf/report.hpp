// SPDX-License-Identifier: GPL-2.0
//
// A result as JSON for programs, as text for people, as chosen values for scripts.
#pragma once

#include <string>

#include "options.hpp"
#include "result.hpp"

namespace perf {

// {"schema", "start", "intervals", "rounds", "end"}.
Json report_json(const Options& options, const Result& result);
std::string report_text(const Options& options, const Result& result);
// The selectors of -k ("NAME=VALUE" a line) or -o (a line of names, one of values).
std::string report_selected(const Options& options, const Result& result);

// Throws for a selector that there is not.
void check_selectors(const std::vector<std::string>& names);

}  // namespace perf

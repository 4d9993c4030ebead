// SPDX-License-Identifier: GPL-2.0
//
// The forms other than the live table: text, JSON, Prometheus.
#pragma once

#include <string>
#include <vector>

#include "row.hpp"

namespace flows {

// "12.3M": bits/s, bytes, in powers of 1000.
std::string short_number(double value);
std::string text_header();
std::string text_line(const Row& row);

// One document, indented by `indent` or on one line if that is -1.
std::string json_text(const std::vector<Row>& rows, const dblp::FlowsState& state, bool live,
                      int indent);
std::string prometheus_text(const std::vector<Row>& rows, const dblp::FlowsState& state, bool live);

}  // namespace flows

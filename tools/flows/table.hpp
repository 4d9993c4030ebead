// SPDX-License-Identifier: GPL-2.0
//
// The live table, like top.
#pragma once

#include <termios.h>

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "row.hpp"

namespace flows {

// "▁▂▃": the values scaled to the largest.
std::string sparkline(const std::deque<double>& values);

// Sorts by a column's name: btlbw, rtprop, bdp, rate, rtt, loss, process, peer.
bool sort_rows(std::vector<Row>& rows, const std::string& column, bool reverse);

class Table {
 public:
  Table(std::string column, bool reverse);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void draw(std::vector<Row> rows, const std::string& headline);
  // Waits for a key or the time; false when the user wants to leave.
  bool wait(int timeout_ms);

 private:
  struct History {
    std::deque<double> rate, rtt;
    bool seen = false;
  };
  std::string column_;
  bool reverse_;
  termios before_{};
  std::map<std::pair<std::uint32_t, std::uint64_t>, History> history_;
};

}  // namespace flows

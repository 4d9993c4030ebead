// SPDX-License-Identifier: GPL-2.0
//
// A flow as it is shown: with its process and its addresses in words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dblp/flows.hpp"

namespace flows {

struct Row {
  dblp::Flow flow;
  std::uint32_t pid = 0;
  std::string process, local, peer;
  double idle = 0;  // seconds since the last sample
};

std::string id_text(const dblp::Flow& flow);
const char* proto_name(std::uint32_t proto);

// Which process has a socket. The fd tables of all processes are looked through for a
// socket that was not known, at most once a second.
class Processes {
 public:
  struct Process {
    std::uint32_t pid = 0;
    std::string name;
  };
  Process find(const dblp::Flow& flow);

 private:
  void scan();
  std::map<std::uint64_t, Process> by_inode_;
  std::int64_t scanned_ms_ = -10000;
};

struct Filter {
  std::uint32_t port = 0;   // either end; 0 all
  std::string process;      // name or number
  std::uint64_t netns = 0;  // cookie; 0 all
  std::string proto;        // "dblp", "tcp", "" both
  [[nodiscard]] bool takes(const Row& row) const;
};

std::vector<Row> make_rows(std::span<const dblp::Flow> flows, Processes& processes,
                           const Filter& filter);

// "cookie" or the name of a namespace of ip-netns(8).
dblp::Result<std::uint64_t> netns_cookie(const std::string& text);

}  // namespace flows

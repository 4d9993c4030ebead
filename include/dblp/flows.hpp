// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// The table of flows that dblp-flows keeps: what the paths of this machine's DBLP and TCP
// connections can carry.
//
//   auto reader = dblp::FlowReader::open();
//   if (!reader) std::cerr << reader.error().message();
//   for (const dblp::Flow& flow : reader->read().value()) use(flow.btlbw, flow.rtprop_ns);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "dblp/export.hpp"
#include "dblp/flows_abi.h"
#include "dblp/result.hpp"

namespace dblp {

using Flow = ::dblp_flow;
using FlowChange = ::dblp_flow_change;
using FlowsState = ::dblp_flows_state;

class DBLP_EXPORT FlowReader {
 public:
  // Of the maps pinned in `folder`. Errors:
  //   ENOENT       no table: nobody runs dblp-flows, or there is no BPF file system
  //   EACCES, EPERM  not allowed to read it
  //   EPROTO       the table is of another version
  //   EMEDIUMTYPE  what is pinned there is not a table of flows
  static Result<FlowReader> open(const std::string& folder = DBLP_FLOWS_DIR);

  FlowReader(FlowReader&&) noexcept;
  FlowReader& operator=(FlowReader&&) noexcept;
  ~FlowReader();

  // All flows there are now, in no order. Valid until the next call. The memory is that of
  // a full table and is allocated once.
  [[nodiscard]] Result<std::span<const Flow>> read();
  // One flow; ENOENT if there is none.
  [[nodiscard]] Result<Flow> find(std::uint64_t id, std::uint32_t proto) const;
  [[nodiscard]] Result<FlowsState> state() const;
  // Does the program still run that fills the table? What it left behind stays readable.
  [[nodiscard]] bool live() const;

  // From now on changes beyond the threshold are kept for this reader. One subscriber at a
  // time: EBUSY if there is another.
  [[nodiscard]] Result<void> subscribe();
  // Calls `handler` for what has happened, after waiting for it for at most `timeout_ms`.
  // Returns how many there were.
  [[nodiscard]] Result<int> changes(const std::function<void(const FlowChange&)>& handler,
                                    int timeout_ms);

 private:
  struct Impl;
  explicit FlowReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dblp

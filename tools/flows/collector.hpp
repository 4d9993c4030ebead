// SPDX-License-Identifier: GPL-2.0
//
// Fills the table of flows: makes and pins the maps, loads the programs, and takes those
// of DBLP off again while nobody uses the module, so that it can be unloaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "dblp/flows_abi.h"
#include "dblp/result.hpp"

namespace flows {

struct CollectorOptions {
  std::string folder = DBLP_FLOWS_DIR;
  std::uint32_t max_flows = 8192;
  std::uint64_t rtprop_window_ns = 2'000'000'000;
  std::uint32_t threshold_percent = 10;
  // 0: the best that the kernel has.
  std::uint32_t tcp_source = 0, dblp_source = 0;
};

const char* source_name(std::uint32_t source);

class Collector {
 public:
  // EBUSY: another process does this already.
  static dblp::Result<Collector> start(const CollectorOptions& options);

  Collector(Collector&&) noexcept;
  Collector& operator=(Collector&&) noexcept;
  // Removes the maps.
  ~Collector();

  // Looks after the module; to be called a few times a second. `say` gets what a user
  // should know.
  void tick(const std::function<void(const std::string&)>& say);
  [[nodiscard]] std::string sources() const;

 private:
  struct Impl;
  explicit Collector(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flows

// SPDX-License-Identifier: GPL-2.0
//
// The table, whoever fills it: another process while there is one, else this one.
#pragma once

#include <optional>
#include <string>

#include "collector.hpp"
#include "dblp/flows.hpp"

namespace flows {

class Session {
 public:
  // `may_collect`: load the programs if nobody else has.
  static dblp::Result<Session> open(const CollectorOptions& options, bool may_collect);

  // To be called a few times a second: takes over from a collector that is gone, and looks
  // after the module.
  void tick();
  [[nodiscard]] dblp::FlowReader& reader() { return *reader_; }
  [[nodiscard]] bool collecting() const { return collector_.has_value(); }
  // The latest thing to know, "" if nothing.
  [[nodiscard]] const std::string& notice() const { return notice_; }
  void say(const std::string& text);
  // Are notices printed to standard error at once?
  void set_loud(bool loud) { loud_ = loud; }

 private:
  Session() = default;
  dblp::Result<void> collect();

  CollectorOptions options_;
  bool may_collect_ = false, loud_ = true, lost_ = false;
  std::optional<Collector> collector_;
  std::optional<dblp::FlowReader> reader_;
  std::string notice_;
};

}  // namespace flows

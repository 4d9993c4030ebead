// SPDX-License-Identifier: GPL-2.0

#include "session.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace flows {

using dblp::FlowReader;
using dblp::Result;

void Session::say(const std::string& text) {
  notice_ = text;
  if (loud_) fmt::print(stderr, "dblp-flows: {}\n", text);
}

Result<void> Session::collect() {
  auto collector = Collector::start(options_);
  if (!collector) return collector.error();
  // The maps may be others than those that were read until now.
  reader_.reset();
  auto reader = FlowReader::open(options_.folder);
  if (!reader) return reader.error();
  reader_.emplace(std::move(*reader));
  collector_.emplace(std::move(*collector));
  return {};
}

Result<Session> Session::open(const CollectorOptions& options, bool may_collect) {
  Session session;
  session.options_ = options;
  session.may_collect_ = may_collect;

  auto reader = FlowReader::open(options.folder);
  // A table that somebody keeps can be read with less privilege than it takes to fill one.
  if (reader && (!may_collect || reader->live())) {
    session.reader_.emplace(std::move(*reader));
    return session;
  }
  // What is there and not ours would only fail again.
  const int error = reader ? 0 : reader.error().code();
  if (!may_collect && error == ENOENT) {
    return dblp::Error(
        ENOENT, "nobody fills a table at " + options.folder + ": run dblp-flows --collect as root");
  }
  if (!may_collect || error == EPROTO || error == EMEDIUMTYPE) return reader.error();
  if (auto ok = session.collect(); !ok) {
    if (ok.error().code() == EBUSY) return dblp::Error(EBUSY, "another dblp-flows is starting");
    return ok.error();
  }
  return session;
}

void Session::tick() {
  if (collector_) {
    collector_->tick([this](const std::string& text) { say(text); });
    return;
  }
  if (!may_collect_ || reader_->live()) {
    lost_ = false;
    return;
  }
  // Its maps may be gone with it, or others may be in their place.
  const auto ok = collect();
  if (ok) {
    say("took over from a collector that ended");
  } else if (ok.error().code() == EBUSY) {
    // Somebody was quicker.
    auto reader = FlowReader::open(options_.folder);
    if (reader) reader_.emplace(std::move(*reader));
  } else if (!lost_) {
    say("the collector ended, these are its last values: " + ok.error().message());
    lost_ = true;
    if (!reader_) {
      auto reader = FlowReader::open(options_.folder);
      if (reader) reader_.emplace(std::move(*reader));
    }
  }
}

}  // namespace flows

// SPDX-License-Identifier: GPL-2.0
//
// What ends a run. Every error here does, on both ends, so it is an exception: it
// says in one line what went wrong and, where there is one, the cure.
#pragma once

#include <stdexcept>
#include <string>

namespace perf {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The peer went away: the reason to look for is there, not here.
class PeerGone : public Failure {
 public:
  using Failure::Failure;
};

// "CONTEXT: text of errno".
[[noreturn]] void fail_errno(const std::string& context, int code);
[[noreturn]] void fail_errno(const std::string& context);

}  // namespace perf

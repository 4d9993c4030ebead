// SPDX-License-Identifier: GPL-2.0
//
// Hands a text out: over HTTP, or as a file that is replaced as a whole.
#pragma once

#include <functional>
#include <string>

#include "dblp/address.hpp"
#include "dblp/result.hpp"

namespace flows {

// A listening socket; closed never, as it lives as long as the program.
dblp::Result<int> serve_open(const dblp::Address& address);
// Answers one client, if one comes within `timeout_ms`.
void serve_one(int listener, int timeout_ms, const std::function<std::string()>& text);

dblp::Result<void> write_file(const std::string& path, const std::string& text);

}  // namespace flows

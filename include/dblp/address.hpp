// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Where a socket is: an IPv4 or IPv6 address and a port.
//
//   auto server = dblp::Address::parse("10.0.0.1:4000");
//   auto anywhere = dblp::Address::parse("[::]:4000");
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "dblp/export.hpp"
#include "dblp/result.hpp"

namespace dblp {

class DBLP_EXPORT Address {
 public:
  // 0.0.0.0, port 0.
  Address() noexcept;

  // "ADDRESS:PORT" or "[ADDRESS]:PORT". Numbers only: no name is looked up.
  static Result<Address> parse(std::string_view text);
  // What the kernel filled in; EAFNOSUPPORT unless it is IPv4 or IPv6.
  static Result<Address> from(const sockaddr* address, socklen_t length);

  [[nodiscard]] const sockaddr* data() const noexcept { return &any_; }
  [[nodiscard]] socklen_t size() const noexcept;
  [[nodiscard]] sa_family_t family() const noexcept { return any_.sa_family; }
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::string to_string() const;

  friend DBLP_EXPORT bool operator==(const Address& a, const Address& b) noexcept;

 private:
  union {
    sockaddr any_;
    sockaddr_in v4_;
    sockaddr_in6 v6_;
  };
};

}  // namespace dblp

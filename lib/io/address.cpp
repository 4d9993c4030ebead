// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/address.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace dblp {

Address::Address() noexcept : v6_{} {
  v4_ = {};
  v4_.sin_family = AF_INET;
}

Result<Address> Address::parse(std::string_view text) {
  const Error bad(EINVAL, "address '" + std::string(text) + "'");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad;

  std::string host(text.substr(0, colon));
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), port);
  if (error != std::errc{} || end != digits.end()) return bad;

  Address address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    address.v6_ = {};
    address.v6_.sin6_family = AF_INET6;
    address.v6_.sin6_port = htons(port);
    if (const std::size_t zone = host.find('%'); zone != std::string::npos) {
      address.v6_.sin6_scope_id = if_nametoindex(host.c_str() + zone + 1);
      if (address.v6_.sin6_scope_id == 0) return bad;
      host.resize(zone);
    }
    if (inet_pton(AF_INET6, host.c_str(), &address.v6_.sin6_addr) != 1) return bad;
    return address;
  }
  address.v4_.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.v4_.sin_addr) != 1) return bad;
  return address;
}

Result<Address> Address::from(const sockaddr* address, socklen_t length) {
  Address result;
  if (length >= sizeof(sockaddr_in) && address->sa_family == AF_INET) {
    std::memcpy(&result.v4_, address, sizeof(sockaddr_in));
    return result;
  }
  if (length >= sizeof(sockaddr_in6) && address->sa_family == AF_INET6) {
    std::memcpy(&result.v6_, address, sizeof(sockaddr_in6));
    return result;
  }
  return Error(EAFNOSUPPORT, "address");
}

socklen_t Address::size() const noexcept {
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::uint16_t Address::port() const noexcept {
  return ntohs(family() == AF_INET6 ? v6_.sin6_port : v4_.sin_port);
}

std::string Address::to_string() const {
  char text[INET6_ADDRSTRLEN];
  if (family() == AF_INET6) {
    inet_ntop(AF_INET6, &v6_.sin6_addr, text, sizeof(text));
    std::string zone;
    if (v6_.sin6_scope_id != 0) zone = "%" + std::to_string(v6_.sin6_scope_id);
    return "[" + std::string(text) + zone + "]:" + std::to_string(port());
  }
  inet_ntop(AF_INET, &v4_.sin_addr, text, sizeof(text));
  return std::string(text) + ":" + std::to_string(port());
}

bool operator==(const Address& a, const Address& b) noexcept {
  if (a.family() != b.family() || a.port() != b.port()) return false;
  if (a.family() == AF_INET6)
    return a.v6_.sin6_scope_id == b.v6_.sin6_scope_id &&
           std::memcmp(&a.v6_.sin6_addr, &b.v6_.sin6_addr, sizeof(in6_addr)) == 0;
  return a.v4_.sin_addr.s_addr == b.v4_.sin_addr.s_addr;
}

}  // namespace dblp

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace {

using dblp::Address;

TEST(Address, ReadsAndWritesBothFamilies) {
  for (const char* text : {"10.0.0.1:4000", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:4000",
                           "[fd00::2]:1", "[::]:0"}) {
    const auto address = Address::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->to_string(), text);
    const auto again = Address::from(address->data(), address->size());
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(*again, *address);
  }
}

TEST(Address, FillsInWhatTheKernelReads) {
  const auto address = Address::parse("10.1.2.3:258").value();
  ASSERT_EQ(address.size(), sizeof(sockaddr_in));
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address.data());
  EXPECT_EQ(v4->sin_family, AF_INET);
  EXPECT_EQ(v4->sin_port, htons(258));
  EXPECT_EQ(v4->sin_addr.s_addr, htonl(0x0a010203));
}

TEST(Address, RefusesWhatIsNone) {
  for (const char* text : {"", ":", "10.0.0.1", "10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:-1",
                           "10.0.0.1:1x", "10.0.0:1", "host:1", "::1:1", "[::1]", "[::1:1", "[]:1",
                           "[10.0.0.1]:1", "[fe80::1%nosuchlink]:1"}) {
    const auto address = Address::parse(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code(), EINVAL);
  }
}

TEST(Address, DiffersByFamilyAddressAndPort) {
  const auto address = Address::parse("10.0.0.1:1").value();
  for (const char* other : {"10.0.0.2:1", "10.0.0.1:2", "[::1]:1"})
    EXPECT_FALSE(address == Address::parse(other).value()) << other;
}

TEST(Address, RefusesOtherFamiliesAndShortOnes) {
  sockaddr_storage storage{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  address->sa_family = AF_UNIX;
  EXPECT_FALSE(Address::from(address, sizeof(storage)));
  address->sa_family = AF_INET6;
  EXPECT_FALSE(Address::from(address, sizeof(sockaddr_in)));
  address->sa_family = AF_INET;
  EXPECT_FALSE(Address::from(address, 0));
}

}  // namespace

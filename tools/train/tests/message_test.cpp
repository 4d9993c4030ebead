// SPDX-License-Identifier: GPL-2.0

#include "message.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace {

using train::Header;
using train::kHeaderBytes;
using train::Kind;

std::vector<std::byte> sample(std::uint32_t floats) {
  Header header{.kind = Kind::kGradient, .rank = 3, .round = 70000, .floats = floats};
  header.loss = 0.5F;
  header.norm = 1.25;
  header.checksum = 0x0123456789abcdef;
  std::vector<std::byte> message(kHeaderBytes + floats * sizeof(float));
  encode(header, message);
  return message;
}

TEST(Message, ComesBackAsItWas) {
  const auto header = train::decode(sample(5)).value();
  EXPECT_EQ(header.kind, Kind::kGradient);
  EXPECT_EQ(header.rank, 3U);
  EXPECT_EQ(header.round, 70000U);
  EXPECT_EQ(header.floats, 5U);
  EXPECT_EQ(header.loss, 0.5F);
  EXPECT_EQ(header.norm, 1.25);
  EXPECT_EQ(header.checksum, 0x0123456789abcdefU);
}

TEST(Message, IsCheckedBeforeUse) {
  for (const std::size_t byte : {0, 4, 6, 7, 16, 19}) {
    auto message = sample(5);
    message[byte] = std::byte{0xee};
    const auto header = train::decode(message);
    ASSERT_FALSE(header) << "byte " << byte;
    EXPECT_EQ(header.error().code(), EBADMSG);
  }
  auto message = sample(5);
  message.pop_back();
  EXPECT_FALSE(train::decode(message));
  message.resize(kHeaderBytes - 1);
  EXPECT_FALSE(train::decode(message));
  EXPECT_FALSE(train::decode({}));
}

}  // namespace

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// What a Socket does on a machine without the module; with it, see selftests.

#include "dblp/socket.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <type_traits>

namespace {

static_assert(std::is_nothrow_move_constructible_v<dblp::Socket>);
static_assert(!std::is_copy_constructible_v<dblp::Socket>);

TEST(Socket, SaysThatTheModuleIsNotThere) {
  if (std::filesystem::exists("/sys/module/dblp")) GTEST_SKIP() << "the module is loaded";
  EXPECT_EQ(dblp::Socket::family(), AF_DBLP);
  const auto socket = dblp::Socket::open();
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code(), EAFNOSUPPORT);
  EXPECT_EQ(socket.error().context(), "socket");
}

}  // namespace

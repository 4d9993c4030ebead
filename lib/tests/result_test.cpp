// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "dblp/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace {

dblp::Result<std::unique_ptr<int>> half(int value) {
  if (value % 2 != 0) return dblp::Error(EDOM, "half of an odd number");
  return std::make_unique<int>(value / 2);
}

dblp::Result<void> check(int value) {
  if (value < 0) return dblp::Error(ERANGE, "check");
  return {};
}

TEST(Result, HoldsAValueThatCanOnlyBeMoved) {
  auto result = half(8);
  ASSERT_TRUE(result);
  EXPECT_EQ(**result, 4);
  EXPECT_EQ(*std::move(result).value(), 4);
}

TEST(Result, SaysWhyThereIsNone) {
  const auto result = half(3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), EDOM);
  EXPECT_EQ(result.error().context(), "half of an odd number");
  EXPECT_EQ(result.error().message().find("half of an odd number: "), 0U);
}

TEST(Result, ValueThrowsWhatTheErrorSays) {
  try {
    (void)half(3).value();
    FAIL() << "no exception";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), EDOM);
    EXPECT_NE(std::string(error.what()).find("half of an odd number"), std::string::npos);
  }
}

TEST(Result, OfNothing) {
  EXPECT_TRUE(check(1));
  EXPECT_NO_THROW(check(1).value());
  const auto result = check(-1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ERANGE);
  EXPECT_THROW(result.value(), std::system_error);
}

}  // namespace

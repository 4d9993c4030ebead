// SPDX-License-Identifier: GPL-2.0

#include "assembly.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace perf {
namespace {

constexpr std::uint32_t kLength = 10'100;
constexpr std::uint16_t kUnit = 1000;
constexpr std::uint32_t kSegments = 11;

class AssemblyTest : public testing::Test {
 protected:
  AssemblyTest() : content_(kLength) {
    std::mt19937 random(1);
    for (auto& byte : content_) byte = static_cast<std::byte>(random() | 1);
  }

  Fragment fragment(Fragment::Kind kind, std::uint32_t segment = 0, std::uint64_t tag = 1) const {
    return {.token = 0,
            .tag = tag,
            .length = kLength,
            .offset = segment * kUnit,
            .allowed = allowed_,
            .unit = kUnit,
            .kind = kind,
            .rank = 0};
  }

  bool data(Assembly& assembly, std::uint32_t segment, std::int64_t now = 0,
            std::uint64_t tag = 1) {
    const std::size_t length = std::min<std::size_t>(kUnit, kLength - segment * kUnit);
    return assembly.add(fragment(Fragment::kData, segment, tag),
                        std::span(content_).subspan(segment * kUnit, length), now);
  }

  std::vector<std::byte> content_;
  std::uint32_t allowed_ = 0;
};

TEST_F(AssemblyTest, WholeInAnyOrderAndWithDuplicates) {
  Assembly assembly(3, kLength, false);
  std::vector<std::uint32_t> order(kSegments);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(2));
  for (const auto segment : order) {
    EXPECT_EQ(assembly.take(), std::nullopt);
    EXPECT_TRUE(data(assembly, segment, 5));
    EXPECT_TRUE(data(assembly, segment, 6));
  }
  const auto arrival = assembly.take();
  ASSERT_TRUE(arrival);
  EXPECT_EQ(arrival->peer, 3U);
  EXPECT_EQ(arrival->at_ns, 5);
  EXPECT_EQ(arrival->missing, 0U);
  EXPECT_TRUE(arrival->holes.empty());
  EXPECT_TRUE(std::ranges::equal(arrival->data, content_));
  EXPECT_EQ(assembly.take(), std::nullopt);
}

TEST_F(AssemblyTest, EndsWithHolesWhenTheSenderSaysSo) {
  Assembly assembly(0, kLength, false);
  for (std::uint32_t i = 0; i < kSegments; ++i) EXPECT_TRUE(i == 4 || i == 10 || data(assembly, i));
  EXPECT_EQ(assembly.take(), std::nullopt);
  EXPECT_TRUE(assembly.add(fragment(Fragment::kEnd), {}, 9));
  const auto arrival = assembly.take();
  ASSERT_TRUE(arrival);
  EXPECT_TRUE(arrival->below);
  EXPECT_EQ(arrival->missing, 1100U);
  EXPECT_EQ(arrival->holes.missing_bytes(), 1100U);
  EXPECT_TRUE(arrival->holes.missing(4));
  EXPECT_TRUE(arrival->holes.missing(10));
  EXPECT_EQ(arrival->data[4500], std::byte{0});
  EXPECT_EQ(arrival->data[10'050], std::byte{0});
  EXPECT_EQ(arrival->data[3999], content_[3999]);
}

// A buffer is used again, and what was in it before must not fill the holes.
TEST_F(AssemblyTest, HolesDoNotShowAnEarlierMessage) {
  Assembly assembly(0, kLength, false);
  for (std::uint32_t i = 0; i < kSegments; ++i) EXPECT_TRUE(data(assembly, i, 0, 1));
  ASSERT_TRUE(assembly.take());
  EXPECT_EQ(assembly.take(), std::nullopt);
  EXPECT_TRUE(data(assembly, 2, 0, 2));
  EXPECT_TRUE(assembly.add(fragment(Fragment::kEnd, 0, 2), {}, 0));
  const auto arrival = assembly.take();
  ASSERT_TRUE(arrival);
  EXPECT_TRUE(std::ranges::all_of(arrival->data.first(2000),
                                  [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(AssemblyTest, PressureWaitsUntilAllWasSentOnce) {
  allowed_ = 3000;
  Assembly assembly(0, kLength, false);
  for (std::uint32_t i = 0; i < 9; ++i) EXPECT_TRUE(data(assembly, i));
  EXPECT_EQ(assembly.take(), std::nullopt);
  EXPECT_TRUE(assembly.add(fragment(Fragment::kSent), {}, 0));
  const auto arrival = assembly.take();
  ASSERT_TRUE(arrival);
  EXPECT_FALSE(arrival->below);
  EXPECT_EQ(arrival->missing, 1100U);
}

TEST_F(AssemblyTest, PressureGoesOnIfTooMuchIsMissing) {
  allowed_ = 1500;
  Assembly assembly(0, kLength, false);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_TRUE(data(assembly, i));
  EXPECT_TRUE(assembly.add(fragment(Fragment::kSent), {}, 0));
  EXPECT_EQ(assembly.take(), std::nullopt);
  EXPECT_TRUE(data(assembly, 8));
  EXPECT_TRUE(assembly.take());
}

TEST_F(AssemblyTest, EagerHasEnoughAsSoonAsItMay) {
  allowed_ = 2100;
  Assembly assembly(0, kLength, true);
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(assembly.take(), std::nullopt);
    EXPECT_TRUE(data(assembly, i));
  }
  const auto arrival = assembly.take();
  ASSERT_TRUE(arrival);
  EXPECT_EQ(arrival->missing, 2100U);
  // Late ones do not begin it anew.
  EXPECT_TRUE(data(assembly, 8));
  EXPECT_TRUE(assembly.add(fragment(Fragment::kEnd), {}, 0));
  EXPECT_EQ(assembly.take(), std::nullopt);
}

TEST_F(AssemblyTest, RefusesWhatNoSenderMakes) {
  Assembly assembly(0, kLength, false);
  const auto refused = [&](auto change, std::size_t payload = kUnit) {
    Fragment bad = fragment(Fragment::kData, 1);
    change(bad);
    return !assembly.add(bad, std::span(content_).first(payload), 0);
  };
  const auto nothing = [](Fragment&) {};
  EXPECT_TRUE(refused([](Fragment& f) { f.length = 0; }));
  EXPECT_TRUE(refused([](Fragment& f) { f.length = kLength + 1; })) << "larger than the test's";
  EXPECT_TRUE(refused([](Fragment& f) { f.length = 0xffffffff; }));
  EXPECT_TRUE(refused([](Fragment& f) { f.unit = 0; }));
  EXPECT_TRUE(refused([](Fragment& f) { f.offset = 1; })) << "between two segments";
  EXPECT_TRUE(refused([](Fragment& f) { f.offset = 11 * kUnit; })) << "behind the end";
  EXPECT_TRUE(refused([](Fragment& f) { f.offset = 0xffffff00; }));
  EXPECT_TRUE(refused([](Fragment& f) { f.offset = 10 * kUnit; })) << "the last one is shorter";
  EXPECT_TRUE(refused([](Fragment& f) { f.allowed = kLength + 1; }));
  EXPECT_TRUE(refused([](Fragment& f) { f.kind = 77; }, 0));
  EXPECT_TRUE(refused([](Fragment& f) { f.kind = Fragment::kEnd; })) << "an end with payload";
  EXPECT_TRUE(refused(nothing, kUnit - 1));
  EXPECT_TRUE(refused(nothing, 0));
  EXPECT_TRUE(data(assembly, 1));
  EXPECT_TRUE(refused([](Fragment& f) { f.length = kLength - 1; })) << "another length than before";
  EXPECT_TRUE(refused([](Fragment& f) { f.unit = 500; }, 500)) << "another unit than before";
}

}  // namespace
}  // namespace perf

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
// A peer's bytes: each field out of its limits has its own reason, and the
// segments beside it decode all the same.

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <set>

#include "compress/tests/harness.hpp"

namespace dblp::compress::test {
namespace {

constexpr Key kKey{5, 6};

struct Case {
  const char* name;
  CodecOptions options;
  std::function<void(std::vector<std::byte>&)> damage;
  std::uint32_t segment;
  Status want;
};

void put(std::vector<std::byte>& bytes, std::size_t at, u32 value, int width) {
  for (int i = 0; i < width; ++i)
    bytes[at + static_cast<std::size_t>(i)] = static_cast<std::byte>(value >> (8 * i));
}

constexpr std::uint32_t kSegment = 256;
constexpr CodecOptions kTopF16{.scheme = Scheme::kTopK, .value = Value::kF16};
constexpr CodecOptions kTopI4{.scheme = Scheme::kTopK, .value = Value::kI4};
constexpr CodecOptions kDenseI8{.scheme = Scheme::kDense, .value = Value::kI8};
// Slots of a full segment: (256 - 8) / 3 = 82, used 254; distances at 8 + 164.
constexpr std::size_t kDeltas = 8 + 164;

const Case kCases[] = {
    {"TopkWrongScheme", kTopF16, [](auto& b) { put(b, 256, 0x12, 1); }, 1, Status::kWrongCodec},
    {"TopkWrongValue", kTopF16, [](auto& b) { put(b, 256, 0x23, 1); }, 1, Status::kWrongCodec},
    {"TopkZeroHole", kTopF16, [](auto& b) { put(b, 256, 0, 4); }, 1, Status::kWrongCodec},
    {"TopkUnknownFlag", kTopF16, [](auto& b) { put(b, 257, 2, 1); }, 1, Status::kBadFlags},
    {"TopkTooManySlots", kTopF16, [](auto& b) { put(b, 258, 83, 2); }, 1, Status::kBadCount},
    {"TopkNotFull", kTopF16, [](auto& b) { put(b, 258, 81, 2); }, 1, Status::kBadCount},
    {"TopkEmptyAmongOthers", kTopF16, [](auto& b) { put(b, 258, 0, 2); }, 1, Status::kBadCount},
    {"TopkBaseBeyondTheEnd", kTopF16, [](auto& b) { put(b, 260, 5000, 4); }, 1, Status::kBadIndex},
    {"TopkBaseWraps", kTopF16, [](auto& b) { put(b, 260, 0xffffffff, 4); }, 1, Status::kBadIndex},
    {"TopkDistanceBeyondTheEnd", kTopF16, [](auto& b) { put(b, 260, 4999, 4); }, 1,
     Status::kBadIndex},
    {"TopkFirstDistance", kTopF16, [](auto& b) { put(b, 256 + kDeltas, 1, 1); }, 1,
     Status::kBadDelta},
    {"TopkPadding", kTopF16, [](auto& b) { put(b, 511, 1, 1); }, 1, Status::kBadPadding},
    {"TopkOverlap", kTopF16, [](auto& b) { put(b, 260, 0, 4); }, 1, Status::kOverlap},
    {"TopkLastTooShort", kTopF16, [](auto& b) { b.pop_back(); }, 6, Status::kShort},
    {"TopkLastWithoutHeader", kTopF16, [](auto& b) { b.resize(6 * 256 + 7); }, 6, Status::kShort},
    {"TopkLastLonger", kTopF16, [](auto& b) { b.push_back(std::byte{1}); }, 6, Status::kBadPadding},
    {"TopkNegativeScale", kTopI4, [](auto& b) { put(b, 8, 0x80000000, 4); }, 0, Status::kBadScale},
    {"TopkInfiniteScale", kTopI4, [](auto& b) { put(b, 8, 0x7f800000, 4); }, 0, Status::kBadScale},
    {"TopkForeignNan", kTopI4, [](auto& b) { put(b, 8, 0x7fc00001, 4); }, 0, Status::kBadScale},
    {"DenseWrongScheme", kDenseI8, [](auto& b) { put(b, 256, 0x34, 1); }, 1, Status::kWrongCodec},
    {"DenseFlags", kDenseI8, [](auto& b) { put(b, 257, 1, 1); }, 1, Status::kBadFlags},
    {"DenseCount", kDenseI8, [](auto& b) { put(b, 258, 1, 2); }, 1, Status::kBadCount},
    {"DenseOrdinal", kDenseI8, [](auto& b) { put(b, 260, 2, 4); }, 1, Status::kBadOrdinal},
    {"DenseScale", kDenseI8, [](auto& b) { put(b, 264, 0xffc00000, 4); }, 1, Status::kBadScale},
    {"DensePadding", kDenseI8, [](auto& b) { put(b, 511, 1, 1); }, 1, Status::kBadPadding},
};

class Refusal : public testing::TestWithParam<Case> {};

TEST_P(Refusal, HasItsReasonAndCostsNothingElse) {
  const Case& c = GetParam();
  Rng rng(30);
  const std::size_t n = 5000;
  const std::uint64_t selected = c.options.scheme == Scheme::kTopK ? 500 : 0;
  Harness harness(c.options,
                  {.elements = n, .segment_bytes = kSegment, .max_selected = 2 * selected});
  const Message message = harness.encode(gradient(rng, n), kKey, selected);
  if (c.options == kTopF16) {
    ASSERT_EQ(message.result.segments, 7U);
  }
  std::vector<std::byte> bytes = message.bytes;
  c.damage(bytes);
  std::vector<Status> segments;
  DecodeResult result;
  const std::vector<float> got = harness.decode(bytes, kKey, {}, &segments, &result);
  EXPECT_EQ(result.refused, 1U);
  EXPECT_EQ(result.first_refusal, c.want) << status_name(result.first_refusal);
  for (std::uint32_t i = 0; i < segments.size(); ++i)
    EXPECT_EQ(segments[i], i == c.segment ? c.want : Status::kOk)
        << i << " " << status_name(segments[i]);
  std::vector<std::uint64_t> missing((segments.size() + 63) / 64);
  missing[c.segment / 64] |= std::uint64_t{1} << (c.segment % 64);
  EXPECT_TRUE(same_bits(got, harness.decode(message.bytes, kKey, missing)));
}

INSTANTIATE_TEST_SUITE_P(Fields, Refusal, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Refusal, LengthsThatNoEncoderWrites) {
  Harness dense(kDenseI8, {.elements = 5000, .segment_bytes = 256});
  const Message message = dense.encode(std::vector<float>(5000, 1.0F), kKey);
  std::vector<float> output(5000);
  for (const int change : {-1, 1}) {
    std::vector<std::byte> bytes = message.bytes;
    bytes.resize(bytes.size() + static_cast<std::size_t>(change));
    EXPECT_EQ(dense.decode_into(output, bytes, kKey, {}, false), Status::kBadLength);
  }
  EXPECT_EQ(dense.decode_into(output, {}, kKey, {}, false), Status::kBadLength);
  Harness top(kTopF16, {.elements = 5000, .segment_bytes = 256, .max_selected = 10});
  const std::vector<std::byte> large(top.codec().max_message_bytes() + 1);
  EXPECT_EQ(top.decode_into(output, large, kKey, {}, false), Status::kBadLength);
  EXPECT_EQ(top.decode_into(output, {}, kKey, {}, false), Status::kBadLength);
}

TEST(Refusal, CallersMistakes) {
  for (const Shape& shape : {Shape{0, 1024, 0}, Shape{kMaxElements + 1, 1024, 0}, Shape{10, 124, 0},
                             Shape{10, 1022, 0}, Shape{10, 65536, 0}, Shape{10, 1024, 11}}) {
    const auto codec = make_codec(kTopF16, shape);
    ASSERT_FALSE(codec);
    EXPECT_EQ(codec.error().code(), EINVAL);
  }
  EXPECT_FALSE(make_codec({.scheme = Scheme{0}, .value = Value::kF16}, {10, 1024, 0}));
  EXPECT_FALSE(make_codec({.scheme = Scheme::kDense, .value = Value{6}}, {10, 1024, 0}));

  Harness harness(kTopF16, {.elements = 100, .segment_bytes = 256, .max_selected = 10});
  const Codec& codec = harness.codec();
  const std::vector<float> input(100, 1.0F);
  std::vector<std::byte> message(codec.max_message_bytes());
  std::vector<std::byte> workspace(codec.encode_workspace());
  EncodeResult result;
  EncodeArgs args{.input = input.data(),
                  .selected = 10,
                  .message = message,
                  .workspace = workspace,
                  .result = &result};
  EXPECT_EQ(codec.encode(args), Status::kOk);
  args.selected = 11;
  EXPECT_EQ(codec.encode(args), Status::kTooMany);
  args.selected = 10;
  args.weights = input.data();
  EXPECT_EQ(codec.encode(args), Status::kBadOption);
  args.weights = nullptr;
  args.workspace = std::span(workspace).first(workspace.size() - 1);
  EXPECT_EQ(codec.encode(args), Status::kSmallWorkspace);
  args.workspace = workspace;
  args.message = std::span(message).first(message.size() - 1);
  EXPECT_EQ(codec.encode(args), Status::kSmallBuffer);
}

TEST(Refusal, EachReasonHasAName) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Status::kDeviceFailed); ++i)
    EXPECT_TRUE(names.insert(status_name(static_cast<Status>(i))).second) << i;
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace dblp::compress::test

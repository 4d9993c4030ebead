// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause

#include "io/control.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace {

using dblp::Range;
using dblp::SendOptions;
using dblp::Tolerance;
using dblp::detail::build_send_control;
using dblp::detail::parse_completion;
using dblp::detail::parse_receive_control;

// What the kernel does with a control buffer: walk it by the book.
struct Part {
  int level;
  int type;
  std::vector<std::byte> data;
};

std::vector<Part> parts_of(std::vector<std::byte>& buffer) {
  msghdr message{};
  message.msg_control = buffer.data();
  message.msg_controllen = buffer.size();
  std::vector<Part> parts;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    const auto* data = reinterpret_cast<const std::byte*>(CMSG_DATA(header));
    parts.push_back(
        {header->cmsg_level, header->cmsg_type, {data, data + header->cmsg_len - CMSG_LEN(0)}});
  }
  return parts;
}

template <class T>
T read(const std::vector<std::byte>& data) {
  T value{};
  EXPECT_EQ(data.size(), sizeof(T));
  std::memcpy(&value, data.data(), std::min(data.size(), sizeof(T)));
  return value;
}

TEST(SendControl, CarriesEveryOption) {
  SendOptions options;
  options.tolerance = 0.408;
  options.mode = dblp::Mode::kEager;
  options.deadline = std::chrono::milliseconds(250);
  options.phase = 3;
  options.priority = 7;
  options.tag = 0x0123456789abcdef;
  options.group = 42;
  options.max_rounds = 9;
  options.ordered = true;

  auto buffer = build_send_control(options).value();
  const auto parts = parts_of(buffer);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].level, SOL_DBLP);
  EXPECT_EQ(parts[0].type, DBLP_CMSG_SEND);
  const auto params = read<dblp_send_params>(parts[0].data);
  EXPECT_EQ(params.tolerance_ppm, 408000U);
  EXPECT_EQ(params.mode, DBLP_MODE_EAGER);
  EXPECT_EQ(params.phase, 3);
  EXPECT_EQ(params.priority, 7);
  EXPECT_EQ(params.flags, DBLP_SEND_ORDERED);
  EXPECT_EQ(params.deadline_us, 250000U);
  EXPECT_EQ(params.max_rounds, 9);
  EXPECT_EQ(params.group, 42U);
  EXPECT_EQ(params.tag, 0x0123456789abcdefU);
  EXPECT_EQ(params.reserved, 0);
  EXPECT_EQ(params.reserved2, 0U);
}

TEST(SendControl, OfDefaultsIsReliable) {
  auto buffer = build_send_control({}).value();
  const auto parts = parts_of(buffer);
  ASSERT_EQ(parts.size(), 1U);
  const auto params = read<dblp_send_params>(parts[0].data);
  const dblp_send_params expected{};
  EXPECT_EQ(std::memcmp(&params, &expected, sizeof(params)), 0);
}

TEST(SendControl, CarriesProtectedRangesAsGiven) {
  SendOptions options{.tolerance = 0.1};
  options.protect = {{4096, 100}, {0, 64}, {1, std::numeric_limits<std::uint64_t>::max()}};
  auto buffer = build_send_control(options).value();
  const auto parts = parts_of(buffer);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].level, SOL_DBLP);
  EXPECT_EQ(parts[1].type, DBLP_CMSG_PROTECT);
  ASSERT_EQ(parts[1].data.size(), 3 * sizeof(dblp_range));
  std::array<dblp_range, 3> ranges;
  std::memcpy(ranges.data(), parts[1].data.data(), sizeof(ranges));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(ranges[i].off, options.protect[i].offset);
    EXPECT_EQ(ranges[i].len, options.protect[i].length);
  }
}

TEST(SendControl, RefusesWhatDoesNotFitTheInterface) {
  SendOptions options;
  options.tolerance = 1.5;
  auto result = build_send_control(options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), EINVAL);
  EXPECT_NE(result.error().context().find("tolerance"), std::string::npos);

  options = {};
  options.deadline = std::chrono::microseconds(-1);
  EXPECT_FALSE(build_send_control(options));
  options.deadline = std::chrono::hours(2);  // over 2^32 us
  result = build_send_control(options);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().context().find("deadline"), std::string::npos);
  options.deadline = std::chrono::microseconds(std::numeric_limits<std::uint32_t>::max());
  EXPECT_TRUE(build_send_control(options));
}

// A control buffer as the kernel leaves it.
class Incoming {
 public:
  void add(int level, int type, const void* data, std::size_t length) {
    const std::size_t start = buffer_.size();
    buffer_.resize(start + CMSG_SPACE(length));
    auto* header = reinterpret_cast<cmsghdr*>(buffer_.data() + start);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(length);
    std::memcpy(CMSG_DATA(header), data, length);
  }
  void add_map(std::uint32_t segments, std::uint32_t size, const std::vector<std::uint64_t>& words,
               std::size_t cut = 0) {
    std::vector<std::byte> data(sizeof(dblp_map) + words.size() * 8);
    dblp_map head{};
    head.nr_segs = segments;
    head.seg_size = size;
    std::memcpy(data.data(), &head, sizeof(head));
    if (!words.empty()) std::memcpy(data.data() + sizeof(head), words.data(), words.size() * 8);
    add(SOL_DBLP, DBLP_CMSG_MAP, data.data(), data.size() - cut);
  }
  auto parse(int flags = 0) {
    msghdr message{};
    message.msg_control = buffer_.data();
    message.msg_controllen = buffer_.size();
    message.msg_flags = flags;
    return parse_receive_control(message);
  }

 private:
  std::vector<std::byte> buffer_;
};

TEST(ReceiveControl, ReadsInformationAndMap) {
  dblp_recv_info info{};
  info.msg_id = 17;
  info.len = 950;
  info.missing_bytes = 150;
  info.allowed_bytes = 300;
  info.tag = 5;
  info.nr_segs = 10;
  info.seg_size = 100;
  info.flags = DBLP_RECV_PARTIAL;
  Incoming incoming;
  incoming.add(SOL_DBLP, DBLP_CMSG_RECV, &info, sizeof(info));
  incoming.add_map(10, 100, {0b10'0000'0010});

  auto control = incoming.parse();
  ASSERT_TRUE(control.info);
  EXPECT_EQ(std::memcmp(&*control.info, &info, sizeof(info)), 0);
  EXPECT_FALSE(control.map_truncated);
  const dblp::Map map(control.info->len, control.map_segments, control.map_segment_size,
                      control.map_words);
  EXPECT_EQ(map.ranges(), (std::vector<Range>{{100, 100}, {900, 50}}));
}

TEST(ReceiveControl, OfNothing) {
  const auto control = Incoming().parse();
  EXPECT_FALSE(control.info);
  EXPECT_TRUE(control.map_words.empty());
  EXPECT_FALSE(control.map_truncated);
}

TEST(ReceiveControl, TakesLongerAndShorterStructures) {
  struct {
    dblp_recv_info info;
    std::uint64_t later;
  } longer{};
  longer.info.tag = 77;
  longer.later = ~std::uint64_t{0};
  Incoming incoming;
  incoming.add(SOL_DBLP, DBLP_CMSG_RECV, &longer, sizeof(longer));
  EXPECT_EQ(incoming.parse().info->tag, 77U);

  Incoming shorter;
  shorter.add(SOL_DBLP, DBLP_CMSG_RECV, &longer, offsetof(dblp_recv_info, nr_segs));
  const auto control = shorter.parse();
  ASSERT_TRUE(control.info);
  EXPECT_EQ(control.info->tag, 77U);
  EXPECT_EQ(control.info->nr_segs, 0U);
}

TEST(ReceiveControl, SkipsWhatItDoesNotKnow) {
  const std::uint32_t stamp = 1;
  Incoming incoming;
  incoming.add(SOL_SOCKET, DBLP_CMSG_RECV, &stamp, sizeof(stamp));
  incoming.add(SOL_DBLP, 99, &stamp, sizeof(stamp));
  incoming.add_map(1, 100, {1});
  const auto control = incoming.parse();
  EXPECT_FALSE(control.info);
  EXPECT_EQ(control.map_segments, 1U);
}

TEST(ReceiveControl, SaysWhenTheMapIsCut) {
  Incoming word_short;
  word_short.add_map(65, 100, {1});
  auto control = word_short.parse();
  EXPECT_TRUE(control.map_truncated);
  EXPECT_EQ(control.map_words, std::vector<std::uint64_t>{1});

  Incoming half_word;
  half_word.add_map(65, 100, {1, 1}, 4);
  control = half_word.parse();
  EXPECT_TRUE(control.map_truncated);
  EXPECT_EQ(control.map_words.size(), 1U);

  Incoming no_head;
  no_head.add_map(65, 100, {}, 4);
  control = no_head.parse();
  EXPECT_TRUE(control.map_truncated);
  EXPECT_TRUE(control.map_words.empty());

  Incoming whole;
  whole.add_map(64, 100, {1});
  EXPECT_TRUE(whole.parse(MSG_CTRUNC).map_truncated);
  EXPECT_FALSE(whole.parse().map_truncated);
}

TEST(ReceiveControl, DoesNotTrustTheNumberOfSegments) {
  Incoming incoming;
  incoming.add_map(std::numeric_limits<std::uint32_t>::max(), 100, {1});
  const auto control = incoming.parse();
  EXPECT_TRUE(control.map_truncated);
  EXPECT_EQ(control.map_segments, 0U);
  EXPECT_TRUE(control.map_words.empty());
}

TEST(ReceiveControl, HasRoomForTheLargestMap) {
  Incoming incoming;
  const dblp_recv_info info{};
  incoming.add(SOL_DBLP, DBLP_CMSG_RECV, &info, sizeof(info));
  incoming.add_map(DBLP_MAX_SEGMENTS, 1024, std::vector<std::uint64_t>(DBLP_MAX_SEGMENTS / 64, 1));
  EXPECT_FALSE(incoming.parse().map_truncated);
  EXPECT_EQ(dblp::detail::kReceiveControl,
            CMSG_SPACE(sizeof(info)) + CMSG_SPACE(sizeof(dblp_map) + DBLP_MAX_SEGMENTS / 8));
}

TEST(Completion, IsReadFromTheWholePayload) {
  dblp_completion sent{};
  sent.msg_id = 3;
  sent.tag = 9;
  sent.error = ETIMEDOUT;
  sent.outcome = DBLP_OUTCOME_UNKNOWN;
  std::array<std::byte, sizeof(sent) + 16> payload;
  payload.fill(std::byte{0xff});
  std::memcpy(payload.data(), &sent, sizeof(sent));
  for (const std::size_t length : {sizeof(sent), sizeof(sent) + 16}) {
    const auto completion = parse_completion(std::span(payload).first(length));
    ASSERT_TRUE(completion);
    EXPECT_EQ(std::memcmp(&*completion, &sent, sizeof(sent)), 0);
  }
}

TEST(Completion, OfTooFewBytesIsAnError) {
  const std::array<std::byte, sizeof(dblp_completion)> payload{};
  const auto completion = parse_completion(std::span(payload).first(40));
  ASSERT_FALSE(completion);
  EXPECT_EQ(completion.error().code(), EBADMSG);
  EXPECT_FALSE(parse_completion({}));
}

}  // namespace

// SPDX-License-Identifier: GPL-2.0
//
// What a stranger may send to the control port.

#include "frame.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "failure.hpp"

namespace perf {
namespace {

std::vector<std::byte> frame(const std::string& text) {
  std::vector<std::byte> bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<std::byte>(text.size() >> shift));
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

void refuse(const std::vector<std::byte>& bytes) {
  FrameParser parser;
  parser.append(bytes);
  EXPECT_THROW((void)parser.next(), Failure);
}

TEST(Frame, ComesBackAsItWas) {
  const Json message{{"type", "go"}, {"number", 7}, {"text", "ü\n\""}};
  FrameParser parser;
  parser.append(encode_frame(message));
  EXPECT_EQ(parser.next(), message);
  EXPECT_EQ(parser.next(), std::nullopt);
  EXPECT_EQ(parser.pending(), 0U);
}

TEST(Frame, ComesInPieces) {
  const Json first{{"type", "a"}};
  const Json second{{"type", "b"}, {"x", {1, 2, 3}}};
  auto bytes = encode_frame(first);
  const auto more = encode_frame(second);
  bytes.insert(bytes.end(), more.begin(), more.end());
  FrameParser parser;
  std::vector<Json> got;
  for (const auto byte : bytes) {
    parser.append({&byte, 1});
    while (auto message = parser.next()) got.push_back(*message);
  }
  EXPECT_EQ(got, (std::vector<Json>{first, second}));
}

TEST(Frame, RefusesWhatIsNone) {
  refuse(frame(""));
  refuse(frame("{"));
  refuse(frame("[]"));
  refuse(frame("null"));
  refuse(frame("{}"));
  refuse(frame(R"({"type":1})"));
  refuse(frame("{\"type\":\"a\"} trailing"));
  refuse(frame("{\"type\":\"\xff\xfe\"}"));
  refuse(frame("GET / HTTP/1.1\r\n\r\n"));
}

TEST(Frame, RefusesALengthAtOnce) {
  // As HTTP and TLS begin: no need to wait for a gigabyte that never comes.
  for (const char* text : {"GET / HTTP/1.1\r\n", "\x16\x03\x01\x02"}) {
    FrameParser parser;
    parser.append(std::as_bytes(std::span(text, 4)));
    EXPECT_THROW((void)parser.next(), Failure);
  }
}

TEST(Frame, RefusesDepth) {
  const auto nested = [](std::size_t depth) {
    return frame(R"({"type":"a","x":)" + std::string(depth, '[') + std::string(depth, ']') + "}");
  };
  FrameParser parser;
  parser.append(nested(kMaxFrameDepth - 2));
  EXPECT_TRUE(parser.next().has_value());
  refuse(nested(kMaxFrameDepth + 1));
  refuse(nested(kMaxFrame / 2 - 100));
}

TEST(Frame, RandomBytesDoNoHarm) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto valid = encode_frame({{"type", "setup"}, {"rank", 3}, {"list", {1, "x", nullptr}}});
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = valid;
    for (unsigned k = random() % 4 + 1; k > 0; --k)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    FrameParser parser;
    parser.append(bytes);
    try {
      while (parser.next()) {
      }
    } catch (const Failure&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace perf

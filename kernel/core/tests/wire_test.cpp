// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "wire.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "guarded_bytes.h"
#include "random_frame.h"

namespace dblp::test {
namespace {

std::vector<u8> hex(std::string_view text) {
  std::vector<u8> bytes;
  std::string digits;
  for (char c : text) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() == 2) {
      bytes.push_back(static_cast<u8>(std::stoul(digits, nullptr, 16)));
      digits.clear();
    }
  }
  return bytes;
}

const char* name_of(int ret) {
  return ret < 0 ? dblp_reject_name(static_cast<dblp_reject>(-ret)) : "accepted";
}

// Bits 0, 9 of 12; runs {2, 3} and {0x100, 1}.
const u8 kBits[] = {0x01, 0x02};
const u8 kRanges[] = {0, 2, 0, 3, 1, 0, 0, 1};

struct Golden {
  const char* name;
  dblp_frame_type type;
  std::function<void(dblp_frame&)> fill;
  const char* bytes;               // without the payload of DATA
  std::vector<u32> reserved = {};  // offsets of bytes that must be zero
  u32 payload = 0;
};

void PrintTo(const Golden& g, std::ostream* out) { *out << g.name; }

const std::vector<Golden>& golden() {
  static const std::vector<Golden> table = {
      {"Data",
       DBLP_F_DATA,
       [](dblp_frame& f) {
         f.u.data = {
             .delta = 0x3ff, .seg = 2, .msg_len = 0x2345, .seg_size = 0x1000, .len = 0, .off = 0};
       },
       "01 00 03ff 00000002 00002345 1000 0000",
       {1, 14, 15},
       0x345},
      {"DataSingle",
       DBLP_F_DATA,
       [](dblp_frame& f) {
         f.u.data = {.delta = 1, .seg = 0, .msg_len = 3, .seg_size = 17, .len = 0, .off = 0};
       },
       "01 00 0001 00000000 00000003 0011 0000",
       {1, 14, 15},
       3},
      {"Desc", DBLP_F_DESC,
       [](dblp_frame& f) {
         f.u.desc.mode = DBLP_WIRE_EAGER;
         f.u.desc.phase = 0xa1;
         f.u.desc.priority = 0xa2;
         f.u.desc.id = 0x01020304;
         f.u.desc.msg_len = 0x00100000;
         f.u.desc.seg_size = 0x0400;
         f.u.desc.nprot = 2;
         f.u.desc.grouped = true;
         f.u.desc.ppm = 1000000;
         f.u.desc.allow = 0x00100000;
         f.u.desc.deadline_us = 0x11121314;
         f.u.desc.group = 0x21222324;
         f.u.desc.tag = 0x3132333435363738;
         f.u.desc.prot[0] = {0, 1};
         f.u.desc.prot[1] = {0x3fe, 2};
       },
       "02 01 a1 a2 01020304 00100000 0400 02 01 000f4240 00100000 11121314 21222324 "
       "3132333435363738 00000000 00000001 000003fe 00000002"},
      {"DescPlain", DBLP_F_DESC,
       [](dblp_frame& f) {
         f.u.desc.id = 1;
         f.u.desc.msg_len = 1;
         f.u.desc.seg_size = 16;
       },
       "02 00 00 00 00000001 00000001 0010 00 00 00000000 00000000 00000000 00000000 "
       "0000000000000000"},
      {"Mark",
       DBLP_F_MARK,
       [](dblp_frame& f) {
         f.u.mark = {0, 0x0102, 0x03040506, 0x1112131415161718, 1000000};
       },
       "03 00 0102 03040506 1112131415161718 000f4240",
       {1}},
      {"Close", DBLP_F_CLOSE,
       [](dblp_frame& f) {
         f.u.mark = {DBLP_CLOSE_SHUTDOWN, 0x0102, 0x03040506, 0x1112131415161718, 7};
       },
       "08 03 0102 03040506 1112131415161718 00000007"},
      {"Ack",
       DBLP_F_ACK,
       [](dblp_frame& f) {
         f.u.ack.nranges = 2;
         f.u.ack.ndone = 1;
         f.u.ack.largest = 0x01020304;
         f.u.ack.delay_us = 0x11121314;
         f.u.ack.ect0 = 0x21222324;
         f.u.ack.ect1 = 0x31323334;
         f.u.ack.ce = 0x41424344;
         f.u.ack.budget_kib = 0x51525354;
         f.u.ack.range[0] = {0, 0xffff};
         f.u.ack.range[1] = {0x6162, 0x6364};
         f.u.ack.done[0] = {0x03f0, 0x000f};
       },
       "04 02 01 00 01020304 11121314 21222324 31323334 41424344 51525354 "
       "0000ffff 61626364 03f0000f",
       {3}},
      {"Done", DBLP_F_DONE,
       [](dblp_frame& f) {
         f.u.done = {DBLP_VERDICT_BELOW, 0x40,       0x01020304,
                     0x11121314,         0x21222324, 0x3132333435363738};
       },
       "05 01 0040 01020304 11121314 21222324 3132333435363738"},
      {"DoneClean", DBLP_F_DONE, [](dblp_frame& f) { f.u.done = {0, 0, 5, 0, 0, 6}; },
       "05 00 0000 00000005 00000000 00000000 0000000000000006"},
      {"NeedBits", DBLP_F_NEED,
       [](dblp_frame& f) {
         f.u.need = {.enc = DBLP_LIST_BITS,
                     .pass = 0x0102,
                     .nsegs = 12,
                     .list_len = 2,
                     .id = 0x11121314,
                     .need = 0x21222324,
                     .missing_segs = 0x31323334,
                     .largest = 0x41424344,
                     .base = 0x00012340,
                     .list = kBits};
       },
       "06 00 0102 11121314 21222324 31323334 41424344 00012340 000c 0002 0102"},
      {"NeedRanges", DBLP_F_NEED,
       [](dblp_frame& f) {
         f.u.need = {.enc = DBLP_LIST_RANGES,
                     .pass = 1,
                     .nsegs = 0xffff,
                     .list_len = 8,
                     .id = 2,
                     .need = 3,
                     .missing_segs = 4,
                     .largest = 5,
                     .base = 0,
                     .list = kRanges};
       },
       "06 01 0001 00000002 00000003 00000004 00000005 00000000 ffff 0008 "
       "0002 0003 0100 0001"},
      {"MapBits",
       DBLP_F_MAP,
       [](dblp_frame& f) {
         f.u.map = {DBLP_LIST_BITS, 0x3f, 2, 0x01020304, kBits};
       },
       "07 00 003f 01020304 0002 0000 0102",
       {10, 11}},
      {"MapRanges",
       DBLP_F_MAP,
       [](dblp_frame& f) {
         f.u.map = {DBLP_LIST_RANGES, 1, 8, 0x01020304, kRanges};
       },
       "07 01 0001 01020304 0008 0000 0002 0003 0100 0001",
       {10, 11}},
      {"MapNothing",
       DBLP_F_MAP,
       [](dblp_frame& f) {
         f.u.map = {DBLP_LIST_RANGES, 1, 0, 9, nullptr};
       },
       "07 01 0001 00000009 0000 0000",
       {10, 11}},
      {"Busy",
       DBLP_F_BUDGET,
       [](dblp_frame& f) {
         f.u.budget = {DBLP_BUSY, 0x01020304, 0x11121314};
       },
       "09 01 0000 01020304 11121314",
       {2, 3}},
      {"Grant",
       DBLP_F_BUDGET,
       [](dblp_frame& f) {
         f.u.budget = {DBLP_GRANT, 0x01020304, 0x11121314};
       },
       "09 02 0000 01020304 11121314",
       {2, 3}},
      {"Refuse",
       DBLP_F_REFUSE,
       [](dblp_frame& f) {
         f.u.refuse = {DBLP_REFUSE_SIZE, 0x01020304, 0x1112131415161718};
       },
       "0a 01 0000 01020304 1112131415161718",
       {2, 3}},
      {"Reset",
       DBLP_F_RESET,
       [](dblp_frame& f) { f.u.reason = {DBLP_RESET_PROTOCOL}; },
       "0b 03 0000",
       {2, 3}},
      {"Init",
       DBLP_F_INIT,
       [](dblp_frame& f) {
         f.u.hello.tx_flow = 0x0102030405060708;
         f.u.hello.incarnation = 0x1112131415161718;
       },
       "0c 000000 0102030405060708 1112131415161718 "
       "0000000000000000 0000000000000000 0000000000000000 0000000000000000",
       {1,  2,  3,  20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34,
        35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51}},
      {"Challenge",
       DBLP_F_CHALLENGE,
       [](dblp_frame& f) {
         f.u.hello = {.tx_flow = 0x0102030405060708,
                      .rx_flow = 0x1112131415161718,
                      .incarnation = 0x2122232425262728,
                      .cookie_time = 0x3132333435363738,
                      .cookie = 0x4142434445464748,
                      .first_kib = 0x51525354};
       },
       "0d 000000 0102030405060708 1112131415161718 2122232425262728 3132333435363738 "
       "4142434445464748 51525354 00000000",
       {1, 2, 3, 48, 49, 50, 51}},
      {"Echo",
       DBLP_F_ECHO,
       [](dblp_frame& f) {
         f.u.hello = {.tx_flow = 0x0102030405060708,
                      .rx_flow = 0x2122232425262728,
                      .incarnation = 0x1112131415161718,
                      .cookie_time = 0x3132333435363738,
                      .cookie = 0x4142434445464748,
                      .first_kib = 0};
       },
       "0e 000000 0102030405060708 1112131415161718 2122232425262728 3132333435363738 "
       "4142434445464748 0000000000000000",
       {1, 2, 3, 44, 45, 46, 47, 48, 49, 50, 51}},
      {"Accept",
       DBLP_F_ACCEPT,
       [](dblp_frame& f) {
         f.u.accept = {0x0102030405060708, 0x11121314};
       },
       "0f 000000 0102030405060708 11121314",
       {1, 2, 3}},
      {"Ping", DBLP_F_PING, [](dblp_frame&) {}, "10 000000", {1, 2, 3}},
      {"Fin",
       DBLP_F_FIN,
       [](dblp_frame& f) { f.u.reason = {DBLP_FIN_CLOSED}; },
       "11 02 0000",
       {2, 3}},
  };
  return table;
}

const Golden& golden(std::string_view name) {
  for (const Golden& g : golden())
    if (name == g.name) return g;
  std::abort();
}

// A packet of one header and `body`.
std::vector<u8> packet(const std::vector<u8>& body) {
  std::vector<u8> bytes(DBLP_HDR_LEN);
  bytes.insert(bytes.end(), body.begin(), body.end());
  dblp_hdr h = {};
  h.len = static_cast<u16>(bytes.size());
  h.flow = 1;
  dblp_hdr_put(bytes.data(), &h);
  return bytes;
}

std::vector<u8> body(const Golden& g) {
  std::vector<u8> bytes = hex(g.bytes);
  bytes.resize(bytes.size() + g.payload, 0x77);
  return bytes;
}

// First result for a packet of `body`, nothing readable behind its `linear` bytes.
struct Reading {
  Reading(const std::vector<u8>& body, u32 linear = U32_MAX) : bytes(prefix(packet(body), linear)) {
    dblp_hdr h = {};
    h.len = static_cast<u16>(DBLP_HDR_LEN + body.size());
    dblp_reader_init(&reader, bytes.data(), bytes.size(), &h);
    ret = dblp_frame_next(&reader, &frame);
  }
  static std::vector<u8> prefix(std::vector<u8> whole, u32 linear) {
    if (linear < whole.size()) whole.resize(linear);
    return whole;
  }
  GuardedBytes bytes;
  dblp_reader reader{};
  dblp_frame frame{};
  int ret;
};

class WireGolden : public testing::TestWithParam<Golden> {};

TEST_P(WireGolden, EncodesToExactBytes) {
  const Golden& g = GetParam();
  const std::vector<u8> want = hex(g.bytes);
  dblp_frame f = {};
  f.type = g.type;
  g.fill(f);
  EXPECT_EQ(dblp_frame_size(&f), want.size());

  std::vector<u8> got(want.size() + 1, 0xee);
  dblp_writer w = {got.data(), static_cast<u32>(want.size()), 0};
  ASSERT_TRUE(dblp_frame_put(&w, &f));
  EXPECT_EQ(w.len, want.size());
  EXPECT_EQ(got.back(), 0xee);
  got.pop_back();
  EXPECT_EQ(got, want);

  EXPECT_FALSE(dblp_frame_put(&w, &f)) << "no room is left";
  EXPECT_EQ(w.len, want.size());
  w = {got.data(), static_cast<u32>(want.size()) - 1, 0};
  EXPECT_FALSE(dblp_frame_put(&w, &f)) << "one byte short";
  EXPECT_EQ(w.len, 0u);
  EXPECT_EQ(got, want) << "nothing written";
}

// The bytes of the table are all different where it matters, so a field read from the
// wrong place encodes to other bytes.
TEST_P(WireGolden, DecodesToTheSameFrame) {
  const Golden& g = GetParam();
  Reading r(body(g));
  ASSERT_EQ(r.ret, 1) << name_of(r.ret);
  EXPECT_EQ(r.frame.type, g.type);
  EXPECT_EQ(r.reader.pos, r.reader.end);

  const std::vector<u8> want = hex(g.bytes);
  std::vector<u8> again(want.size());
  dblp_writer w = {again.data(), static_cast<u32>(again.size()), 0};
  ASSERT_TRUE(dblp_frame_put(&w, &r.frame));
  EXPECT_EQ(again, want);
  EXPECT_EQ(dblp_frame_next(&r.reader, &r.frame), 0);
}

TEST_P(WireGolden, EveryTruncationIsRejected) {
  const std::vector<u8> whole = body(GetParam());
  for (size_t n = 1; n < whole.size(); n++) {
    Reading r({whole.begin(), whole.begin() + static_cast<long>(n)});
    ASSERT_EQ(r.ret, -DBLP_REJECT_TRUNCATED) << n << " bytes: " << name_of(r.ret);
    ASSERT_EQ(r.reader.pos, static_cast<u32>(DBLP_HDR_LEN));
  }
}

TEST_P(WireGolden, WhatIsNotLinearIsAskedFor) {
  const Golden& g = GetParam();
  const std::vector<u8> whole = body(g);
  const u32 needed = static_cast<u32>(DBLP_HDR_LEN + whole.size() - g.payload);
  for (u32 linear = DBLP_HDR_LEN; linear < DBLP_HDR_LEN + whole.size(); linear++) {
    Reading r(whole, linear);
    ASSERT_EQ(r.ret, linear < needed ? DBLP_READ_LINEAR : 1) << linear;
    ASSERT_EQ(r.reader.pos, r.ret == 1 ? r.reader.end : DBLP_HDR_LEN);
  }
}

TEST_P(WireGolden, EveryReservedBitIsRejected) {
  const Golden& g = GetParam();
  for (u32 at : g.reserved) {
    for (int bit = 0; bit < 8; bit++) {
      std::vector<u8> bytes = body(g);
      bytes[at] |= static_cast<u8>(1u << bit);
      Reading r(bytes);
      ASSERT_EQ(r.ret, -DBLP_REJECT_RESERVED) << at << ": " << name_of(r.ret);
      ASSERT_EQ(r.reader.pos, static_cast<u32>(DBLP_HDR_LEN));
    }
  }
}

TEST_P(WireGolden, AFrameBehindItIsRead) {
  std::vector<u8> bytes = body(GetParam());
  const std::vector<u8> ping = hex("10000000");
  bytes.insert(bytes.end(), ping.begin(), ping.end());
  Reading r(bytes);
  ASSERT_EQ(r.ret, 1);
  ASSERT_EQ(dblp_frame_next(&r.reader, &r.frame), 1);
  EXPECT_EQ(r.frame.type, DBLP_F_PING);
  EXPECT_EQ(dblp_frame_next(&r.reader, &r.frame), 0);
}

INSTANTIATE_TEST_SUITE_P(Frames, WireGolden, testing::ValuesIn(golden()),
                         [](const auto& info) { return std::string(info.param.name); });

struct Bad {
  const char* frame;
  u32 offset;
  const char* bytes;
  int want;  // reject, 0 accepted
};

TEST(Wire, ImpossibleValues) {
  const Bad table[] = {
      {"Data", 2, "0400", DBLP_REJECT_ID_WINDOW},
      {"Data", 2, "ffff", DBLP_REJECT_ID_WINDOW},
      {"Data", 4, "00000003", DBLP_REJECT_SEGMENT},
      {"Data", 4, "ffffffff", DBLP_REJECT_SEGMENT},
      {"Data", 8, "00000000", DBLP_REJECT_MSG_LEN},
      {"Data", 8, "20000001", DBLP_REJECT_MSG_LEN},
      {"Data", 12, "0000", DBLP_REJECT_SEG_SIZE},
      {"Data", 12, "1002", DBLP_REJECT_SEG_SIZE},
      {"Data", 12, "01fc", DBLP_REJECT_SEG_SIZE},
      {"Data", 12, "2304", DBLP_REJECT_SEG_SIZE},
      {"DataSingle", 12, "000f", DBLP_REJECT_SEG_SIZE},
      {"DataSingle", 12, "0010", 0},
      {"DataSingle", 4, "00000001", DBLP_REJECT_SEGMENT},
      {"Desc", 1, "02", DBLP_REJECT_DESC},
      {"Desc", 8, "00000000", DBLP_REJECT_MSG_LEN},
      {"Desc", 12, "0402", DBLP_REJECT_SEG_SIZE},
      {"Desc", 14, "21", DBLP_REJECT_DESC},
      {"Desc", 15, "03", DBLP_REJECT_RESERVED},
      {"Desc", 15, "80", DBLP_REJECT_RESERVED},
      {"Desc", 16, "000f4241", DBLP_REJECT_DESC},
      {"Desc", 20, "00100001", DBLP_REJECT_DESC},
      {"Desc", 40, "00000000 00000000", DBLP_REJECT_DESC},  // empty
      {"Desc", 40, "00000000 000003ff", DBLP_REJECT_DESC},  // overlaps the next
      {"Desc", 40, "000003fe 00000001", DBLP_REJECT_DESC},  // the same start
      {"Desc", 40, "00000000 000003fe", 0},                 // touches the next
      {"Desc", 48, "000003fe 00000003", DBLP_REJECT_DESC},  // beyond the end
      {"Desc", 48, "00000400 00000001", DBLP_REJECT_DESC},
      {"Desc", 48, "00000001 ffffffff", DBLP_REJECT_DESC},  // wraps
      {"Desc", 48, "ffffffff 00000001", DBLP_REJECT_DESC},
      {"Mark", 2, "0000", 0},
      {"Mark", 16, "000f4241", DBLP_REJECT_MARK},
      {"Close", 2, "0000", DBLP_REJECT_MARK},
      {"Close", 16, "ffffffff", DBLP_REJECT_MARK},
      {"Close", 1, "00", DBLP_REJECT_VALUE},
      {"Close", 1, "04", DBLP_REJECT_VALUE},
      {"Ack", 1, "0000", DBLP_REJECT_ACK},
      {"Ack", 1, "21", DBLP_REJECT_ACK},
      {"Ack", 2, "11", DBLP_REJECT_ACK},
      {"Ack", 28, "0001", DBLP_REJECT_ACK},  // first gap
      {"Ack", 30, "0000", DBLP_REJECT_ACK},  // empty
      {"Ack", 32, "0000", DBLP_REJECT_ACK},  // not a gap
      {"Ack", 34, "0000", DBLP_REJECT_ACK},
      {"Ack", 36, "03f0 0010", DBLP_REJECT_ACK},  // beyond the window
      {"Ack", 36, "ffff ffff", DBLP_REJECT_ACK},
      {"Done", 1, "02", DBLP_REJECT_VALUE},
      {"Done", 2, "0041", DBLP_REJECT_MAP},
      {"Done", 2, "0000", DBLP_REJECT_MAP},
      {"Done", 8, "00000000", DBLP_REJECT_MAP},
      {"DoneClean", 2, "0001", DBLP_REJECT_MAP},
      {"DoneClean", 8, "00000001", DBLP_REJECT_MAP},
      {"DoneClean", 12, "00000001", DBLP_REJECT_MAP},
      {"NeedBits", 1, "02", DBLP_REJECT_MAP},
      {"NeedBits", 20, "00012341", DBLP_REJECT_MAP},
      {"NeedBits", 20, "0007fff8", DBLP_REJECT_MAP},  // 12 segments from there are too many
      {"NeedBits", 20, "fffffff8", DBLP_REJECT_MAP},
      {"NeedBits", 24, "0000", DBLP_REJECT_MAP},
      {"NeedBits", 24, "0008", DBLP_REJECT_MAP},  // one byte would do
      {"NeedBits", 24, "0011", DBLP_REJECT_MAP},  // three bytes needed
      {"NeedBits", 24, "0010", 0},
      {"NeedBits", 1, "01", DBLP_REJECT_MAP},  // two bytes are no range
      {"NeedRanges", 26, "0000", DBLP_REJECT_MAP},
      {"NeedRanges", 26, "0007", DBLP_REJECT_MAP},
      {"NeedRanges", 26, "0009", DBLP_REJECT_TRUNCATED},
      {"MapBits", 1, "02", DBLP_REJECT_MAP},
      {"MapBits", 1, "01", DBLP_REJECT_MAP},
      {"MapBits", 2, "0040", DBLP_REJECT_MAP},
      {"MapNothing", 1, "00", DBLP_REJECT_MAP},
      {"Busy", 1, "00", DBLP_REJECT_VALUE},
      {"Busy", 1, "03", DBLP_REJECT_VALUE},
      {"Refuse", 1, "00", DBLP_REJECT_VALUE},
      {"Refuse", 1, "02", DBLP_REJECT_VALUE},
      {"Reset", 1, "00", DBLP_REJECT_VALUE},
      {"Reset", 1, "04", DBLP_REJECT_VALUE},
      {"Fin", 1, "00", DBLP_REJECT_VALUE},
      {"Fin", 1, "03", DBLP_REJECT_VALUE},
      {"Ping", 0, "12", DBLP_REJECT_FRAME_TYPE},
      {"Ping", 0, "ff", DBLP_REJECT_FRAME_TYPE},
  };
  for (const Bad& bad : table) {
    std::vector<u8> bytes = body(golden(bad.frame));
    const std::vector<u8> patch = hex(bad.bytes);
    std::copy(patch.begin(), patch.end(), bytes.begin() + bad.offset);
    Reading r(bytes);
    EXPECT_EQ(r.ret, bad.want ? -bad.want : 1)
        << bad.frame << " at " << bad.offset << ": " << bad.bytes << ": " << name_of(r.ret);
  }
}

TEST(Wire, MapListHasALimit) {
  std::vector<u8> bytes = hex("07 01 0000 00000001 0400 0000");
  bytes.resize(DBLP_MAP_LEN + 1028);
  EXPECT_EQ(Reading(bytes).ret, 1);
  put_unaligned_be16(1028, &bytes[8]);
  EXPECT_EQ(Reading(bytes).ret, -DBLP_REJECT_MAP);
}

TEST(Wire, DataPayloadPosition) {
  const Golden& g = golden("Data");
  Reading r(body(g));
  ASSERT_EQ(r.ret, 1);
  EXPECT_EQ(r.frame.u.data.off, static_cast<u32>(DBLP_HDR_LEN + DBLP_DATA_LEN));
  EXPECT_EQ(r.frame.u.data.len, g.payload);
}

TEST(Wire, FrameBehindPayloadThatIsNotLinear) {
  std::vector<u8> bytes = body(golden("Data"));
  const u32 end = static_cast<u32>(DBLP_HDR_LEN + bytes.size());
  bytes.resize(bytes.size() + 4);
  bytes[bytes.size() - 4] = DBLP_F_PING;
  Reading r(bytes, DBLP_HDR_LEN + DBLP_DATA_LEN);
  ASSERT_EQ(r.ret, 1);
  EXPECT_EQ(dblp_frame_next(&r.reader, &r.frame), DBLP_READ_LINEAR);
  EXPECT_EQ(r.reader.pos, end);
}

TEST(Wire, PadTakesTheRest) {
  Reading good(std::vector<u8>(100));
  EXPECT_EQ(good.ret, 1);
  EXPECT_EQ(good.frame.type, DBLP_F_PAD);
  EXPECT_EQ(good.reader.pos, good.reader.end);

  EXPECT_EQ(Reading(std::vector<u8>(100), 60).ret, DBLP_READ_LINEAR);

  std::vector<u8> bad(100);
  bad.back() = 1;
  EXPECT_EQ(Reading(bad).ret, -DBLP_REJECT_RESERVED);

  std::vector<u8> room(10, 0xff);
  dblp_writer w = {room.data(), 10, 3};
  dblp_frame pad = {};
  ASSERT_TRUE(dblp_frame_put(&w, &pad));
  EXPECT_EQ(w.len, 10u);
  EXPECT_EQ(room, hex("ffffff 00000000000000"));
  EXPECT_FALSE(dblp_frame_put(&w, &pad));
}

TEST(Wire, EmptyPacketHasNoFrames) { EXPECT_EQ(Reading({}).ret, 0); }

TEST(Wire, LinearBeyondThePacketIsNotRead) {
  std::vector<u8> two = packet(hex("10000000"));
  const std::vector<u8> second = packet(hex("11010000"));
  dblp_hdr h;
  two.insert(two.end(), second.begin(), second.end());
  ASSERT_EQ(dblp_hdr_get(two.data(), static_cast<u32>(two.size()), &h), 0);
  dblp_reader r;
  dblp_reader_init(&r, two.data(), static_cast<u32>(two.size()), &h);
  dblp_frame f;
  EXPECT_EQ(dblp_frame_next(&r, &f), 1);
  EXPECT_EQ(dblp_frame_next(&r, &f), 0);
}

const char kHeader[] = "11 00 0014 0102030405060708 11121314 21222324";

TEST(WireHeader, ExactBytes) {
  const dblp_hdr h = {DBLP_HDR_REV, 20, 0x0102030405060708, 0x11121314, 0x21222324};
  std::vector<u8> got(DBLP_HDR_LEN, 0xee);
  dblp_hdr_put(got.data(), &h);
  EXPECT_EQ(got, hex(kHeader));

  dblp_hdr back = {};
  ASSERT_EQ(dblp_hdr_get(got.data(), DBLP_HDR_LEN, &back), 0);
  EXPECT_EQ(back.flags, h.flags);
  EXPECT_EQ(back.len, h.len);
  EXPECT_EQ(back.flow, h.flow);
  EXPECT_EQ(back.pn, h.pn);
  EXPECT_EQ(back.low, h.low);
}

TEST(WireHeader, Rejects) {
  struct {
    u32 offset;
    const char* bytes;
    int want;
  } const table[] = {
      {0, "01", DBLP_REJECT_VERSION},  {0, "21", DBLP_REJECT_VERSION},
      {0, "f1", DBLP_REJECT_VERSION},  {0, "18", DBLP_REJECT_RESERVED},
      {0, "19", DBLP_REJECT_RESERVED}, {0, "12", DBLP_REJECT_CRYPTO},
      {0, "14", DBLP_REJECT_CRYPTO},   {0, "10", 0},
      {1, "01", DBLP_REJECT_PATH},     {1, "80", DBLP_REJECT_PATH},
      {2, "0013", DBLP_REJECT_LENGTH}, {2, "0000", DBLP_REJECT_LENGTH},
      {2, "0015", DBLP_REJECT_LENGTH}, {2, "ffff", DBLP_REJECT_LENGTH},
  };
  for (const auto& row : table) {
    std::vector<u8> bytes = hex(kHeader);
    const std::vector<u8> patch = hex(row.bytes);
    std::copy(patch.begin(), patch.end(), bytes.begin() + row.offset);
    GuardedBytes guarded(bytes);
    dblp_hdr h;
    EXPECT_EQ(dblp_hdr_get(guarded.data(), guarded.size(), &h), row.want)
        << row.offset << ": " << row.bytes;
    // The reader of the datagram can step over these.
    if (row.want == DBLP_REJECT_PATH || row.want == DBLP_REJECT_RESERVED ||
        row.want == DBLP_REJECT_CRYPTO) {
      EXPECT_EQ(h.len, 20);
    }
  }
}

TEST(WireHeader, EveryTruncationIsRejected) {
  const std::vector<u8> whole = hex(kHeader);
  for (size_t n = 0; n < whole.size(); n++) {
    GuardedBytes guarded(std::span<const u8>(whole).first(n));
    dblp_hdr h;
    EXPECT_EQ(dblp_hdr_get(guarded.data(), guarded.size(), &h), DBLP_REJECT_TRUNCATED) << n;
  }
}

TEST(Wire, RandomFramesRoundTrip) {
  Random random = seeded();
  for (int i = 0; i < 20000; i++) {
    const RandomFrame f = random_frame(random);
    std::vector<u8> bytes(dblp_frame_size(&f.frame));
    dblp_writer w = {bytes.data(), static_cast<u32>(bytes.size()), 0};
    ASSERT_TRUE(dblp_frame_put(&w, &f.frame));
    const u32 payload = f.frame.type == DBLP_F_DATA ? f.frame.u.data.len : 0;
    std::vector<u8> whole = bytes;
    whole.resize(bytes.size() + payload);
    Reading r(whole);
    ASSERT_EQ(r.ret, 1) << f.frame.type << ": " << name_of(r.ret);
    std::vector<u8> again(bytes.size());
    w = {again.data(), static_cast<u32>(again.size()), 0};
    ASSERT_TRUE(dblp_frame_put(&w, &r.frame));
    ASSERT_EQ(again, bytes) << f.frame.type;
  }
}

TEST(Wire, Shape) {
  struct {
    u32 len, seg;
    int want;
  } const table[] = {
      {0, 1024, DBLP_REJECT_MSG_LEN},
      {1, 15, DBLP_REJECT_SEG_SIZE},
      {1, 16, 0},
      {16, 16, 0},
      {17, 17, 0},
      {17, 16, DBLP_REJECT_SEG_SIZE},  // two segments
      {1, 0, DBLP_REJECT_SEG_SIZE},
      {513, 512, 0},
      {513, 508, DBLP_REJECT_SEG_SIZE},
      {600, 514, DBLP_REJECT_SEG_SIZE},
      {600, 516, 0},
      {600, 601, 0},
      {8960, 8960, 0},
      {1, 8961, DBLP_REJECT_SEG_SIZE},
      {1, 65535, DBLP_REJECT_SEG_SIZE},
      {1u << 29, 8960, 0},
      {1u << 29, 1024, 0},                     // exactly 2^19 segments
      {1u << 29, 1020, DBLP_REJECT_SEG_SIZE},  // more
      {(1u << 29) + 1, 8960, DBLP_REJECT_MSG_LEN},
      {U32_MAX, 8960, DBLP_REJECT_MSG_LEN},
      {512u << 19, 512, 0},
      {(512u << 19) + 1, 512, DBLP_REJECT_SEG_SIZE},
  };
  for (const auto& row : table)
    EXPECT_EQ(dblp_msg_shape_check(row.len, row.seg), row.want) << row.len << " / " << row.seg;
}

TEST(Wire, SegmentLengths) {
  EXPECT_EQ(dblp_nsegs(1, 512), 1u);
  EXPECT_EQ(dblp_nsegs(1024, 512), 2u);
  EXPECT_EQ(dblp_nsegs(1025, 512), 3u);
  EXPECT_EQ(dblp_nsegs(1u << 29, 1024), 1u << 19);
  EXPECT_EQ(dblp_seg_len(1025, 512, 0), 512u);
  EXPECT_EQ(dblp_seg_len(1025, 512, 1), 512u);
  EXPECT_EQ(dblp_seg_len(1025, 512, 2), 1u);
  EXPECT_EQ(dblp_seg_len(1024, 512, 1), 512u);
}

TEST(Wire, SegmentForAPath) {
  EXPECT_EQ(dblp_seg_size_for(0), 0);
  EXPECT_EQ(dblp_seg_size_for(36), 0);
  EXPECT_EQ(dblp_seg_size_for(39), 0);
  EXPECT_EQ(dblp_seg_size_for(40), 4);
  EXPECT_EQ(dblp_seg_size_for(1472), 1436);
  EXPECT_EQ(dblp_seg_size_for(1471), 1432);
  EXPECT_EQ(dblp_seg_size_for(8972), 8936);
  EXPECT_EQ(dblp_seg_size_for(65507), 8960);
}

TEST(Wire, Expand32) {
  constexpr u64 k32 = 1ULL << 32;
  struct {
    u32 wire;
    u64 expect, want;
  } const table[] = {
      {1, 1, 1},
      {0, 1, 0},
      {0x7fffffff, 0, 0x7fffffff},
      {0xffffffff, 1, 0xffffffff},  // nothing below 0
      {0xffffffff, k32, k32 - 1},
      {0, k32 - 1, k32},
      {5, k32 + 0x7fffffff, k32 + 5},
      {5, k32 + 0x80000006, 2 * k32 + 5},
      {0xfffffffe, 7 * k32 + 1, 7 * k32 - 2},
      {1, 7 * k32 - 2, 7 * k32 + 1},
  };
  for (const auto& row : table)
    EXPECT_EQ(dblp_expand32(row.wire, row.expect), row.want) << row.wire << ", " << row.expect;

  Random random = seeded();
  for (int i = 0; i < 100000; i++) {
    const u64 expect = pick(random, k32, 1ULL << 60);
    const u64 real = expect + pick(random, 0, 0xfffffffe) - 0x7fffffff;
    ASSERT_EQ(dblp_expand32(static_cast<u32>(real), expect), real) << expect;
  }
}

TEST(Reject, NamesAreDistinct) {
  EXPECT_STREQ(dblp_reject_name(DBLP_REJECT_NONE), "none");
  EXPECT_STREQ(dblp_reject_name(DBLP_REJECT_VERSION), "version");
  EXPECT_STREQ(dblp_reject_name(DBLP_REJECT_CLOSED), "closed");
  EXPECT_STREQ(dblp_reject_name(DBLP_REJECT_COUNT), "?");
  for (int i = 0; i < DBLP_REJECT_COUNT; i++)
    for (int j = 0; j < i; j++)
      EXPECT_STRNE(dblp_reject_name(static_cast<dblp_reject>(i)),
                   dblp_reject_name(static_cast<dblp_reject>(j)));
}

}  // namespace
}  // namespace dblp::test

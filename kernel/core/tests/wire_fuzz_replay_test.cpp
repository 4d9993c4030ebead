// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// The fuzzer's entry point on mutated valid packets, under any compiler.

#include <gtest/gtest.h>

#include <vector>

#include "random_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace dblp::test {
namespace {

constexpr int kInputs = 200000;

void mutate(Random& random, std::vector<u8>& bytes) {
  const size_t at = pick(random, 0, bytes.size() - 1);
  const size_t left = bytes.size() - at;
  static constexpr u8 kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  switch (pick(random, 0, 6)) {
    case 0:
      bytes[at] ^= static_cast<u8>(1u << pick(random, 0, 7));
      break;
    case 1:
      bytes[at] = kEdges[pick(random, 0, 4)];
      break;
    case 2:
      bytes[at] = static_cast<u8>(random());
      break;
    case 3: {  // the fixed part of the first frame, where the counts are
      const size_t near = DBLP_HDR_LEN + pick(random, 0, 39);
      if (near < bytes.size()) bytes[near] = static_cast<u8>(random());
      break;
    }
    case 4:  // shorter, and the header says so
      if (at < DBLP_HDR_LEN) break;
      bytes.resize(at);
      put_unaligned_be16(static_cast<u16>(at), &bytes[2]);
      break;
    case 5:  // shorter than the header says
      bytes.resize(at + 1);
      break;
    case 6: {  // a piece copied elsewhere
      const size_t to = pick(random, 0, bytes.size() - 1);
      const size_t n = pick(random, 0, std::min({left, bytes.size() - to, size_t{64}}));
      std::vector<u8> piece(bytes.begin() + at, bytes.begin() + at + n);
      std::copy(piece.begin(), piece.end(), bytes.begin() + to);
      break;
    }
  }
}

TEST(WireFuzzReplay, MutatedPackets) {
  Random random = seeded();
  for (int i = 0; i < kInputs; i++) {
    std::vector<u8> bytes = random_packet(random, static_cast<unsigned>(pick(random, 1, 3)));
    for (u64 n = pick(random, 0, 4); n; n--) mutate(random, bytes);
    if (i % 8 == 0) {
      const std::vector<u8> second = random_packet(random, 1);
      bytes.insert(bytes.end(), second.begin(), second.end());
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

TEST(WireFuzzReplay, Noise) {
  Random random = seeded();
  for (int i = 0; i < kInputs; i++) {
    std::vector<u8> bytes(pick(random, 0, 100));
    for (u8& b : bytes) b = static_cast<u8>(random());
    if (bytes.size() >= DBLP_HDR_LEN) {  // past the header, into the frames
      bytes[0] = DBLP_WIRE_VERSION << 4;
      bytes[1] = 0;
      put_unaligned_be16(static_cast<u16>(bytes.size()), &bytes[2]);
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

// The mutations mean something only if the packets are good before them.
TEST(WireFuzzReplay, PacketsAreValidBefore) {
  Random random = seeded();
  bool seen[DBLP_F_FIN + 1] = {};
  for (int i = 0; i < 2000; i++) {
    const std::vector<u8> bytes = random_packet(random, 3);
    dblp_hdr h;
    ASSERT_EQ(dblp_hdr_get(bytes.data(), static_cast<u32>(bytes.size()), &h), 0);
    dblp_reader r;
    dblp_reader_init(&r, bytes.data(), h.len, &h);
    dblp_frame f;
    int ret;
    while ((ret = dblp_frame_next(&r, &f)) == 1) seen[f.type] = true;
    ASSERT_EQ(ret, 0) << dblp_reject_name(static_cast<dblp_reject>(-ret));
  }
  for (int type = 0; type <= DBLP_F_FIN; type++) EXPECT_TRUE(seen[type]) << type;
}

}  // namespace
}  // namespace dblp::test

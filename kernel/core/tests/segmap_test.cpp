// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "segmap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "guarded_bytes.h"
#include "owned_map.h"
#include "seed.h"

namespace dblp::test {
namespace {

constexpr u32 kSizes[] = {1,   7,    8,     63,    64,    65,     127,
                          128, 1000, 32767, 32768, 32769, 100000, DBLP_NSEGS_MAX};

using Runs = std::vector<std::pair<u32, u32>>;

void take_run(void* ctx, u32 first, u32 count) {
  static_cast<Runs*>(ctx)->emplace_back(first, count);
}

Runs runs_of(const dblp_segmap* m, u32 base, u32 nsegs) {
  Runs runs;
  for (u32 i = base; i < base + nsegs; i++) {
    if (!dblp_segmap_test(m, i)) continue;
    if (!runs.empty() && runs.back().first + runs.back().second == i)
      runs.back().second++;
    else
      runs.emplace_back(i, 1);
  }
  return runs;
}

TEST(Segmap, SetClearCount) {
  for (u32 n : kSizes) {
    OwnedMap map(n);
    EXPECT_FALSE(dblp_segmap_test(map.get(), n - 1));
    EXPECT_TRUE(dblp_segmap_set(map.get(), n - 1));
    EXPECT_FALSE(dblp_segmap_set(map.get(), n - 1)) << "set before";
    EXPECT_TRUE(dblp_segmap_test(map.get(), n - 1));
    EXPECT_EQ(map->set, 1u);
    EXPECT_EQ(dblp_segmap_next(map.get(), 0), n - 1);
    EXPECT_TRUE(dblp_segmap_clear(map.get(), n - 1));
    EXPECT_FALSE(dblp_segmap_clear(map.get(), n - 1)) << "clear before";
    EXPECT_EQ(map->set, 0u);
    EXPECT_EQ(dblp_segmap_next(map.get(), 0), n);
  }
}

TEST(Segmap, FillAndZero) {
  for (u32 n : kSizes) {
    OwnedMap map(n);
    dblp_segmap_fill(map.get());
    EXPECT_EQ(map->set, n);
    EXPECT_EQ(dblp_segmap_next(map.get(), 0), 0u);
    EXPECT_EQ(dblp_segmap_next_zero(map.get(), 0), n);
    u32 bits = 0;
    for (u32 i = 0; i < DIV_ROUND_UP(n, 64); i++) bits += hweight64(dblp_segmap_word(map.get(), i));
    EXPECT_EQ(bits, n) << "bits beyond the map";
    const u32 last = (n - 1) % DBLP_LEAF_BITS / 64;
    EXPECT_EQ(map->leaf[(n - 1) / DBLP_LEAF_BITS][last], dblp_segmap_word(map.get(), (n - 1) / 64));
    EXPECT_EQ(dblp_segmap_word(map.get(), DIV_ROUND_UP(n, 64)), 0u);
    dblp_segmap_zero(map.get());
    EXPECT_EQ(map->set, 0u);
    EXPECT_EQ(dblp_segmap_next(map.get(), 0), n);
  }
}

TEST(Segmap, CountsAStretch) {
  for (const u32 n : {1u, 63u, 64u, 65u, 200u, DBLP_LEAF_BITS + 70u}) {
    OwnedMap m(n);
    for (u32 i = 0; i < n; i += 3) dblp_segmap_set(m.get(), i);
    for (u32 first = 0; first <= n; first += first < 130 ? 1 : 997) {
      u32 want = 0;
      for (u32 end = first; end <= n; end++) {
        if (end < 200 || end + 70 > n || end % 1009 == 0) {
          ASSERT_EQ(dblp_segmap_count(m.get(), first, end), want)
              << n << ": " << first << ", " << end;
        }
        if (end < n) want += dblp_segmap_test(m.get(), end);
      }
    }
  }
}

TEST(Segmap, WordMasksWhatIsBeyond) {
  OwnedMap map(65);
  map->leaf[0][1] = U64_MAX;  // memory may hold anything there
  EXPECT_EQ(dblp_segmap_word(map.get(), 1), 1u);
}

TEST(Segmap, NextAgreesWithAPlainSearch) {
  Random random = seeded();
  for (u32 n : {1u, 64u, 65u, 1000u, 33000u}) {
    for (int density = 0; density < 4; density++) {
      OwnedMap map(n);
      std::vector<bool> plain(n);
      const u64 sets = n * static_cast<u64>(density) / 3;
      for (u64 i = 0; i < sets; i++) {
        const u32 bit = static_cast<u32>(pick(random, 0, n - 1));
        EXPECT_EQ(dblp_segmap_set(map.get(), bit), !plain[bit]);
        plain[bit] = true;
      }
      EXPECT_EQ(map->set, std::count(plain.begin(), plain.end(), true));
      u32 set = n, clear = n;
      for (u32 i = n; i--;) {
        (plain[i] ? set : clear) = i;
        ASSERT_EQ(dblp_segmap_next(map.get(), i), set) << i;
        ASSERT_EQ(dblp_segmap_next_zero(map.get(), i), clear) << i;
      }
      EXPECT_EQ(dblp_segmap_next(map.get(), n), n);
      EXPECT_EQ(dblp_segmap_next_zero(map.get(), n + 1000), n);
    }
  }
}

struct List {
  u8 enc;
  u32 covered;
  std::vector<u8> bytes;
};

List encode(const dblp_segmap* m, u32 base, u32 nsegs, u32 room) {
  GuardedBytes out(std::vector<u8>(room, 0xee));
  List list{.enc = 0xff, .covered = nsegs, .bytes = {}};
  const u32 len = dblp_list_encode(m, base, &list.covered, room, out.data(), &list.enc);
  EXPECT_LE(len, room);
  list.bytes.assign(out.data(), out.data() + len);
  return list;
}

TEST(List, ExactBytes) {
  OwnedMap map(40);
  map.set_run(0, 1);
  map.set_run(9, 1);
  map.set_run(17, 2);
  map.set_run(39, 1);
  List list = encode(map.get(), 0, 40, 100);
  EXPECT_EQ(list.enc, DBLP_LIST_BITS);
  EXPECT_EQ(list.covered, 40u);
  EXPECT_EQ(list.bytes, (std::vector<u8>{0x01, 0x02, 0x06, 0x00, 0x80}));

  list = encode(map.get(), 8, 32, 100);
  EXPECT_EQ(list.enc, DBLP_LIST_BITS);
  EXPECT_EQ(list.bytes, (std::vector<u8>{0x02, 0x06, 0x00, 0x80}));

  OwnedMap large(10000);
  large.set_run(300, 500);
  large.set_run(9999, 1);
  list = encode(large.get(), 296, 9704, 100);
  EXPECT_EQ(list.enc, DBLP_LIST_RANGES);
  EXPECT_EQ(list.covered, 9704u);
  EXPECT_EQ(list.bytes, (std::vector<u8>{0x00, 0x04, 0x01, 0xf4, 0x25, 0xe7, 0x00, 0x01}));
}

TEST(List, BitsIfBothAreAsLong) {
  OwnedMap map(32);
  map.set_run(3, 5);
  EXPECT_EQ(encode(map.get(), 0, 32, 100).enc, DBLP_LIST_BITS);
  OwnedMap longer(33);
  longer.set_run(3, 5);
  EXPECT_EQ(encode(longer.get(), 0, 33, 100).enc, DBLP_LIST_RANGES);
}

TEST(List, NothingMissingIsAnEmptyRangeList) {
  OwnedMap map(8192);
  const List list = encode(map.get(), 0, 8192, 0);
  EXPECT_EQ(list.enc, DBLP_LIST_RANGES);
  EXPECT_EQ(list.covered, 8192u);
  EXPECT_TRUE(list.bytes.empty());
}

TEST(List, StretchIsCutToSixteenBits) {
  OwnedMap map(DBLP_NSEGS_MAX);
  dblp_segmap_fill(map.get());
  const List list = encode(map.get(), 1024, DBLP_NSEGS_MAX - 1024, 1200);
  EXPECT_EQ(list.enc, DBLP_LIST_RANGES);
  EXPECT_EQ(list.covered, 65528u);
  EXPECT_EQ(list.bytes, (std::vector<u8>{0, 0, 0xff, 0xf8}));
}

TEST(List, LastSixtyFiveThousandNeedNoCut) {
  OwnedMap map(65535);
  map.set_run(0, 65535);
  const List list = encode(map.get(), 0, 65535, 1200);
  EXPECT_EQ(list.covered, 65535u);
  EXPECT_EQ(list.bytes, (std::vector<u8>{0, 0, 0xff, 0xff}));
}

// Room for three ranges; the fourth run starts in the byte where the last ones do, so the
// cut takes those away as well.
TEST(List, CutTakesAllRunsOfItsByte) {
  OwnedMap map(10000);
  map.set_run(5, 1);
  map.set_run(8000, 1);
  map.set_run(8002, 1);
  map.set_run(8004, 1);
  map.set_run(8006, 1);
  const List list = encode(map.get(), 0, 10000, 12);
  EXPECT_EQ(list.enc, DBLP_LIST_RANGES);
  EXPECT_EQ(list.covered, 8000u);
  EXPECT_EQ(list.bytes, (std::vector<u8>{0, 5, 0, 1}));
}

// A run that the cut goes through is shortened.
TEST(List, CutThroughARun) {
  OwnedMap map(10000);
  map.set_run(7000, 1001);  // ends at 8001
  map.set_run(8002, 1);
  const List list = encode(map.get(), 0, 10000, 4);
  EXPECT_EQ(list.covered, 8000u);
  EXPECT_EQ(list.bytes, (std::vector<u8>{0x1b, 0x58, 0x03, 0xe8}));
}

u32 bytes_by_ranges(const dblp_segmap* m, u32 base, u32 nsegs) {
  return static_cast<u32>(runs_of(m, base, nsegs).size()) * 4;
}

u32 shorter(const dblp_segmap* m, u32 base, u32 nsegs) {
  return std::min(bytes_by_ranges(m, base, nsegs), static_cast<u32>(DIV_ROUND_UP(nsegs, 8)));
}

TEST(List, RandomMapsRoundTripInTheShorterEncoding) {
  Random random = seeded();
  for (int i = 0; i < 4000; i++) {
    const u32 n = static_cast<u32>(pick(random, 1, i % 16 ? 3000 : 70000));
    OwnedMap map(n);
    const u32 step = static_cast<u32>(pick(random, 1, i % 3 ? 400 : 6));
    for (u32 at = 0; at < n; at += static_cast<u32>(pick(random, 1, 2 * step)))
      map.set_run(at, std::min(n - at, static_cast<u32>(pick(random, 0, 1 + step / 8))));

    const u32 base = static_cast<u32>(pick(random, 0, (n - 1) / 8)) * 8;
    const u32 wish = static_cast<u32>(pick(random, 1, n - base + 100));
    const u32 most = std::min({wish, n - base, n - base > 65535 ? 65528u : 65535u});
    const u32 room = static_cast<u32>(pick(random, 0, i % 2 ? 60 : 1400));
    const List list = encode(map.get(), base, wish, room);

    ASSERT_LE(list.covered, most);
    ASSERT_EQ(list.bytes.size(), shorter(map.get(), base, list.covered));
    ASSERT_EQ(list.enc == DBLP_LIST_RANGES,
              bytes_by_ranges(map.get(), base, list.covered) < DIV_ROUND_UP(list.covered, 8));
    if (list.covered < most) {
      ASSERT_EQ(list.covered % 8, 0u);
      const u32 more = std::min(list.covered + 8, most);
      ASSERT_GT(shorter(map.get(), base, more), room) << "one byte more would have fitted";
    }

    Runs runs;
    GuardedBytes wire(list.bytes);
    ASSERT_EQ(
        dblp_list_decode(list.enc, wire.data(), wire.size(), base, list.covered, take_run, &runs),
        0);
    ASSERT_EQ(runs, runs_of(map.get(), base, list.covered));
  }
}

TEST(List, DecodeRejects) {
  struct {
    u8 enc;
    u32 nsegs;
    std::vector<u8> bytes;
    int want;
  } const table[] = {
      {DBLP_LIST_BITS, 8, {0xff}, 0},
      {DBLP_LIST_BITS, 7, {0x7f}, 0},
      {DBLP_LIST_BITS, 7, {0x80}, DBLP_REJECT_MAP},
      {DBLP_LIST_BITS, 9, {0x00, 0x02}, DBLP_REJECT_MAP},
      {DBLP_LIST_BITS, 8, {}, DBLP_REJECT_MAP},
      {DBLP_LIST_BITS, 8, {0, 0}, DBLP_REJECT_MAP},
      {DBLP_LIST_BITS, 9, {0}, DBLP_REJECT_MAP},
      {DBLP_LIST_RANGES, 8, {}, 0},
      {DBLP_LIST_RANGES, 8, {0, 0, 0, 8}, 0},
      {DBLP_LIST_RANGES, 8, {0, 7, 0, 1}, 0},
      {DBLP_LIST_RANGES, 8, {0, 0, 0, 9}, DBLP_REJECT_MAP},
      {DBLP_LIST_RANGES, 8, {0, 8, 0, 1}, DBLP_REJECT_MAP},
      {DBLP_LIST_RANGES, 8, {0xff, 0xff, 0xff, 0xff}, DBLP_REJECT_MAP},
      {DBLP_LIST_RANGES, 8, {0, 3, 0, 0}, DBLP_REJECT_MAP},
      {DBLP_LIST_RANGES, 8, {0, 0, 0, 2, 0, 1, 0, 1}, DBLP_REJECT_MAP},  // overlap
      {DBLP_LIST_RANGES, 8, {0, 4, 0, 1, 0, 1, 0, 1}, DBLP_REJECT_MAP},  // descending
      {DBLP_LIST_RANGES, 8, {0, 0, 0, 2, 0, 2, 0, 1}, 0},                // touching
      {DBLP_LIST_RANGES, 8, {0, 0, 0}, DBLP_REJECT_MAP},
      {2, 8, {0xff}, DBLP_REJECT_MAP},
      {255, 8, {0, 0, 0, 1}, DBLP_REJECT_MAP},
  };
  for (size_t i = 0; i < std::size(table); i++) {
    const auto& row = table[i];
    GuardedBytes bytes(row.bytes);
    Runs runs;
    EXPECT_EQ(dblp_list_decode(row.enc, bytes.data(), bytes.size(), 80, row.nsegs, take_run, &runs),
              row.want)
        << "row " << i;
    EXPECT_TRUE(!row.want || runs.empty()) << "row " << i;
    EXPECT_EQ(
        dblp_list_decode(row.enc, bytes.data(), bytes.size(), 80, row.nsegs, nullptr, nullptr),
        row.want)
        << "row " << i;
  }
}

TEST(List, DecodeAddsTheBase) {
  const u8 bits[] = {0x81, 0x01};
  Runs runs;
  ASSERT_EQ(dblp_list_decode(DBLP_LIST_BITS, bits, 2, 8000, 10, take_run, &runs), 0);
  EXPECT_EQ(runs, (Runs{{8000, 1}, {8007, 2}}));

  const u8 ranges[] = {0, 1, 0, 2, 0, 5, 0, 1};
  runs.clear();
  ASSERT_EQ(dblp_list_decode(DBLP_LIST_RANGES, ranges, 8, 8000, 10, take_run, &runs), 0);
  EXPECT_EQ(runs, (Runs{{8001, 2}, {8005, 1}}));
}

// Values from another implementation of FNV-1a.
TEST(Digest, KnownValues) {
  OwnedMap three(3);
  dblp_segmap_set(three.get(), 0);
  dblp_segmap_set(three.get(), 2);
  EXPECT_EQ(dblp_map_digest(three.get(), 1500), 0x8d03ed397d242b6c);

  OwnedMap two_words(65);
  dblp_segmap_set(two_words.get(), 63);
  dblp_segmap_set(two_words.get(), 64);
  EXPECT_EQ(dblp_map_digest(two_words.get(), 70000), 0x25b57b6834133627);

  OwnedMap one(1);
  EXPECT_EQ(dblp_map_digest(one.get(), 1), 0xaa28ac6355e750e5);
}

TEST(Digest, EverySegmentMatters) {
  OwnedMap map(40000);
  const u64 none = dblp_map_digest(map.get(), 40000 * 512);
  EXPECT_NE(none, dblp_map_digest(map.get(), 40000 * 512 - 1));
  for (u32 bit : {0u, 1u, 63u, 64u, 32767u, 32768u, 39999u}) {
    dblp_segmap_set(map.get(), bit);
    EXPECT_NE(dblp_map_digest(map.get(), 40000 * 512), none) << bit;
    dblp_segmap_clear(map.get(), bit);
  }
  EXPECT_EQ(dblp_map_digest(map.get(), 40000 * 512), none);
}

TEST(Map, Parts) {
  EXPECT_EQ(dblp_map_parts(1), 1u);
  EXPECT_EQ(dblp_map_parts(8192), 1u);
  EXPECT_EQ(dblp_map_parts(8193), 2u);
  EXPECT_EQ(dblp_map_parts(DBLP_NSEGS_MAX), static_cast<u32>(DBLP_PARTS_MAX));
}

}  // namespace
}  // namespace dblp::test

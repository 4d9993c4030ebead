// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Any bytes as a datagram: packets, frames, lists.  What is accepted must encode to the
// very bytes it came from, must not depend on what lies behind the packet, and lists must
// stay inside the segments that they claim to cover.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "segmap.h"
#include "wire.h"

namespace {

void expect(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "wire_fuzz: %s\n", what);
  std::abort();
}

// Exactly as large as it says, so that AddressSanitizer sees the first byte beyond.
std::unique_ptr<u8[]> exact_copy(const u8* p, u32 n) {
  auto copy = std::make_unique<u8[]>(n);
  if (n) std::memcpy(copy.get(), p, n);
  return copy;
}

struct Runs {
  u32 end, at = 0;
  std::vector<dblp_segrun> runs;
};

void take_run(void* ctx, u32 first, u32 count) {
  Runs& r = *static_cast<Runs*>(ctx);
  expect(count > 0, "empty run");
  expect(first >= r.at && first < r.end && count <= r.end - first, "run outside its stretch");
  r.at = first + count;
  r.runs.push_back({first, count});
}

// A list that decodes names segments; encoded anew it must name the same ones.
void check_list(u8 enc, const u8* list, u32 len, u32 base, u32 nsegs) {
  Runs before{.end = base + nsegs, .at = base, .runs = {}};
  if (dblp_list_decode(enc, list, len, base, nsegs, take_run, &before)) {
    expect(before.runs.empty(), "run from a list that was rejected");
    return;
  }

  // A smaller map does, as long as bits keep their places in words.
  const u32 shift = base - base % 512;
  base -= shift;
  for (dblp_segrun& run : before.runs) run.first -= shift;

  dblp_segmap map{};
  std::vector<std::vector<u64>> leaves;
  map.nbits = base + nsegs;
  for (u32 i = 0; i < dblp_segmap_leaves(map.nbits); i++) {
    leaves.emplace_back(dblp_segmap_leaf_bytes(map.nbits, i) / 8);
    map.leaf[i] = leaves.back().data();
  }
  u32 set = 0;
  for (const dblp_segrun& run : before.runs) {
    for (u32 i = 0; i < run.count; i++)
      expect(dblp_segmap_set(&map, run.first + i), "segment named twice");
    set += run.count;
  }
  expect(map.set == set, "count of set bits");

  std::vector<u8> out(DIV_ROUND_UP(nsegs, 8));
  u32 covered = nsegs;
  u8 new_enc;
  const u32 used =
      dblp_list_encode(&map, base, &covered, static_cast<u32>(out.size()), out.data(), &new_enc);
  expect(covered == nsegs, "room for bits holds everything");
  expect(used <= out.size(), "list longer than its room");
  if (enc == DBLP_LIST_BITS || len < out.size()) expect(used <= len, "not the shorter encoding");

  dblp_segmap rest = map;  // the same leaves
  Runs after{.end = base + nsegs, .at = base, .runs = {}};
  expect(!dblp_list_decode(new_enc, out.data(), used, base, covered, take_run, &after),
         "own list rejected");
  for (const dblp_segrun& run : after.runs)
    for (u32 i = 0; i < run.count; i++)
      expect(dblp_segmap_clear(&rest, run.first + i), "segment that was not in the list");
  expect(!rest.set, "segment lost on the way");
}

void check_lists(const dblp_frame& f) {
  if (f.type == DBLP_F_NEED) {
    const dblp_f_need& n = f.u.need;
    check_list(n.enc, n.list, n.list_len, n.base, n.nsegs);
  } else if (f.type == DBLP_F_MAP) {
    const dblp_f_map& m = f.u.map;
    const u32 all = m.enc == DBLP_LIST_BITS ? m.list_len * 8u : DBLP_PART_SEGS;
    const u32 base = m.part * DBLP_PART_SEGS;
    check_list(m.enc, m.list, m.list_len, base, all);
    check_list(m.enc, m.list, m.list_len, base, all > 3 ? all - 3 : 1);
  }
}

void check_values(const dblp_frame& f) {
  if (f.type == DBLP_F_DATA) {
    const dblp_f_data& d = f.u.data;
    const u32 n = dblp_nsegs(d.msg_len, d.seg_size);
    expect(!dblp_msg_shape_check(d.msg_len, d.seg_size), "shape of DATA");
    expect(d.seg < n && d.len && d.len <= d.seg_size, "segment of DATA");
    expect(d.seg + 1 < n ? d.len == d.seg_size : d.seg * d.seg_size + d.len == d.msg_len,
           "payload length");
  } else if (f.type == DBLP_F_DESC) {
    expect(!dblp_desc_check(&f.u.desc), "values of DESC");
  } else if (f.type == DBLP_F_ACK) {
    expect(f.u.ack.nranges >= 1 && f.u.ack.nranges <= DBLP_ACK_RANGES, "ranges of ACK");
    expect(f.u.ack.ndone <= DBLP_ACK_DONE_RANGES, "completed ranges of ACK");
  }
}

// Reads the packet with `linear` bytes of it readable; returns how it ended and the
// position of each frame.
int read_frames(const u8* p, u32 linear, const dblp_hdr& h, bool check, std::vector<u32>* at) {
  dblp_reader r;
  dblp_reader_init(&r, p, linear, &h);
  for (;;) {
    const u32 start = r.pos;
    dblp_frame f;
    const int ret = dblp_frame_next(&r, &f);
    if (ret != 1) {
      expect(r.pos == start, "a bad frame was consumed");
      expect(ret == 0 || ret == DBLP_READ_LINEAR || (ret < 0 && -ret < DBLP_REJECT_COUNT),
             "return value");
      return ret;
    }
    expect(r.pos > start && r.pos <= h.len, "position");
    at->push_back(start);
    if (!check) continue;

    const u32 payload = f.type == DBLP_F_DATA ? f.u.data.len : 0;
    if (payload) expect(f.u.data.off + payload == r.pos, "payload offset");
    std::vector<u8> again(r.pos - start - payload, 0xa5);
    dblp_writer w = {again.data(), static_cast<u32>(again.size()), 0};
    expect(dblp_frame_put(&w, &f) && w.len == again.size(), "size of the encoded frame");
    expect(!std::memcmp(again.data(), p + start, again.size()), "bytes of the encoded frame");
    check_values(f);
    check_lists(f);
  }
}

void check_packet(const u8* p, const dblp_hdr& h) {
  u8 hdr[DBLP_HDR_LEN];
  dblp_hdr_put(hdr, &h);
  expect(!std::memcmp(hdr, p, sizeof(hdr)), "bytes of the encoded header");

  const auto whole = exact_copy(p, h.len);
  std::vector<u32> frames;
  const int end = read_frames(whole.get(), h.len, h, true, &frames);
  expect(end != DBLP_READ_LINEAR, "all of the packet was linear");

  // A prefix gives the same frames, as far as it goes.
  const u32 cut = static_cast<u32>(h.pn % (h.len - DBLP_HDR_LEN + 1u)) + DBLP_HDR_LEN;
  const auto part = exact_copy(p, cut);
  std::vector<u32> fewer;
  const int early = read_frames(part.get(), cut, h, false, &fewer);
  expect(early == DBLP_READ_LINEAR || early == end, "end of a packet not linear");
  expect(fewer.size() <= frames.size(), "frames of a packet not linear");
  for (size_t i = 0; i < fewer.size(); i++)
    expect(fewer[i] == frames[i], "positions in a packet not linear");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  while (size) {
    const u32 n = static_cast<u32>(size < U16_MAX ? size : U16_MAX);
    const auto copy = exact_copy(data, n);
    dblp_hdr h;
    const int err = dblp_hdr_get(copy.get(), n, &h);
    expect(err >= 0 && err < DBLP_REJECT_COUNT, "reject of a header");
    const bool skip =
        err == DBLP_REJECT_PATH || err == DBLP_REJECT_RESERVED || err == DBLP_REJECT_CRYPTO;
    if (err && !skip) return 0;
    expect(h.len >= DBLP_HDR_LEN && h.len <= n, "packet length");
    if (!err) check_packet(data, h);
    data += h.len;
    size -= h.len;
  }
  return 0;
}

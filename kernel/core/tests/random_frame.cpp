// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "random_frame.h"

#include <algorithm>

#include "segmap.h"

namespace dblp::test {
namespace {

u32 any32(Random& random) { return static_cast<u32>(random()); }

struct Shape {
  u32 len;
  u16 seg_size;
};

Shape random_shape(Random& random) {
  const u16 seg_size = static_cast<u16>(pick(random, DBLP_SEG_MIN / 4, DBLP_SEG_MAX / 4) * 4);
  const u32 most = std::min<u64>(DBLP_MSG_LEN_MAX, u64{seg_size} * DBLP_NSEGS_MAX);
  const u32 limits[] = {1, seg_size, 10u * seg_size, most};
  return {static_cast<u32>(pick(random, 1, limits[pick(random, 0, 3)])), seg_size};
}

void fill_data(Random& random, dblp_f_data& d) {
  const Shape shape = random_shape(random);
  d.delta = static_cast<u16>(pick(random, 0, DBLP_ID_WINDOW - 1));
  d.msg_len = shape.len;
  d.seg_size = shape.seg_size;
  d.seg = static_cast<u32>(pick(random, 0, dblp_nsegs(shape.len, shape.seg_size) - 1));
  d.len = static_cast<u16>(dblp_seg_len(d.msg_len, d.seg_size, d.seg));
}

void fill_desc(Random& random, dblp_f_desc& d) {
  const Shape shape = random_shape(random);
  const u32 nsegs = dblp_nsegs(shape.len, shape.seg_size);
  d.mode = random() & 1;
  d.phase = static_cast<u8>(random());
  d.priority = static_cast<u8>(random());
  d.grouped = random() & 1;
  d.id = any32(random);
  d.msg_len = shape.len;
  d.seg_size = shape.seg_size;
  d.ppm = static_cast<u32>(pick(random, 0, DBLP_ALLOW_PPM_MAX));
  d.allow = static_cast<u32>(pick(random, 0, shape.len));
  d.deadline_us = any32(random);
  d.group = any32(random);
  d.tag = random();
  const unsigned wish = static_cast<unsigned>(pick(random, 0, DBLP_PROT_MAX));
  for (u32 at = 0; d.nprot < wish && at < nsegs; d.nprot++) {
    dblp_segrun& run = d.prot[d.nprot];
    run.first = static_cast<u32>(pick(random, at, std::min(nsegs - 1, at + 100)));
    run.count = static_cast<u32>(pick(random, 1, std::min(nsegs - run.first, 100u)));
    at = run.first + run.count;
  }
}

void fill_ack(Random& random, dblp_f_ack& a) {
  a.nranges = static_cast<u8>(pick(random, 1, DBLP_ACK_RANGES));
  a.ndone = static_cast<u8>(pick(random, 0, DBLP_ACK_DONE_RANGES));
  a.largest = any32(random);
  a.delay_us = any32(random);
  a.ect0 = any32(random);
  a.ect1 = any32(random);
  a.ce = any32(random);
  a.budget_kib = any32(random);
  for (unsigned i = 0; i < a.nranges; i++) {
    a.range[i].gap = static_cast<u16>(i ? pick(random, 1, U16_MAX) : 0);
    a.range[i].len = static_cast<u16>(pick(random, 1, U16_MAX));
  }
  for (unsigned i = 0; i < a.ndone; i++) {
    a.done[i].delta = static_cast<u16>(pick(random, 0, DBLP_ID_WINDOW - 1));
    a.done[i].more = static_cast<u16>(pick(random, 0, DBLP_ID_WINDOW - 1 - a.done[i].delta));
  }
}

// A valid list for `nsegs` segments of at most `most` bytes.
std::vector<u8> random_list(Random& random, u8 enc, u32 nsegs, u32 most) {
  std::vector<u8> list;
  if (enc == DBLP_LIST_BITS) {
    list.resize(DIV_ROUND_UP(nsegs, 8));
    for (u8& byte : list) byte = static_cast<u8>(random());
    if (nsegs % 8) list.back() &= static_cast<u8>((1u << (nsegs % 8)) - 1);
    return list;
  }
  for (u32 at = 0; at < nsegs && list.size() + 4 <= most;) {
    const u32 first = static_cast<u32>(pick(random, at, std::min(nsegs - 1, at + 50)));
    const u32 count = static_cast<u32>(pick(random, 1, std::min(nsegs - first, 50u)));
    list.resize(list.size() + 4);
    put_unaligned_be16(static_cast<u16>(first), &list[list.size() - 4]);
    put_unaligned_be16(static_cast<u16>(count), &list[list.size() - 2]);
    at = first + count;
  }
  return list;
}

void fill_need(Random& random, RandomFrame& f) {
  dblp_f_need& n = f.frame.u.need;
  n.enc = random() & 1;
  n.pass = static_cast<u16>(random());
  n.id = any32(random);
  n.need = any32(random);
  n.missing_segs = any32(random);
  n.largest = any32(random);
  n.base = static_cast<u32>(pick(random, 0, DBLP_NSEGS_MAX / 8 - 1)) * 8;
  n.nsegs = static_cast<u16>(pick(random, 1, std::min(DBLP_NSEGS_MAX - n.base, 9000u)));
  f.list = random_list(random, n.enc, n.nsegs, 1200);
  n.list_len = static_cast<u16>(f.list.size());
  n.list = f.list.data();
}

void fill_map(Random& random, RandomFrame& f) {
  dblp_f_map& m = f.frame.u.map;
  m.enc = random() & 1;
  m.part = static_cast<u16>(pick(random, 0, DBLP_PARTS_MAX - 1));
  m.id = any32(random);
  f.list = random_list(random, m.enc, static_cast<u32>(pick(random, 1, DBLP_PART_SEGS)),
                       DBLP_PART_BYTES);
  m.list_len = static_cast<u16>(f.list.size());
  m.list = f.list.data();
}

void fill_done(Random& random, dblp_f_done& d) {
  d.verdict = random() & 1;
  d.id = any32(random);
  d.digest = random();
  if (random() & 1) {
    d.nparts = static_cast<u16>(pick(random, 1, DBLP_PARTS_MAX));
    d.missing_bytes = static_cast<u32>(pick(random, 1, U32_MAX));
    d.missing_segs = static_cast<u32>(pick(random, 1, U32_MAX));
  }
}

void fill_hello(Random& random, dblp_frame& f) {
  dblp_f_hello& h = f.u.hello;
  h.tx_flow = random();
  h.incarnation = random();
  if (f.type == DBLP_F_INIT) return;
  h.rx_flow = random();
  h.cookie_time = random();
  h.cookie = random();
  if (f.type == DBLP_F_CHALLENGE) h.first_kib = any32(random);
}

}  // namespace

RandomFrame random_frame(Random& random) {
  RandomFrame f;
  f.frame.type = static_cast<dblp_frame_type>(pick(random, DBLP_F_DATA, DBLP_F_FIN));
  auto& u = f.frame.u;
  switch (f.frame.type) {
    case DBLP_F_DATA:
      fill_data(random, u.data);
      break;
    case DBLP_F_DESC:
      fill_desc(random, u.desc);
      break;
    case DBLP_F_MARK:
    case DBLP_F_CLOSE:
      if (f.frame.type == DBLP_F_CLOSE) u.mark.reason = static_cast<u8>(pick(random, 1, 3));
      u.mark.pass = static_cast<u16>(pick(random, f.frame.type == DBLP_F_CLOSE, U16_MAX));
      u.mark.id = any32(random);
      u.mark.want = random();
      u.mark.reo_us = static_cast<u32>(pick(random, 0, DBLP_REO_US_MAX));
      break;
    case DBLP_F_ACK:
      fill_ack(random, u.ack);
      break;
    case DBLP_F_DONE:
      fill_done(random, u.done);
      break;
    case DBLP_F_NEED:
      fill_need(random, f);
      break;
    case DBLP_F_MAP:
      fill_map(random, f);
      break;
    case DBLP_F_BUDGET:
      u.budget.op = static_cast<u8>(pick(random, DBLP_BUSY, DBLP_GRANT));
      u.budget.id = any32(random);
      u.budget.free_kib = any32(random);
      break;
    case DBLP_F_REFUSE:
      u.refuse.reason = DBLP_REFUSE_SIZE;
      u.refuse.id = any32(random);
      u.refuse.limit = random();
      break;
    case DBLP_F_RESET:
      u.reason.reason = static_cast<u8>(pick(random, DBLP_RESET_UNKNOWN, DBLP_RESET_PROTOCOL));
      break;
    case DBLP_F_FIN:
      u.reason.reason = static_cast<u8>(pick(random, DBLP_FIN_IDLE, DBLP_FIN_CLOSED));
      break;
    case DBLP_F_INIT:
    case DBLP_F_CHALLENGE:
    case DBLP_F_ECHO:
      fill_hello(random, f.frame);
      break;
    case DBLP_F_ACCEPT:
      u.accept.incarnation = random();
      u.accept.first_kib = any32(random);
      break;
    case DBLP_F_PAD:
    case DBLP_F_PING:
      break;
  }
  return f;
}

std::vector<u8> random_packet(Random& random, unsigned frames) {
  std::vector<u8> packet(DBLP_HDR_LEN);
  for (unsigned i = 0; i < frames; i++) {
    const RandomFrame f = random_frame(random);
    const u32 at = static_cast<u32>(packet.size());
    const u32 size = dblp_frame_size(&f.frame);
    const u32 payload = f.frame.type == DBLP_F_DATA ? f.frame.u.data.len : 0;
    if (at + size + payload > U16_MAX) break;
    packet.resize(at + size + payload, static_cast<u8>(random()));
    dblp_writer writer = {packet.data(), at + size, at};
    if (!dblp_frame_put(&writer, &f.frame)) std::abort();
  }
  if (random() % 4 == 0) packet.resize(packet.size() + pick(random, 1, 40));  // PAD
  packet.resize(std::min<size_t>(packet.size(), U16_MAX));

  dblp_hdr h = {};
  h.flags = random() & DBLP_HDR_REV;
  h.len = static_cast<u16>(packet.size());
  h.flow = random();
  h.pn = any32(random);
  h.low = any32(random);
  dblp_hdr_put(packet.data(), &h);
  return packet;
}

}  // namespace dblp::test

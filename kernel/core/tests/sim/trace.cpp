// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "trace.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "../../segmap.h"
#include "../../wire.h"

namespace dblp::sim {
namespace {

void append(std::string& out, const char* format, ...) __attribute__((format(printf, 2, 3)));

void append(std::string& out, const char* format, ...) {
  char line[256];
  va_list args;

  va_start(args, format);
  vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  out += line;
}

void append_run(void* ctx, u32 first, u32 count) {
  append(*static_cast<std::string*>(ctx), " %u+%u", first, count);
}

void append_frame(std::string& out, const dblp_frame& f) {
  switch (f.type) {
    case DBLP_F_PAD:
      append(out, " PAD");
      break;
    case DBLP_F_DATA:
      append(out, " DATA(low+%u seg %u of %u/%u)", f.u.data.delta, f.u.data.seg, f.u.data.msg_len,
             f.u.data.seg_size);
      break;
    case DBLP_F_DESC:
      append(out, " DESC(%u: A %u, %s, deadline %u, ranges %u)", f.u.desc.id, f.u.desc.allow,
             f.u.desc.mode ? "eager" : "pressure", f.u.desc.deadline_us, f.u.desc.nprot);
      break;
    case DBLP_F_MARK:
      append(out, " MARK(%u: pass %u want %" PRIx64 " reo %u)", f.u.mark.id, f.u.mark.pass,
             f.u.mark.want, f.u.mark.reo_us);
      break;
    case DBLP_F_CLOSE:
      append(out, " CLOSE(%u: reason %u pass %u want %" PRIx64 " reo %u)", f.u.mark.id,
             f.u.mark.reason, f.u.mark.pass, f.u.mark.want, f.u.mark.reo_us);
      break;
    case DBLP_F_ACK: {
      append(out, " ACK(%u", f.u.ack.largest);
      for (uint32_t i = 0; i < f.u.ack.nranges; i++)
        append(out, " -%u+%u", f.u.ack.range[i].gap, f.u.ack.range[i].len);
      for (uint32_t i = 0; i < f.u.ack.ndone; i++)
        append(out, ", done low+%u+%u", f.u.ack.done[i].delta, f.u.ack.done[i].more + 1);
      append(out, ", free %u KiB)", f.u.ack.budget_kib);
      break;
    }
    case DBLP_F_DONE:
      append(out, " DONE(%u: %s, parts %u, missing %u/%u)", f.u.done.id,
             f.u.done.verdict ? "BELOW" : "OK", f.u.done.nparts, f.u.done.missing_bytes,
             f.u.done.missing_segs);
      break;
    case DBLP_F_NEED:
      append(out, " NEED(%u: pass %u, need %u, missing %u, largest %u,", f.u.need.id, f.u.need.pass,
             f.u.need.need, f.u.need.missing_segs, f.u.need.largest);
      dblp_list_decode(f.u.need.enc, f.u.need.list, f.u.need.list_len, f.u.need.base,
                       f.u.need.nsegs, append_run, &out);
      append(out, ")");
      break;
    case DBLP_F_MAP:
      append(out, " MAP(%u: part %u, %u bytes)", f.u.map.id, f.u.map.part, f.u.map.list_len);
      break;
    case DBLP_F_BUDGET:
      append(out, " %s(%u: free %u KiB)", f.u.budget.op == DBLP_BUSY ? "BUSY" : "GRANT",
             f.u.budget.id, f.u.budget.free_kib);
      break;
    case DBLP_F_REFUSE:
      append(out, " REFUSE(%u: limit %" PRIu64 ")", f.u.refuse.id, f.u.refuse.limit);
      break;
    case DBLP_F_RESET:
      append(out, " RESET(%u)", f.u.reason.reason);
      break;
    case DBLP_F_INIT:
    case DBLP_F_CHALLENGE:
    case DBLP_F_ECHO:
      append(out, " %s(tx %" PRIx64 " rx %" PRIx64 " inc %" PRIx64 ")",
             f.type == DBLP_F_INIT        ? "INIT"
             : f.type == DBLP_F_CHALLENGE ? "CHALLENGE"
                                          : "ECHO",
             f.u.hello.tx_flow, f.u.hello.rx_flow, f.u.hello.incarnation);
      break;
    case DBLP_F_ACCEPT:
      append(out, " ACCEPT(inc %" PRIx64 ")", f.u.accept.incarnation);
      break;
    case DBLP_F_PING:
      append(out, " PING");
      break;
    case DBLP_F_FIN:
      append(out, " FIN(%u)", f.u.reason.reason);
      break;
  }
}

}  // namespace

std::string describe_datagram(const uint8_t* p, uint32_t len, uint32_t linear) {
  std::string out;

  while (len) {
    dblp_hdr h;
    if (dblp_hdr_get(p, len, &h)) {
      append(out, "[unreadable, %u bytes]", len);
      break;
    }
    append(out, "[%s%08" PRIx64 " #%u low %u", h.flags & DBLP_HDR_REV ? "rev " : "",
           h.flow & 0xffffffff, h.pn, h.low);
    dblp_reader r;
    dblp_frame f;
    dblp_reader_init(&r, p, std::min<uint32_t>(h.len, linear), &h);
    int ret;
    while ((ret = dblp_frame_next(&r, &f)) == 1) append_frame(out, f);
    if (ret) append(out, " rejected: %s", dblp_reject_name(static_cast<enum dblp_reject>(-ret)));
    out += ']';
    p += h.len;
    len -= h.len;
  }
  return out;
}

}  // namespace dblp::sim

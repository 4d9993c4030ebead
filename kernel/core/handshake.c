// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receiver's side of the handshake: dblp-wire.rst §5.
 *
 * The flow id that a challenge offers is a keyed hash of who asks, so that repeating the
 * handshake always leads to the same flow; the cookie is a keyed hash of the same and the
 * time.  Nothing is stored before the cookie comes back from the address it was sent to.
 */
#include "handshake.h"

enum { LABEL_FLOW = 1, LABEL_COOKIE = 2 };

#define HS_INPUT_MAX (DBLP_HS_ADDR_MAX + 4 * 8)

/* Serialises what both hashes cover: who, from where, to which incarnation. */
static u32 hs_input(const struct dblp_hs *hs, u64 tx_flow, u64 tx_incarnation,
		    const u8 *addr, u32 addr_len, u8 *out)
{
	if (DBLP_CHECK(addr_len <= DBLP_HS_ADDR_MAX))
		addr_len = DBLP_HS_ADDR_MAX;
	put_unaligned_be64(hs->incarnation, out);
	put_unaligned_be64(tx_flow, out + 8);
	put_unaligned_be64(tx_incarnation, out + 16);
	memcpy(out + 24, addr, addr_len);
	return 24 + addr_len;
}

static u64 hs_flow_id(const struct dblp_hs *hs, const u8 *in, u32 len)
{
	u64 id = hs->mac(hs->key, LABEL_FLOW, in, len);

	return id ? id : 1;	/* 0 on the wire means INIT */
}

static u64 hs_cookie(const struct dblp_hs *hs, u8 *in, u32 len, u64 time_us)
{
	put_unaligned_be64(time_us, in + len);
	return hs->mac(hs->key, LABEL_COOKIE, in, len + 8);
}

u32 dblp_hs_challenge(const struct dblp_hs *hs, const struct dblp_f_hello *init,
		      const u8 *addr, u32 addr_len, u32 first_kib, u64 now, u8 *buf,
		      u32 room)
{
	struct dblp_frame f = { .type = DBLP_F_CHALLENGE };
	struct dblp_writer w = { .p = buf, .size = room, .len = DBLP_HDR_LEN };
	struct dblp_hdr h = { .flags = DBLP_HDR_REV, .flow = init->tx_flow };
	u8 in[HS_INPUT_MAX];
	u32 len;

	len = hs_input(hs, init->tx_flow, init->incarnation, addr, addr_len, in);
	f.u.hello.tx_flow = init->tx_flow;
	f.u.hello.rx_flow = hs_flow_id(hs, in, len);
	f.u.hello.incarnation = hs->incarnation;
	f.u.hello.cookie_time = div_u64(now, DBLP_NSEC_PER_USEC);
	f.u.hello.cookie = hs_cookie(hs, in, len, f.u.hello.cookie_time);
	f.u.hello.first_kib = first_kib;
	if (room < DBLP_HDR_LEN || !dblp_frame_put(&w, &f))
		return 0;
	h.len = (u16)w.len;
	dblp_hdr_put(buf, &h);
	return w.len;
}

int dblp_hs_check(const struct dblp_hs *hs, const struct dblp_f_hello *echo,
		  const u8 *addr, u32 addr_len, u64 now, u64 *rtt_ns)
{
	u64 now_us = div_u64(now, DBLP_NSEC_PER_USEC);
	u8 in[HS_INPUT_MAX];
	u64 flow;
	u32 len;

	if (echo->cookie_time > now_us || now_us - echo->cookie_time > DBLP_COOKIE_LIFE_US)
		return DBLP_REJECT_COOKIE;
	len = hs_input(hs, echo->tx_flow, echo->incarnation, addr, addr_len, in);
	flow = hs_flow_id(hs, in, len);
	if (flow != echo->rx_flow ||
	    hs_cookie(hs, in, len, echo->cookie_time) != echo->cookie)
		return DBLP_REJECT_COOKIE;
	*rtt_ns = (now_us - echo->cookie_time) * DBLP_NSEC_PER_USEC;
	return 0;
}

u32 dblp_hs_reset(u64 flow, u32 pn, u8 reason, u8 *buf, u32 room)
{
	struct dblp_frame f = { .type = DBLP_F_RESET };
	struct dblp_writer w = { .p = buf, .size = room, .len = DBLP_HDR_LEN };
	struct dblp_hdr h = { .flags = DBLP_HDR_REV, .flow = flow, .pn = pn };

	f.u.reason.reason = reason;
	if (room < DBLP_HDR_LEN || !dblp_frame_put(&w, &f))
		return 0;
	h.len = (u16)w.len;
	dblp_hdr_put(buf, &h);
	return w.len;
}

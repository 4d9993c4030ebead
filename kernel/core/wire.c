// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "wire.h"

#define RANGE_LEN	8	/* of DESC */
#define ACK_PAIR_LEN	4

#define HDR_KNOWN_FLAGS	(DBLP_HDR_REV | DBLP_HDR_TAG | DBLP_HDR_EPOCH)
#define DESC_GROUPED	0x01

/* Fixed parts; PAD takes all there is. */
static const u8 frame_len[] = {
	[DBLP_F_PAD]	   = 1,
	[DBLP_F_DATA]	   = DBLP_DATA_LEN,
	[DBLP_F_DESC]	   = DBLP_DESC_LEN,
	[DBLP_F_MARK]	   = DBLP_MARK_LEN,
	[DBLP_F_ACK]	   = DBLP_ACK_LEN,
	[DBLP_F_DONE]	   = DBLP_DONE_LEN,
	[DBLP_F_NEED]	   = DBLP_NEED_LEN,
	[DBLP_F_MAP]	   = DBLP_MAP_LEN,
	[DBLP_F_CLOSE]	   = DBLP_MARK_LEN,
	[DBLP_F_BUDGET]	   = DBLP_BUDGET_LEN,
	[DBLP_F_REFUSE]	   = DBLP_REFUSE_LEN,
	[DBLP_F_RESET]	   = DBLP_RESET_LEN,
	[DBLP_F_INIT]	   = DBLP_HELLO_LEN,
	[DBLP_F_CHALLENGE] = DBLP_HELLO_LEN,
	[DBLP_F_ECHO]	   = DBLP_HELLO_LEN,
	[DBLP_F_ACCEPT]	   = DBLP_ACCEPT_LEN,
	[DBLP_F_PING]	   = DBLP_PING_LEN,
	[DBLP_F_FIN]	   = DBLP_FIN_LEN,
};

static bool zero(const u8 *p, u32 n)
{
	while (n && !*p) {
		p++;
		n--;
	}
	return !n;
}

int dblp_hdr_get(const u8 *p, u32 n, struct dblp_hdr *h)
{
	if (n < DBLP_HDR_LEN)
		return DBLP_REJECT_TRUNCATED;
	if (p[0] >> 4 != DBLP_WIRE_VERSION)
		return DBLP_REJECT_VERSION;

	h->flags = p[0] & 0xf;
	h->len = get_unaligned_be16(p + 2);
	h->flow = get_unaligned_be64(p + 4);
	h->pn = get_unaligned_be32(p + 12);
	h->low = get_unaligned_be32(p + 16);

	if (h->len < DBLP_HDR_LEN || h->len > n)
		return DBLP_REJECT_LENGTH;
	if (p[1])
		return DBLP_REJECT_PATH;
	if (h->flags & ~HDR_KNOWN_FLAGS)
		return DBLP_REJECT_RESERVED;
	if (h->flags & (DBLP_HDR_TAG | DBLP_HDR_EPOCH))
		return DBLP_REJECT_CRYPTO;
	return 0;
}

void dblp_hdr_put(u8 *p, const struct dblp_hdr *h)
{
	p[0] = (u8)(DBLP_WIRE_VERSION << 4 | h->flags);
	p[1] = 0;
	put_unaligned_be16(h->len, p + 2);
	put_unaligned_be64(h->flow, p + 4);
	put_unaligned_be32(h->pn, p + 12);
	put_unaligned_be32(h->low, p + 16);
}

void dblp_reader_init(struct dblp_reader *r, const u8 *p, u32 linear,
		      const struct dblp_hdr *h)
{
	r->p = p;
	r->end = h->len;
	r->linear = linear;
	r->pos = DBLP_HDR_LEN;
}

int dblp_msg_shape_check(u32 msg_len, u32 seg_size)
{
	if (!msg_len || msg_len > DBLP_MSG_LEN_MAX)
		return DBLP_REJECT_MSG_LEN;
	if (seg_size < DBLP_SEG_MIN_SINGLE || seg_size > DBLP_SEG_MAX)
		return DBLP_REJECT_SEG_SIZE;
	if (msg_len <= seg_size)
		return 0;
	if (seg_size < DBLP_SEG_MIN || seg_size % 4)
		return DBLP_REJECT_SEG_SIZE;
	if (dblp_nsegs(msg_len, seg_size) > DBLP_NSEGS_MAX)
		return DBLP_REJECT_SEG_SIZE;
	return 0;
}

int dblp_desc_check(const struct dblp_f_desc *d)
{
	u32 i, nsegs, at = 0;
	int err;

	err = dblp_msg_shape_check(d->msg_len, d->seg_size);
	if (err)
		return err;
	if (d->mode > DBLP_WIRE_EAGER || d->nprot > DBLP_PROT_MAX ||
	    d->ppm > DBLP_ALLOW_PPM_MAX || d->allow > d->msg_len)
		return DBLP_REJECT_DESC;

	nsegs = dblp_nsegs(d->msg_len, d->seg_size);
	for (i = 0; i < d->nprot; i++) {
		const struct dblp_segrun *p = &d->prot[i];

		if (p->first < at || p->first >= nsegs)
			return DBLP_REJECT_DESC;
		if (!p->count || p->count > nsegs - p->first)
			return DBLP_REJECT_DESC;
		at = p->first + p->count;
	}
	return 0;
}

u16 dblp_seg_size_for(u32 room)
{
	u32 over = DBLP_HDR_LEN + DBLP_DATA_LEN;

	if (room <= over)
		return 0;
	return (u16)(min_t(u32, room - over, DBLP_SEG_MAX) & ~3U);
}

u64 dblp_expand32(u32 wire, u64 expect)
{
	s32 off = (s32)(wire - (u32)expect);
	u64 v = expect + (u64)(s64)off;

	/* Nothing is nearer than the number above if the one below is negative. */
	if (off < 0 && v > expect)
		v += 1ULL << 32;
	return v;
}

static int get_data(const u8 *q, u32 left, struct dblp_f_data *d)
{
	int err;

	d->delta = get_unaligned_be16(q + 2);
	d->seg = get_unaligned_be32(q + 4);
	d->msg_len = get_unaligned_be32(q + 8);
	d->seg_size = get_unaligned_be16(q + 12);

	if (q[1] || !zero(q + 14, 2))
		return DBLP_REJECT_RESERVED;
	if (d->delta >= DBLP_ID_WINDOW)
		return DBLP_REJECT_ID_WINDOW;
	err = dblp_msg_shape_check(d->msg_len, d->seg_size);
	if (err)
		return err;
	if (d->seg >= dblp_nsegs(d->msg_len, d->seg_size))
		return DBLP_REJECT_SEGMENT;
	d->len = (u16)dblp_seg_len(d->msg_len, d->seg_size, d->seg);
	return d->len > left - DBLP_DATA_LEN ? DBLP_REJECT_TRUNCATED : 0;
}

static void put_data(u8 *q, const struct dblp_f_data *d)
{
	put_unaligned_be16(d->delta, q + 2);
	put_unaligned_be32(d->seg, q + 4);
	put_unaligned_be32(d->msg_len, q + 8);
	put_unaligned_be16(d->seg_size, q + 12);
}

static int get_desc(const u8 *q, struct dblp_f_desc *d)
{
	u32 i;

	if (q[15] & ~DESC_GROUPED)
		return DBLP_REJECT_RESERVED;
	d->mode = q[1];
	d->phase = q[2];
	d->priority = q[3];
	d->id = get_unaligned_be32(q + 4);
	d->msg_len = get_unaligned_be32(q + 8);
	d->seg_size = get_unaligned_be16(q + 12);
	d->nprot = q[14];
	d->grouped = q[15] & DESC_GROUPED;
	d->ppm = get_unaligned_be32(q + 16);
	d->allow = get_unaligned_be32(q + 20);
	d->deadline_us = get_unaligned_be32(q + 24);
	d->group = get_unaligned_be32(q + 28);
	d->tag = get_unaligned_be64(q + 32);
	for (i = 0; i < d->nprot; i++) {
		d->prot[i].first = get_unaligned_be32(q + DBLP_DESC_LEN + RANGE_LEN * i);
		d->prot[i].count = get_unaligned_be32(q + DBLP_DESC_LEN + RANGE_LEN * i + 4);
	}
	return dblp_desc_check(d);
}

static void put_desc(u8 *q, const struct dblp_f_desc *d)
{
	u32 i;

	q[1] = d->mode;
	q[2] = d->phase;
	q[3] = d->priority;
	put_unaligned_be32(d->id, q + 4);
	put_unaligned_be32(d->msg_len, q + 8);
	put_unaligned_be16(d->seg_size, q + 12);
	q[14] = d->nprot;
	q[15] = d->grouped ? DESC_GROUPED : 0;
	put_unaligned_be32(d->ppm, q + 16);
	put_unaligned_be32(d->allow, q + 20);
	put_unaligned_be32(d->deadline_us, q + 24);
	put_unaligned_be32(d->group, q + 28);
	put_unaligned_be64(d->tag, q + 32);
	for (i = 0; i < d->nprot; i++) {
		put_unaligned_be32(d->prot[i].first, q + DBLP_DESC_LEN + RANGE_LEN * i);
		put_unaligned_be32(d->prot[i].count, q + DBLP_DESC_LEN + RANGE_LEN * i + 4);
	}
}

static int get_mark(const u8 *q, struct dblp_f_mark *m)
{
	m->reason = q[1];
	m->pass = get_unaligned_be16(q + 2);
	m->id = get_unaligned_be32(q + 4);
	m->want = get_unaligned_be64(q + 8);
	m->reo_us = get_unaligned_be32(q + 16);

	if (q[0] == DBLP_F_MARK && m->reason)
		return DBLP_REJECT_RESERVED;
	if (q[0] == DBLP_F_CLOSE &&
	    (m->reason < DBLP_CLOSE_DEADLINE || m->reason > DBLP_CLOSE_SHUTDOWN))
		return DBLP_REJECT_VALUE;
	/* MARK(0) asks for room; a CLOSE always ends a pass. */
	if ((q[0] == DBLP_F_CLOSE && !m->pass) || m->reo_us > DBLP_REO_US_MAX)
		return DBLP_REJECT_MARK;
	return 0;
}

static void put_mark(u8 *q, enum dblp_frame_type type, const struct dblp_f_mark *m)
{
	q[1] = type == DBLP_F_CLOSE ? m->reason : 0;
	put_unaligned_be16(m->pass, q + 2);
	put_unaligned_be32(m->id, q + 4);
	put_unaligned_be64(m->want, q + 8);
	put_unaligned_be32(m->reo_us, q + 16);
}

static int get_ack(const u8 *q, struct dblp_f_ack *a)
{
	u32 i;

	if (q[3])
		return DBLP_REJECT_RESERVED;
	a->nranges = q[1];
	a->ndone = q[2];
	a->largest = get_unaligned_be32(q + 4);
	a->delay_us = get_unaligned_be32(q + 8);
	a->ect0 = get_unaligned_be32(q + 12);
	a->ect1 = get_unaligned_be32(q + 16);
	a->ce = get_unaligned_be32(q + 20);
	a->budget_kib = get_unaligned_be32(q + 24);

	q += DBLP_ACK_LEN;
	for (i = 0; i < a->nranges; i++, q += ACK_PAIR_LEN) {
		a->range[i].gap = get_unaligned_be16(q);
		a->range[i].len = get_unaligned_be16(q + 2);
		if (!a->range[i].len || !a->range[i].gap != !i)
			return DBLP_REJECT_ACK;
	}
	for (i = 0; i < a->ndone; i++, q += ACK_PAIR_LEN) {
		a->done[i].delta = get_unaligned_be16(q);
		a->done[i].more = get_unaligned_be16(q + 2);
		if ((u32)a->done[i].delta + a->done[i].more >= DBLP_ID_WINDOW)
			return DBLP_REJECT_ACK;
	}
	return 0;
}

static void put_ack(u8 *q, const struct dblp_f_ack *a)
{
	u32 i;

	q[1] = a->nranges;
	q[2] = a->ndone;
	put_unaligned_be32(a->largest, q + 4);
	put_unaligned_be32(a->delay_us, q + 8);
	put_unaligned_be32(a->ect0, q + 12);
	put_unaligned_be32(a->ect1, q + 16);
	put_unaligned_be32(a->ce, q + 20);
	put_unaligned_be32(a->budget_kib, q + 24);

	q += DBLP_ACK_LEN;
	for (i = 0; i < a->nranges; i++, q += ACK_PAIR_LEN) {
		put_unaligned_be16(a->range[i].gap, q);
		put_unaligned_be16(a->range[i].len, q + 2);
	}
	for (i = 0; i < a->ndone; i++, q += ACK_PAIR_LEN) {
		put_unaligned_be16(a->done[i].delta, q);
		put_unaligned_be16(a->done[i].more, q + 2);
	}
}

static int get_done(const u8 *q, struct dblp_f_done *d)
{
	d->verdict = q[1];
	d->nparts = get_unaligned_be16(q + 2);
	d->id = get_unaligned_be32(q + 4);
	d->missing_bytes = get_unaligned_be32(q + 8);
	d->missing_segs = get_unaligned_be32(q + 12);
	d->digest = get_unaligned_be64(q + 16);

	if (d->verdict > DBLP_VERDICT_BELOW)
		return DBLP_REJECT_VALUE;
	if (d->nparts > DBLP_PARTS_MAX || !d->nparts != !d->missing_segs ||
	    !d->missing_bytes != !d->missing_segs)
		return DBLP_REJECT_MAP;
	return 0;
}

static void put_done(u8 *q, const struct dblp_f_done *d)
{
	q[1] = d->verdict;
	put_unaligned_be16(d->nparts, q + 2);
	put_unaligned_be32(d->id, q + 4);
	put_unaligned_be32(d->missing_bytes, q + 8);
	put_unaligned_be32(d->missing_segs, q + 12);
	put_unaligned_be64(d->digest, q + 16);
}

/* May a list of @nsegs segments, 0 if that is not known here, have @len bytes? */
static bool list_len_ok(u8 enc, u32 len, u32 nsegs)
{
	if (enc == DBLP_LIST_RANGES)
		return len % 4 == 0;
	if (enc != DBLP_LIST_BITS || !len)
		return false;
	return !nsegs || len == DIV_ROUND_UP(nsegs, 8);
}

static int get_need(const u8 *q, struct dblp_f_need *n)
{
	n->enc = q[1];
	n->pass = get_unaligned_be16(q + 2);
	n->id = get_unaligned_be32(q + 4);
	n->need = get_unaligned_be32(q + 8);
	n->missing_segs = get_unaligned_be32(q + 12);
	n->largest = get_unaligned_be32(q + 16);
	n->base = get_unaligned_be32(q + 20);
	n->nsegs = get_unaligned_be16(q + 24);
	n->list_len = get_unaligned_be16(q + 26);
	n->list = q + DBLP_NEED_LEN;

	if (!n->nsegs || n->base % 8 || n->base >= DBLP_NSEGS_MAX ||
	    n->base + n->nsegs > DBLP_NSEGS_MAX)
		return DBLP_REJECT_MAP;
	if (!n->list_len || !list_len_ok(n->enc, n->list_len, n->nsegs))
		return DBLP_REJECT_MAP;
	return 0;
}

static void put_need(u8 *q, const struct dblp_f_need *n)
{
	q[1] = n->enc;
	put_unaligned_be16(n->pass, q + 2);
	put_unaligned_be32(n->id, q + 4);
	put_unaligned_be32(n->need, q + 8);
	put_unaligned_be32(n->missing_segs, q + 12);
	put_unaligned_be32(n->largest, q + 16);
	put_unaligned_be32(n->base, q + 20);
	put_unaligned_be16(n->nsegs, q + 24);
	put_unaligned_be16(n->list_len, q + 26);
	memmove(q + DBLP_NEED_LEN, n->list, n->list_len);
}

static int get_map(const u8 *q, struct dblp_f_map *m)
{
	m->enc = q[1];
	m->part = get_unaligned_be16(q + 2);
	m->id = get_unaligned_be32(q + 4);
	m->list_len = get_unaligned_be16(q + 8);
	m->list = q + DBLP_MAP_LEN;

	if (!zero(q + 10, 2))
		return DBLP_REJECT_RESERVED;
	if (m->part >= DBLP_PARTS_MAX || m->list_len > DBLP_PART_BYTES ||
	    !list_len_ok(m->enc, m->list_len, 0))
		return DBLP_REJECT_MAP;
	return 0;
}

static void put_map(u8 *q, const struct dblp_f_map *m)
{
	q[1] = m->enc;
	put_unaligned_be16(m->part, q + 2);
	put_unaligned_be32(m->id, q + 4);
	put_unaligned_be16(m->list_len, q + 8);
	if (m->list_len)
		memmove(q + DBLP_MAP_LEN, m->list, m->list_len);
}

static int get_budget(const u8 *q, struct dblp_f_budget *b)
{
	b->op = q[1];
	b->id = get_unaligned_be32(q + 4);
	b->free_kib = get_unaligned_be32(q + 8);

	if (!zero(q + 2, 2))
		return DBLP_REJECT_RESERVED;
	return b->op == DBLP_BUSY || b->op == DBLP_GRANT ? 0 : DBLP_REJECT_VALUE;
}

static void put_budget(u8 *q, const struct dblp_f_budget *b)
{
	q[1] = b->op;
	put_unaligned_be32(b->id, q + 4);
	put_unaligned_be32(b->free_kib, q + 8);
}

static int get_refuse(const u8 *q, struct dblp_f_refuse *r)
{
	r->reason = q[1];
	r->id = get_unaligned_be32(q + 4);
	r->limit = get_unaligned_be64(q + 8);

	if (!zero(q + 2, 2))
		return DBLP_REJECT_RESERVED;
	return r->reason == DBLP_REFUSE_SIZE ? 0 : DBLP_REJECT_VALUE;
}

static void put_refuse(u8 *q, const struct dblp_f_refuse *r)
{
	q[1] = r->reason;
	put_unaligned_be32(r->id, q + 4);
	put_unaligned_be64(r->limit, q + 8);
}

/* RESET and FIN, whose reasons are 1 to @last. */
static int get_reason(const u8 *q, u8 last, struct dblp_f_reason *r)
{
	r->reason = q[1];
	if (!zero(q + 2, 2))
		return DBLP_REJECT_RESERVED;
	return r->reason && r->reason <= last ? 0 : DBLP_REJECT_VALUE;
}

static int get_hello(const u8 *q, struct dblp_f_hello *h)
{
	memset(h, 0, sizeof(*h));
	if (!zero(q + 1, 3))
		return DBLP_REJECT_RESERVED;

	h->tx_flow = get_unaligned_be64(q + 4);
	switch (q[0]) {
	case DBLP_F_INIT:
		h->incarnation = get_unaligned_be64(q + 12);
		return zero(q + 20, 32) ? 0 : DBLP_REJECT_RESERVED;
	case DBLP_F_CHALLENGE:
		h->rx_flow = get_unaligned_be64(q + 12);
		h->incarnation = get_unaligned_be64(q + 20);
		h->cookie_time = get_unaligned_be64(q + 28);
		h->cookie = get_unaligned_be64(q + 36);
		h->first_kib = get_unaligned_be32(q + 44);
		return zero(q + 48, 4) ? 0 : DBLP_REJECT_RESERVED;
	default:	/* ECHO */
		h->incarnation = get_unaligned_be64(q + 12);
		h->rx_flow = get_unaligned_be64(q + 20);
		h->cookie_time = get_unaligned_be64(q + 28);
		h->cookie = get_unaligned_be64(q + 36);
		return zero(q + 44, 8) ? 0 : DBLP_REJECT_RESERVED;
	}
}

static void put_hello(u8 *q, enum dblp_frame_type type, const struct dblp_f_hello *h)
{
	put_unaligned_be64(h->tx_flow, q + 4);
	if (type == DBLP_F_CHALLENGE) {
		put_unaligned_be64(h->rx_flow, q + 12);
		put_unaligned_be64(h->incarnation, q + 20);
		put_unaligned_be32(h->first_kib, q + 44);
	} else {
		put_unaligned_be64(h->incarnation, q + 12);
		if (type == DBLP_F_INIT)
			return;
		put_unaligned_be64(h->rx_flow, q + 20);
	}
	put_unaligned_be64(h->cookie_time, q + 28);
	put_unaligned_be64(h->cookie, q + 36);
}

static int get_accept(const u8 *q, struct dblp_f_accept *a)
{
	a->incarnation = get_unaligned_be64(q + 4);
	a->first_kib = get_unaligned_be32(q + 12);
	return zero(q + 1, 3) ? 0 : DBLP_REJECT_RESERVED;
}

static void put_accept(u8 *q, const struct dblp_f_accept *a)
{
	put_unaligned_be64(a->incarnation, q + 4);
	put_unaligned_be32(a->first_kib, q + 12);
}

/*
 * Bytes of the frame at @q, whose fixed part is readable, that follow the fixed part and
 * are needed to read it; negative reject if a count is impossible.
 */
static int list_bytes(const u8 *q)
{
	switch (q[0]) {
	case DBLP_F_DESC:
		return q[14] <= DBLP_PROT_MAX ? q[14] * RANGE_LEN : -DBLP_REJECT_DESC;
	case DBLP_F_ACK:
		if (!q[1] || q[1] > DBLP_ACK_RANGES || q[2] > DBLP_ACK_DONE_RANGES)
			return -DBLP_REJECT_ACK;
		return (q[1] + q[2]) * ACK_PAIR_LEN;
	case DBLP_F_NEED:
		return get_unaligned_be16(q + 26);
	case DBLP_F_MAP:
		return get_unaligned_be16(q + 8);
	default:
		return 0;
	}
}

/* The frame at @q, of which all that matters is readable; @left bytes of packet. */
static int get_frame(const u8 *q, u32 left, struct dblp_frame *f)
{
	f->type = (enum dblp_frame_type)q[0];
	switch (f->type) {
	case DBLP_F_PAD:
		return zero(q, left) ? 0 : DBLP_REJECT_RESERVED;
	case DBLP_F_DATA:
		return get_data(q, left, &f->u.data);
	case DBLP_F_DESC:
		return get_desc(q, &f->u.desc);
	case DBLP_F_MARK:
	case DBLP_F_CLOSE:
		return get_mark(q, &f->u.mark);
	case DBLP_F_ACK:
		return get_ack(q, &f->u.ack);
	case DBLP_F_DONE:
		return get_done(q, &f->u.done);
	case DBLP_F_NEED:
		return get_need(q, &f->u.need);
	case DBLP_F_MAP:
		return get_map(q, &f->u.map);
	case DBLP_F_BUDGET:
		return get_budget(q, &f->u.budget);
	case DBLP_F_REFUSE:
		return get_refuse(q, &f->u.refuse);
	case DBLP_F_RESET:
		return get_reason(q, DBLP_RESET_PROTOCOL, &f->u.reason);
	case DBLP_F_FIN:
		return get_reason(q, DBLP_FIN_CLOSED, &f->u.reason);
	case DBLP_F_INIT:
	case DBLP_F_CHALLENGE:
	case DBLP_F_ECHO:
		return get_hello(q, &f->u.hello);
	case DBLP_F_ACCEPT:
		return get_accept(q, &f->u.accept);
	case DBLP_F_PING:
		return zero(q + 1, 3) ? 0 : DBLP_REJECT_RESERVED;
	}
	return DBLP_REJECT_FRAME_TYPE;
}

int dblp_frame_next(struct dblp_reader *r, struct dblp_frame *f)
{
	u32 left, linear, len;
	const u8 *q;
	int err;

	if (r->pos >= r->end)
		return 0;
	if (r->pos >= r->linear)
		return DBLP_READ_LINEAR;
	q = r->p + r->pos;
	left = r->end - r->pos;
	linear = r->linear - r->pos;

	if (q[0] >= ARRAY_SIZE(frame_len))
		return -DBLP_REJECT_FRAME_TYPE;
	len = q[0] == DBLP_F_PAD ? left : frame_len[q[0]];
	if (len > left)
		return -DBLP_REJECT_TRUNCATED;
	if (len > linear)
		return DBLP_READ_LINEAR;

	err = list_bytes(q);
	if (err < 0)
		return err;
	len += (u32)err;
	if (len > left)
		return -DBLP_REJECT_TRUNCATED;
	if (len > linear)
		return DBLP_READ_LINEAR;

	err = get_frame(q, left, f);
	if (err)
		return -err;
	r->pos += len;
	if (f->type == DBLP_F_DATA) {
		f->u.data.off = r->pos;
		r->pos += f->u.data.len;
	}
	return 1;
}

u32 dblp_frame_size(const struct dblp_frame *f)
{
	u32 len = frame_len[f->type];

	switch (f->type) {
	case DBLP_F_DESC:
		return len + f->u.desc.nprot * RANGE_LEN;
	case DBLP_F_ACK:
		return len + (f->u.ack.nranges + f->u.ack.ndone) * ACK_PAIR_LEN;
	case DBLP_F_NEED:
		return len + f->u.need.list_len;
	case DBLP_F_MAP:
		return len + f->u.map.list_len;
	default:
		return len;
	}
}

bool dblp_frame_put(struct dblp_writer *w, const struct dblp_frame *f)
{
	u32 room = w->size - w->len;
	u32 size = dblp_frame_size(f), list = 0;
	u8 *q = w->p + w->len;

	if (size > room)
		return false;
	if (f->type == DBLP_F_PAD)
		size = room;
	/* A list may have been written to its place already. */
	if (f->type == DBLP_F_NEED)
		list = f->u.need.list_len;
	else if (f->type == DBLP_F_MAP)
		list = f->u.map.list_len;
	memset(q, 0, size - list);
	q[0] = (u8)f->type;
	w->len += size;

	switch (f->type) {
	case DBLP_F_PAD:
	case DBLP_F_PING:
		break;
	case DBLP_F_DATA:
		put_data(q, &f->u.data);
		break;
	case DBLP_F_DESC:
		put_desc(q, &f->u.desc);
		break;
	case DBLP_F_MARK:
	case DBLP_F_CLOSE:
		put_mark(q, f->type, &f->u.mark);
		break;
	case DBLP_F_ACK:
		put_ack(q, &f->u.ack);
		break;
	case DBLP_F_DONE:
		put_done(q, &f->u.done);
		break;
	case DBLP_F_NEED:
		put_need(q, &f->u.need);
		break;
	case DBLP_F_MAP:
		put_map(q, &f->u.map);
		break;
	case DBLP_F_BUDGET:
		put_budget(q, &f->u.budget);
		break;
	case DBLP_F_REFUSE:
		put_refuse(q, &f->u.refuse);
		break;
	case DBLP_F_RESET:
	case DBLP_F_FIN:
		q[1] = f->u.reason.reason;
		break;
	case DBLP_F_INIT:
	case DBLP_F_CHALLENGE:
	case DBLP_F_ECHO:
		put_hello(q, f->type, &f->u.hello);
		break;
	case DBLP_F_ACCEPT:
		put_accept(q, &f->u.accept);
		break;
	}
	return true;
}

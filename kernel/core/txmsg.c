// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Segments of a message at its sender: see txmsg.h.
 */
#include "txmsg.h"

/* The one door for a segment's state: keeps the sums right. */
static void seg_set(struct dblp_txmsg *m, u32 s, u8 state, bool queued)
{
	struct dblp_txseg *g = &m->seg[s];
	u32 len = dblp_txmsg_seg_len(m, s);

	if (g->state == DBLP_SEG_LOST && !g->queued) {
		m->lost_bytes -= len;
		m->lost_prot -= g->prot;
	}
	if (g->queued)
		m->queued_segs--;
	if (g->state == DBLP_SEG_ACKED)
		m->acked_bytes -= len;

	g->state = state;
	g->queued = queued;

	if (state == DBLP_SEG_LOST && !queued) {
		m->lost_bytes += len;
		m->lost_prot += g->prot;
	}
	if (queued)
		m->queued_segs++;
	if (state == DBLP_SEG_ACKED)
		m->acked_bytes += len;
}

static void seg_note_loss(struct dblp_txmsg *m, u32 s)
{
	if (!m->seg[s].lost) {
		m->seg[s].lost = 1;
		m->lost_segs++;
	}
}

void dblp_txmsg_start(struct dblp_txmsg *m, u64 seed)
{
	u32 i, s;

	m->nsegs = dblp_nsegs(m->len, m->seg_size);
	m->map.nbits = m->nsegs;
	m->pass = 1;
	for (i = 0; i < m->nprot; i++) {
		for (s = m->prot[i].first; s < m->prot[i].first + m->prot[i].count; s++)
			m->seg[s].prot = 1;
		m->prot_total += m->prot[i].count;
	}
	dblp_perm_init(&m->perm, m->nsegs, seed ^ m->id, m->ordered);
}

void dblp_txmsg_restart(struct dblp_txmsg *m)
{
	u32 s;

	/* A peer may say so for each packet that it has: only what was sent is looked at. */
	if (!m->cursor)
		return;
	for (s = 0; s < m->nsegs; s++)
		if (m->seg[s].state != DBLP_SEG_UNSENT || m->seg[s].queued)
			seg_set(m, s, DBLP_SEG_UNSENT, false);
	m->cursor = 0;
	m->prot_sent = 0;
	m->perm_pos = 0;
	m->lost_cursor = 0;
	m->queued_cursor = 0;
}

bool dblp_txmsg_excess(const struct dblp_txmsg *m)
{
	return m->lost_bytes > m->allow || m->lost_prot;
}

bool dblp_txmsg_pass_over(const struct dblp_txmsg *m)
{
	return m->cursor == m->nsegs && !m->queued_segs && !dblp_txmsg_excess(m);
}

/* The k-th protected segment. */
static u32 nth_protected(const struct dblp_txmsg *m, u32 k)
{
	u32 i;

	for (i = 0; k >= m->prot[i].count; i++)
		k -= m->prot[i].count;
	return m->prot[i].first + k;
}

static u32 next_first_pass(struct dblp_txmsg *m)
{
	u32 s;

	if (m->cursor == m->nsegs)
		return DBLP_NO_SEG;
	if (m->prot_sent < m->prot_total)
		return nth_protected(m, m->prot_sent);
	for (;;) {
		s = dblp_perm_at(&m->perm, m->perm_pos);
		if (!m->seg[s].prot)
			return s;
		m->perm_pos++;
	}
}

static u32 next_queued(struct dblp_txmsg *m)
{
	while (!m->seg[m->queued_cursor].queued)
		m->queued_cursor = (m->queued_cursor + 1) % m->nsegs;
	return m->queued_cursor;
}

static u32 next_lost(struct dblp_txmsg *m)
{
	struct dblp_txseg *g = &m->seg[m->lost_cursor];

	/* Beyond the bound any lost segment does; within it only protected ones. */
	while (g->state != DBLP_SEG_LOST || g->queued ||
	       (m->lost_bytes <= m->allow && !g->prot)) {
		m->lost_cursor = (m->lost_cursor + 1) % m->nsegs;
		g = &m->seg[m->lost_cursor];
	}
	return m->lost_cursor;
}

u32 dblp_txmsg_next(struct dblp_txmsg *m, bool *repair)
{
	*repair = true;
	if (m->queued_segs)
		return next_queued(m);
	if (dblp_txmsg_excess(m))
		return next_lost(m);
	*repair = false;
	return next_first_pass(m);
}

void dblp_txmsg_sent(struct dblp_txmsg *m, u32 s, u64 pn)
{
	struct dblp_txseg *g = &m->seg[s];

	if (g->state == DBLP_SEG_UNSENT) {
		m->cursor++;
		if (g->prot)
			m->prot_sent++;
		else
			m->perm_pos++;
	}
	seg_set(m, s, DBLP_SEG_FLYING, false);
	g->pn = (u32)pn;
}

void dblp_txmsg_acked(struct dblp_txmsg *m, u32 s)
{
	if (m->seg[s].state != DBLP_SEG_UNSENT)
		seg_set(m, s, DBLP_SEG_ACKED, false);
}

void dblp_txmsg_lost(struct dblp_txmsg *m, u32 s, u64 pn)
{
	struct dblp_txseg *g = &m->seg[s];

	if (g->state != DBLP_SEG_FLYING || g->pn != (u32)pn)
		return;	/* sent again since, or known by NEED */
	seg_note_loss(m, s);
	seg_set(m, s, DBLP_SEG_LOST, g->queued);
}

/* ---- NEED ------------------------------------------------------------------------ */

struct need_ctx {
	struct dblp_txmsg *m;
	u32 largest;
	u64 flying;	/* bytes listed that are in flight */
	u64 left;	/* bytes still to be queued */
	bool prot_only;
};

static void need_lost(void *ctx, u32 first, u32 count)
{
	struct need_ctx *c = ctx;
	struct dblp_txmsg *m = c->m;
	struct dblp_txseg *g;
	u32 s;

	for (s = first; s < first + count; s++) {
		g = &m->seg[s];
		if (g->state == DBLP_SEG_FLYING && (s32)(g->pn - c->largest) > 0) {
			c->flying += dblp_txmsg_seg_len(m, s);
			continue;
		}
		seg_note_loss(m, s);
		seg_set(m, s, DBLP_SEG_LOST, g->queued);
	}
}

static void need_queue(void *ctx, u32 first, u32 count)
{
	struct need_ctx *c = ctx;
	struct dblp_txmsg *m = c->m;
	struct dblp_txseg *g;
	u32 s, len;

	for (s = first; s < first + count; s++) {
		g = &m->seg[s];
		if (g->state != DBLP_SEG_LOST || g->queued || g->prot != c->prot_only)
			continue;
		if (!c->left && !c->prot_only)
			return;
		len = dblp_txmsg_seg_len(m, s);
		seg_set(m, s, DBLP_SEG_LOST, true);
		c->left -= min_t(u64, c->left, len);
	}
}

void dblp_txmsg_need(struct dblp_txmsg *m, const struct dblp_f_need *f, u32 loss_ppm)
{
	struct need_ctx c = { .m = m, .largest = f->largest };
	u64 missing = min_t(u64, (u64)f->missing_segs * m->seg_size, m->len);

	dblp_list_decode(f->enc, f->list, f->list_len, f->base, f->nsegs, need_lost, &c);
	c.left = dblp_repair_bytes(f->need, missing, loss_ppm, m->seg_size);
	c.left -= min(c.left, c.flying);
	c.prot_only = true;
	dblp_list_decode(f->enc, f->list, f->list_len, f->base, f->nsegs, need_queue, &c);
	c.prot_only = false;
	dblp_list_decode(f->enc, f->list, f->list_len, f->base, f->nsegs, need_queue, &c);
}

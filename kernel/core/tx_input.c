// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What comes back to the sender of a flow: acknowledgements, answers, handshake.
 *
 * ACKs steer repair and congestion control; only DONE, an ACK's completed ids, REFUSE or
 * the death of the flow end a message.  No delivery map is ever built from ACKs.
 */
#include "txmsg.h"
#include "tx_priv.h"

/*
 * The message that an answer is about.  One that is finished may get several more: its DONE
 * and the ACK that completes it cross MARKs.
 */
static struct dblp_txmsg *tx_find_wire(struct dblp_tx *tx, u32 wire)
{
	u64 id = dblp_expand32(wire, tx->low);

	if (!id || id >= tx->next_id)
		dblp_tx_note_reject(tx, DBLP_REJECT_MSG_UNKNOWN);
	return dblp_tx_find(tx, id);
}

/* An answer that brought the message on: asking begins anew. */
static void tx_answered(struct dblp_txmsg *m)
{
	m->asks = 0;
	m->unanswered = 0;
}

static void tx_admit(struct dblp_tx *tx, struct dblp_txmsg *m)
{
	dblp_tx_unadmit(tx, m);
	m->admitted = true;
}

/* ---- what an ACK says about messages ---------------------------------------------- */

/* The message of a sent packet, if the packet's fate says something about it. */
static struct dblp_txmsg *tx_sent_msg(struct dblp_tx *tx, u64 id, u64 pn)
{
	struct dblp_txmsg *m = id ? dblp_tx_find(tx, id) : NULL;

	return m && pn >= m->ack_floor ? m : NULL;
}

static void on_acked(void *ctx, u64 pn, const struct dblp_sent *e)
{
	struct dblp_tx *tx = ctx;
	struct dblp_txmsg *m;

	if (e->flags & DBLP_SENT_DESC) {
		m = tx_sent_msg(tx, e->desc_id, pn);
		if (m)
			m->desc_acked = true;
	}
	if (e->flags & DBLP_SENT_DATA) {
		m = tx_sent_msg(tx, e->id, pn);
		if (m && m->state != DBLP_TXM_BUSY) {
			dblp_txmsg_acked(m, e->seg);
			tx_admit(tx, m);
		}
	}
}

static void on_lost(void *ctx, u64 pn, const struct dblp_sent *e)
{
	struct dblp_tx *tx = ctx;
	struct dblp_txmsg *m;
	u32 len;

	if (e->flags & (DBLP_SENT_DESC | DBLP_SENT_MARK)) {
		m = tx_sent_msg(tx, e->desc_id, pn);
		if (m && (e->flags & DBLP_SENT_DESC) && !m->desc_acked) {
			m->desc_sent = false;
			dblp_tx_make_ready(tx, m);
		}
		if (m && (e->flags & DBLP_SENT_MARK)) {
			m->mark_due |= m->state == DBLP_TXM_MARKED;
			m->close_due |= m->state == DBLP_TXM_CLOSING;
			dblp_tx_make_ready(tx, m);
		}
	}
	if (e->flags & DBLP_SENT_DATA) {
		m = tx_sent_msg(tx, e->id, pn);
		if (!m || m->state == DBLP_TXM_BUSY)
			return;
		len = dblp_txmsg_seg_len(m, e->seg);
		if (!m->admitted && m->flying_unadmitted >= len) {
			m->flying_unadmitted -= len;
			tx->unadmitted -= len;
		}
		dblp_txmsg_lost(m, e->seg, pn);
		if (dblp_txmsg_excess(m))
			dblp_tx_make_ready(tx, m);
	}
}

const struct dblp_sent_events dblp_tx_sent_events = { .acked = on_acked, .lost = on_lost };

static void tx_open(struct dblp_tx *tx)
{
	if (tx->state == DBLP_TX_ECHO_SENT) {
		tx->state = DBLP_TX_OPEN;
		tx->open_pn = tx->log.next;
		tx->hs_at = DBLP_NEVER;
	}
}

static void tx_ack_done(struct dblp_tx *tx, const struct dblp_f_ack *f, u64 low, u64 now)
{
	struct dblp_txmsg *m;
	u64 id, end;
	u32 i;

	for (i = 0; i < f->ndone; i++) {
		id = max(low + f->done[i].delta, tx->low);
		end = min(low + f->done[i].delta + f->done[i].more + 1, tx->next_id);
		for (; id < end; id++) {
			m = dblp_tx_find(tx, id);
			if (!m)
				continue;
			if (m->cursor < m->nsegs) {
				dblp_tx_note_reject(tx, DBLP_REJECT_ACK);
				continue;
			}
			dblp_tx_complete(tx, m, DBLP_TX_OK, now);
		}
	}
}

/* Returns false for one that no receiver of what we sent can have made. */
static bool tx_ack(struct dblp_tx *tx, const struct dblp_f_ack *f, const struct dblp_hdr *h,
		   u64 now)
{
	struct dblp_rate_sample *rs = &tx->sample;
	int ret;

	ret = dblp_sentlog_ack(&tx->log, f, &tx->rtt, &dblp_tx_sent_events, tx, rs, now);
	if (ret) {
		dblp_tx_note_reject(tx, (enum dblp_reject)ret);
		return false;
	}
	tx->samples++;
	tx_open(tx);
	tx->budget = (u64)f->budget_kib << 10;
	tx->cc.ops->on_ack(&tx->cc, rs, &tx->rtt, tx->log.delivered, now);
	if (rs->acked)
		dblp_probe_heard(&tx->probe, &tx->rtt, tx->log.inflight, now);
	tx_ack_done(tx, f, dblp_expand32(h->low, tx->low), now);
	return true;
}

/* ---- answers ---------------------------------------------------------------------- */

static u8 tx_verdict(u8 verdict)
{
	return verdict == DBLP_VERDICT_OK ? DBLP_TX_OK : DBLP_TX_BELOW;
}

static void tx_done(struct dblp_tx *tx, const struct dblp_f_done *f, u64 now)
{
	struct dblp_txmsg *m = tx_find_wire(tx, f->id);

	if (!m)
		return;
	if (f->verdict > DBLP_VERDICT_BELOW || f->missing_segs > m->nsegs ||
	    f->missing_bytes > m->len || !f->missing_segs != !f->missing_bytes ||
	    f->nparts != (f->missing_segs ? dblp_map_parts(m->nsegs) : 0) ||
	    (f->verdict == DBLP_VERDICT_OK && f->missing_bytes > m->allow)) {
		dblp_tx_note_reject(tx, DBLP_REJECT_MAP);
		return;
	}
	/* Known already; what is waited for are parts of the map. */
	if (m->state == DBLP_TXM_PULLING) {
		if (f->digest != m->digest || f->verdict != m->done_verdict)
			dblp_tx_note_reject(tx, DBLP_REJECT_DIGEST);
		return;
	}
	tx_answered(m);
	m->done_verdict = f->verdict;
	m->missing_bytes = f->missing_bytes;
	m->missing_segs = f->missing_segs;
	if (!f->missing_segs) {
		dblp_tx_complete(tx, m, tx_verdict(f->verdict), now);
		return;
	}
	dblp_tx_unadmit(tx, m);
	m->state = DBLP_TXM_PULLING;
	m->mark_due = false;
	m->close_due = false;
	m->digest = f->digest;
	m->want = f->nparts == 64 ? U64_MAX : (1ULL << f->nparts) - 1;
	list_del_init(&m->rnode);
	dblp_tx_await(tx, m, now);
}

static void map_run(void *ctx, u32 first, u32 count)
{
	struct dblp_txmsg *m = ctx;
	u32 s;

	for (s = first; s < first + count; s++)
		dblp_segmap_set(&m->map, s);
}

/* Bytes that the map says are missing: only the last segment may be shorter. */
static u32 map_bytes(const struct dblp_txmsg *m)
{
	u32 last = m->nsegs - 1;
	u32 bytes = m->map.set * (u32)m->seg_size;

	if (dblp_segmap_test(&m->map, last))
		bytes -= m->seg_size - dblp_txmsg_seg_len(m, last);
	return bytes;
}

static void tx_map(struct dblp_tx *tx, const struct dblp_f_map *f, u64 now)
{
	struct dblp_txmsg *m = tx_find_wire(tx, f->id);
	u32 base = (u32)f->part * DBLP_PART_SEGS, nsegs;

	if (!m)
		return;
	if (m->state != DBLP_TXM_PULLING) {
		dblp_tx_note_reject(tx, DBLP_REJECT_MSG_UNKNOWN);
		return;
	}
	if (f->part >= dblp_map_parts(m->nsegs)) {
		dblp_tx_note_reject(tx, DBLP_REJECT_MAP);
		return;
	}
	if (!(m->want >> f->part & 1))
		return;
	nsegs = min_t(u32, m->nsegs - base, DBLP_PART_SEGS);
	if (dblp_list_decode(f->enc, f->list, f->list_len, base, nsegs, map_run, m)) {
		dblp_tx_note_reject(tx, DBLP_REJECT_MAP);
		return;
	}
	tx_answered(m);
	m->want &= ~(1ULL << f->part);
	if (m->want) {
		/* The burst that one probe brings is over: pull the next one. */
		if (hweight64(m->want) % DBLP_PARTS_BURST == 0) {
			m->mark_due = true;
			dblp_tx_make_ready(tx, m);
		}
		return;
	}
	if (m->map.set == m->missing_segs && map_bytes(m) == m->missing_bytes &&
	    dblp_map_digest(&m->map, m->len) == m->digest) {
		dblp_tx_complete(tx, m, tx_verdict(m->done_verdict), now);
		return;
	}
	dblp_tx_note_reject(tx, DBLP_REJECT_DIGEST);
	dblp_segmap_zero(&m->map);
	if (++m->digest_fails == DBLP_DIGEST_TRIES) {
		dblp_tx_unknown(tx, m, EBADMSG, now);
		return;
	}
	m->want = dblp_map_parts(m->nsegs) == 64 ? U64_MAX :
		  (1ULL << dblp_map_parts(m->nsegs)) - 1;
	dblp_tx_await(tx, m, now);
}

/* There is room for a message that was BUSY: send all of it. */
static void tx_unbusy(struct dblp_tx *tx, struct dblp_txmsg *m)
{
	m->state = DBLP_TXM_SENDING;
	m->mark_due = false;
	tx_answered(m);
	m->pass++;	/* a MARK from before BUSY says nothing about what comes now */
	m->admitted = true;
	list_del_init(&m->wait);
	dblp_tx_make_ready(tx, m);
}

static void tx_need(struct dblp_tx *tx, const struct dblp_f_need *f)
{
	struct dblp_txmsg *m = tx_find_wire(tx, f->id);

	if (!m)
		return;
	if (f->pass != m->pass || m->state != DBLP_TXM_MARKED) {
		dblp_tx_note_reject(tx, DBLP_REJECT_PASS);
		return;
	}
	if (f->base >= m->nsegs || f->nsegs > m->nsegs - f->base || !f->need ||
	    f->missing_segs > m->nsegs ||
	    dblp_list_decode(f->enc, f->list, f->list_len, f->base, f->nsegs, NULL, NULL)) {
		dblp_tx_note_reject(tx, DBLP_REJECT_MAP);
		return;
	}
	tx_admit(tx, m);
	if ((m->max_rounds && m->rounds >= m->max_rounds) || m->pass == U16_MAX) {
		dblp_tx_close_msg(tx, m, DBLP_CLOSE_ROUNDS);
		return;
	}
	dblp_txmsg_need(m, f, tx->log.loss_ppm);
	m->rounds++;
	m->pass++;
	tx_answered(m);
	m->state = DBLP_TXM_REPAIR;
	list_del_init(&m->wait);
	list_del_init(&m->rnode);
	dblp_tx_make_ready(tx, m);
}

static void tx_budget(struct dblp_tx *tx, const struct dblp_f_budget *f, u64 now)
{
	struct dblp_txmsg *m = tx_find_wire(tx, f->id);

	tx->budget = (u64)f->free_kib << 10;
	if (!m)
		return;
	m->unanswered = 0;
	if (f->op == DBLP_GRANT) {
		if (m->state == DBLP_TXM_BUSY)
			tx_unbusy(tx, m);
		else
			tx_admit(tx, m);
		return;
	}
	switch (m->state) {
	case DBLP_TXM_PULLING:
	case DBLP_TXM_COMPLETE:
	case DBLP_TXM_QUEUED:
		dblp_tx_note_reject(tx, DBLP_REJECT_MSG_UNKNOWN);
		return;
	case DBLP_TXM_BUSY:
	case DBLP_TXM_CLOSING:
		/* Its DESC has not been kept, whatever was or will be acknowledged. */
		m->desc_acked = false;
		m->ack_floor = tx->log.next;
		return;
	default:
		break;
	}
	tx->stats.busy++;
	dblp_tx_unadmit(tx, m);
	dblp_txmsg_restart(m);
	m->admitted = false;
	m->desc_acked = false;
	m->desc_sent = false;
	m->mark_due = false;
	m->ack_floor = tx->log.next;
	m->state = DBLP_TXM_BUSY;
	list_del_init(&m->rnode);
	dblp_tx_await(tx, m, now);
}

static void tx_refuse(struct dblp_tx *tx, const struct dblp_f_refuse *f, u64 now)
{
	struct dblp_txmsg *m = tx_find_wire(tx, f->id);

	if (!m)
		return;
	if (m->state == DBLP_TXM_PULLING) {
		dblp_tx_note_reject(tx, DBLP_REJECT_MSG_UNKNOWN);
		return;
	}
	m->limit = f->limit;
	m->missing_bytes = m->len;
	dblp_tx_complete(tx, m, DBLP_TX_REFUSED, now);
}

static void tx_challenge(struct dblp_tx *tx, const struct dblp_f_hello *f,
			 const struct dblp_hdr *h, u64 now)
{
	/* It is stateless at the peer and has no number. */
	if (h->pn || f->tx_flow != tx->cfg.flow || !f->rx_flow ||
	    tx->state != DBLP_TX_INIT_SENT) {
		dblp_tx_note_reject(tx, DBLP_REJECT_HANDSHAKE);
		return;
	}
	if (tx->data_sent && (f->rx_flow != tx->peer_flow ||
			      f->incarnation != tx->peer_incarnation)) {
		dblp_tx_kill(tx, ECONNRESET, now);
		return;
	}
	/* The same answer again says that INIT arrives, not that anything else does. */
	if (!tx->data_sent) {
		tx->heard_at = now;
		tx->hs_backoff = 0;
	}
	if (tx->hs_tries == 1)
		dblp_rtt_sample(&tx->rtt, now - tx->hs_sent_at, 0, now);
	tx->peer_flow = f->rx_flow;
	tx->peer_incarnation = f->incarnation;
	tx->cookie = *f;
	tx->first_flight = (u64)f->first_kib << 10;
	tx->state = DBLP_TX_ECHO_SENT;
	tx->hs_tries = 0;
	tx->hs_at = now;
}

static void tx_accept(struct dblp_tx *tx, const struct dblp_f_accept *f)
{
	if (f->incarnation != tx->peer_incarnation ||
	    (tx->state != DBLP_TX_ECHO_SENT && tx->state != DBLP_TX_OPEN)) {
		dblp_tx_note_reject(tx, DBLP_REJECT_HANDSHAKE);
		return;
	}
	tx->first_flight = (u64)f->first_kib << 10;
	tx_open(tx);
}

/* Notes a number from the receiver; false if it was there before or is too old to say. */
static bool tx_rev_new(struct dblp_tx *tx, u64 pn)
{
	u64 back, i;

	if (pn > tx->rev_largest) {
		back = pn - tx->rev_largest;
		if (back >= DBLP_REV_WINDOW)
			memset(tx->rev_seen, 0, sizeof(tx->rev_seen));
		for (i = 1; i < min_t(u64, back, DBLP_REV_WINDOW); i++)
			tx->rev_seen[(tx->rev_largest + i) / 64 % (DBLP_REV_WINDOW / 64)] &=
				~(1ULL << ((tx->rev_largest + i) % 64));
		tx->rev_largest = pn;
	} else if (tx->rev_largest - pn >= DBLP_REV_WINDOW) {
		return false;
	} else if (tx->rev_seen[pn / 64 % (DBLP_REV_WINDOW / 64)] >> (pn % 64) & 1) {
		return false;
	}
	tx->rev_seen[pn / 64 % (DBLP_REV_WINDOW / 64)] |= 1ULL << (pn % 64);
	return true;
}

/* Reads one frame; false: the rest of the packet is not for us or makes no sense. */
static bool tx_frame(struct dblp_tx *tx, const struct dblp_frame *f, const struct dblp_hdr *h,
		     u64 now)
{
	switch (f->type) {
	case DBLP_F_PAD:
		return true;
	case DBLP_F_CHALLENGE:
		tx_challenge(tx, &f->u.hello, h, now);
		return false;
	case DBLP_F_ACCEPT:
		tx_accept(tx, &f->u.accept);
		return true;
	case DBLP_F_ACK:
		return tx_ack(tx, &f->u.ack, h, now);
	case DBLP_F_DONE:
		tx_done(tx, &f->u.done, now);
		return true;
	case DBLP_F_NEED:
		tx_need(tx, &f->u.need);
		return true;
	case DBLP_F_MAP:
		tx_map(tx, &f->u.map, now);
		return true;
	case DBLP_F_BUDGET:
		tx_budget(tx, &f->u.budget, now);
		return true;
	case DBLP_F_REFUSE:
		tx_refuse(tx, &f->u.refuse, now);
		return true;
	default:
		dblp_tx_note_reject(tx, DBLP_REJECT_DIRECTION);
		return false;
	}
}

void dblp_tx_input(struct dblp_tx *tx, const u8 *p, const struct dblp_hdr *h, u64 now)
{
	struct dblp_reader r;
	struct dblp_frame f;
	int ret;

	if (!(h->flags & DBLP_HDR_REV)) {
		dblp_tx_note_reject(tx, DBLP_REJECT_DIRECTION);
		return;
	}
	if (tx->state == DBLP_TX_DEAD) {
		dblp_tx_note_reject(tx, DBLP_REJECT_CLOSED);
		return;
	}
	/* Only CHALLENGE has no number. */
	if (h->pn && !tx_rev_new(tx, dblp_expand32(h->pn, tx->rev_largest + 1))) {
		dblp_tx_note_reject(tx, DBLP_REJECT_DUP_PACKET);
		return;
	}
	dblp_reader_init(&r, p, h->len, h);
	while ((ret = dblp_frame_next(&r, &f)) == 1) {
		if (!h->pn && f.type != DBLP_F_CHALLENGE) {
			dblp_tx_note_reject(tx, DBLP_REJECT_DUP_PACKET);
			return;
		}
		if (tx->state == DBLP_TX_DEAD || !tx_frame(tx, &f, h, now))
			return;
	}
	if (ret < 0)
		dblp_tx_note_reject(tx, (enum dblp_reject)-ret);
	else
		tx->heard_at = now;	/* only what makes sense keeps a flow alive */
}

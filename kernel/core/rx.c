// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The receiver of a flow: dblp-wire.rst §5 "Message at the receiver".
 *
 * A message is OPEN while segments may be kept, WAITING while its room is not there,
 * JUDGED once its map is frozen.  Judged messages with a map stay until the sender's low
 * passes them, so that the map can be pulled as often as the network loses it; of those
 * with nothing missing only a bit stays.
 *
 * Answers are not sent where they are decided: they are marked on the message and built
 * by dblp_rx_poll(), which bundles them with the ACK.
 */
#include "rx.h"
#include "handshake.h"

/* Probe time as far as a receiver knows it: two round trips and the sender's ack delay. */
static u64 rx_pto(const struct dblp_rx *rx)
{
	return 2 * rx->rtt_ns + 2 * DBLP_NSEC_PER_MSEC;
}

static void rx_reject(struct dblp_rx *rx, enum dblp_reject r)
{
	rx->cfg.ops->reject(rx, r);
}

static void rx_timer_at(struct dblp_rx *rx, u64 at)
{
	if (at < rx->timer)
		rx->timer = at;
}

/* ---- ids ------------------------------------------------------------------------ */

static bool id_bit(const u64 *bits, u64 id)
{
	u32 i = (u32)(id % DBLP_ID_WINDOW);

	return bits[i / 64] >> (i % 64) & 1;
}

static void id_bit_set(u64 *bits, u64 id)
{
	u32 i = (u32)(id % DBLP_ID_WINDOW);

	bits[i / 64] |= 1ULL << (i % 64);
}

static void id_bit_clear(u64 *bits, u64 id)
{
	u32 i = (u32)(id % DBLP_ID_WINDOW);

	bits[i / 64] &= ~(1ULL << (i % 64));
}

static struct dblp_rxmsg **rx_bucket(struct dblp_rx *rx, u64 id)
{
	return &rx->hash[id % DBLP_RX_HASH];
}

static struct dblp_rxmsg *rx_find(struct dblp_rx *rx, u64 id)
{
	struct dblp_rxmsg *m = *rx_bucket(rx, id);

	while (m && m->id != id)
		m = m->hash_next;
	return m;
}

static void rx_unhash(struct dblp_rx *rx, struct dblp_rxmsg *m)
{
	struct dblp_rxmsg **p = rx_bucket(rx, m->id);

	while (*p != m)
		p = &(*p)->hash_next;
	*p = m->hash_next;
}

/* Takes @m off every list and gives it back to the owner. */
static void rx_forget(struct dblp_rx *rx, struct dblp_rxmsg *m)
{
	rx_unhash(rx, m);
	list_del_init(&m->node);
	list_del_init(&m->answer);
	if (m->state != DBLP_RXM_JUDGED)
		rx->nopen--;
	if (m->state == DBLP_RXM_WAITING)
		rx->nwaiting--;
	rx->cfg.ops->release(rx, m);
}

/* Remembers an answer about a message of which nothing is kept. */
static void rx_bare(struct dblp_rx *rx, u64 id, u8 type)
{
	u32 i;

	for (i = 0; i < rx->nbare; i++)
		if (rx->bare[i].id == id)
			return;
	if (rx->nbare == DBLP_RX_BARE_MAX)
		return;	/* the sender asks again */
	rx->bare[rx->nbare].id = id;
	rx->bare[rx->nbare].type = type;
	rx->nbare++;
}

/* The sender holds nothing below @low any more. */
static void rx_set_low(struct dblp_rx *rx, u64 low)
{
	struct dblp_rxmsg *m, *n;
	u64 id, end;

	end = low - rx->low < DBLP_ID_WINDOW ? low : rx->low + DBLP_ID_WINDOW;
	for (id = rx->low; id < end; id++) {
		if (id_bit(rx->clean, id))
			rx->nclean--;
		id_bit_clear(rx->clean, id);
		id_bit_clear(rx->finished, id);
	}
	rx->low = low;
	list_for_each_entry_safe(m, n, &rx->judged, node)
		if (m->id < low)
			rx_forget(rx, m);
	list_for_each_entry_safe(m, n, &rx->open, node)
		if (m->id < low)
			rx_forget(rx, m);
}

/* ---- judgement ------------------------------------------------------------------ */

static void rx_answer(struct dblp_rx *rx, struct dblp_rxmsg *m)
{
	m->answer_due = true;
	if (list_empty(&m->answer))
		list_add_tail(&m->answer, &rx->answers);
}

/* The first parts asked for, so that one probe is answered with a bounded burst. */
static u64 rx_parts(const struct dblp_rxmsg *m, u64 want)
{
	u32 n = dblp_map_parts(m->nsegs);
	u64 got = 0;
	u32 i, k = 0;

	if (!m->miss.set)
		return 0;
	for (i = 0; i < n && k < DBLP_PARTS_BURST; i++) {
		if (want >> i & 1) {
			got |= 1ULL << i;
			k++;
		}
	}
	return got;
}

/* The instant after which nothing about the message changes. */
static void rx_finish(struct dblp_rx *rx, struct dblp_rxmsg *m, u8 verdict, u64 now)
{
	if (m->state == DBLP_RXM_WAITING)
		rx->nwaiting--;
	rx->nopen--;
	m->state = DBLP_RXM_JUDGED;
	m->verdict = verdict;
	m->judged_at = now;
	m->reo_at = DBLP_NEVER;
	m->hold_at = DBLP_NEVER;
	m->grant_due = false;
	list_move_tail(&m->node, &rx->judged);
	id_bit_set(rx->finished, m->id);
	if (verdict == DBLP_VERDICT_OK)
		rx->stats.msgs_ok++;
	else
		rx->stats.msgs_below++;
	rx->stats.missing_bytes += m->missing;
	if (m->miss.set)
		m->digest = dblp_map_digest(&m->miss, m->len);

	rx->cfg.ops->judged(rx, m);

	if (!m->miss.set) {
		id_bit_set(rx->clean, m->id);
		rx->nclean++;
		/* Of several segments someone may wait for the end of the pass. */
		if (m->nsegs > 1)
			dblp_ackset_urge(&rx->acks);
		rx_forget(rx, m);
		return;
	}
	m->parts_due = rx_parts(m, U64_MAX);
	rx_answer(rx, m);
}

static void rx_judge(struct dblp_rx *rx, struct dblp_rxmsg *m, u64 now)
{
	struct dblp_judge_in in = {
		.missing = m->missing,
		.prot_missing = m->prot_missing,
		.allow = m->desc.allow,
		.mode = m->desc.mode,
		.desc = m->has_desc,
		/* Without room "the pass is over" says nothing about the network. */
		.mark = m->pass && m->state == DBLP_RXM_OPEN,
		.close = m->close,
		.reo_over = now >= m->reo_at,
		.hold_over = now >= m->hold_at,
	};

	switch (dblp_judge(&in)) {
	case DBLP_JUDGE_WAIT:
		break;
	case DBLP_JUDGE_OK:
		rx_finish(rx, m, DBLP_VERDICT_OK, now);
		break;
	case DBLP_JUDGE_BELOW:
		rx_finish(rx, m, DBLP_VERDICT_BELOW, now);
		break;
	case DBLP_JUDGE_NEED:
		if (!m->answered) {
			m->answered = true;
			rx->stats.needs++;
			rx_answer(rx, m);
		}
		break;
	}
}

/* ---- opening -------------------------------------------------------------------- */

u64 dblp_rx_room(u32 msg_len, u32 seg_size)
{
	return msg_len + (u64)dblp_nsegs(msg_len, seg_size) * DBLP_SEG_OVERHEAD;
}

/* The sender says what no sender says: better a known end than endless repairs. */
static void rx_protocol(struct dblp_rx *rx)
{
	dblp_rx_kill(rx);
	rx->reset_due = true;
	rx->reset_reason = DBLP_RESET_PROTOCOL;
}

/* A frame contradicts what opened @m.  One of the two was damaged; which, time will tell. */
static void rx_mismatch(struct dblp_rx *rx, struct dblp_rxmsg *m)
{
	rx_reject(rx, DBLP_REJECT_MSG_MISMATCH);
	if (++m->mismatches == DBLP_RX_MISMATCH_MAX)
		rx_protocol(rx);
}

/*
 * The message of @id, opened if need be.  NULL: nothing is kept of it (the reason has been
 * counted and, where the sender waits for it, an answer noted).
 */
static struct dblp_rxmsg *rx_open(struct dblp_rx *rx, u64 id, u32 len, u32 seg_size, u64 now)
{
	struct dblp_rxmsg *m;
	u32 nsegs;

	if (id < rx->low) {
		rx_reject(rx, DBLP_REJECT_STALE);
		return NULL;
	}
	if (id - rx->low >= DBLP_ID_WINDOW) {
		rx_reject(rx, DBLP_REJECT_ID_WINDOW);
		return NULL;
	}
	m = rx_find(rx, id);
	if (m) {
		if (m->len == len && m->seg_size == seg_size)
			return m;
		rx_mismatch(rx, m);
		return NULL;
	}
	if (id_bit(rx->finished, id)) {
		/* Clean or refused: finished, and nothing but a bit is left of it. */
		rx->stats.late++;
		rx_reject(rx, DBLP_REJECT_LATE);
		return NULL;
	}
	if (len > rx->cfg.limit) {
		id_bit_set(rx->finished, id);
		rx_bare(rx, id, DBLP_F_REFUSE);
		rx_reject(rx, DBLP_REJECT_REFUSED);
		return NULL;
	}
	if (rx->nopen >= DBLP_RX_OPEN_MAX || rx->nwaiting >= DBLP_RX_WAIT_MAX) {
		rx_bare(rx, id, DBLP_F_BUDGET);
		rx_reject(rx, DBLP_REJECT_BUSY);
		return NULL;
	}
	nsegs = dblp_nsegs(len, seg_size);
	m = rx->cfg.ops->open(rx, len, seg_size, nsegs);
	if (!m) {
		rx_bare(rx, id, DBLP_F_BUDGET);
		rx_reject(rx, DBLP_REJECT_MEMORY);
		return NULL;
	}
	m->miss.nbits = nsegs;
	dblp_segmap_fill(&m->miss);
	dblp_claim_init(&m->claim);
	INIT_LIST_HEAD(&m->answer);
	m->id = id;
	m->len = len;
	m->nsegs = nsegs;
	m->seg_size = (u16)seg_size;
	m->missing = len;
	m->opened_at = now;
	m->reo_at = DBLP_NEVER;
	m->hold_at = DBLP_NEVER;
	m->hash_next = *rx_bucket(rx, id);
	*rx_bucket(rx, id) = m;
	list_add_tail(&m->node, &rx->open);
	rx->nopen++;
	if (rx->cfg.ops->claim(rx, m, dblp_rx_room(len, seg_size))) {
		m->state = DBLP_RXM_OPEN;
	} else {
		m->state = DBLP_RXM_WAITING;
		rx->nwaiting++;
		rx->stats.busy++;
		rx_answer(rx, m);
	}
	return m;
}

/* Notes an unjudged message for rx_touched(). */
static void rx_touch(struct dblp_rx *rx, struct dblp_rxmsg *m)
{
	u32 i;

	if (m->state == DBLP_RXM_JUDGED)
		return;
	for (i = 0; i < rx->ntouch && i < DBLP_RX_TOUCH; i++)
		if (rx->touch[i] == m)
			return;
	if (rx->ntouch < DBLP_RX_TOUCH)
		rx->touch[rx->ntouch] = m;
	rx->ntouch++;
}

/* ---- frames --------------------------------------------------------------------- */

static void rx_data(struct dblp_rx *rx, const struct dblp_f_data *f, u64 pkt_low, void *pkt,
		    u64 now)
{
	struct dblp_rxmsg *m;
	u32 i;

	m = rx_open(rx, pkt_low + f->delta, f->msg_len, f->seg_size, now);
	if (!m)
		return;
	rx_touch(rx, m);
	switch (m->state) {
	case DBLP_RXM_WAITING:
		rx_reject(rx, DBLP_REJECT_BUSY);
		rx_answer(rx, m);
		return;
	case DBLP_RXM_JUDGED:
		rx->stats.late++;
		rx_reject(rx, DBLP_REJECT_LATE);
		return;
	case DBLP_RXM_OPEN:
		break;
	}
	if (!dblp_segmap_test(&m->miss, f->seg)) {
		rx->stats.dup_segs++;
		rx_reject(rx, DBLP_REJECT_DUP_SEGMENT);
		return;
	}
	if (rx->cfg.ops->store(rx, m, f, pkt)) {
		rx_reject(rx, DBLP_REJECT_MEMORY);
		return;
	}
	dblp_segmap_clear(&m->miss, f->seg);
	m->missing -= f->len;
	rx->stats.segs++;
	rx->stats.seg_bytes += f->len;
	for (i = 0; i < m->desc.nprot; i++) {
		if (f->seg - m->desc.prot[i].first < m->desc.prot[i].count) {
			m->prot_missing--;
			m->prot_bytes -= f->len;
			break;
		}
	}
}

static bool desc_equal(const struct dblp_f_desc *a, const struct dblp_f_desc *b)
{
	return a->mode == b->mode && a->phase == b->phase && a->priority == b->priority &&
	       a->nprot == b->nprot && a->grouped == b->grouped && a->ppm == b->ppm &&
	       a->allow == b->allow && a->deadline_us == b->deadline_us &&
	       a->group == b->group && a->tag == b->tag &&
	       !memcmp(a->prot, b->prot, a->nprot * sizeof(a->prot[0]));
}

static void rx_desc(struct dblp_rx *rx, const struct dblp_f_desc *f, u64 now)
{
	u64 id = dblp_expand32(f->id, rx->low);
	struct dblp_rxmsg *m;
	u32 i, n, end;

	m = rx_open(rx, id, f->msg_len, f->seg_size, now);
	if (!m)
		return;
	if (m->has_desc) {
		if (!desc_equal(&m->desc, f))
			rx_mismatch(rx, m);
		return;
	}
	rx_touch(rx, m);
	m->desc = *f;
	m->has_desc = true;
	for (i = 0; i < f->nprot; i++) {
		end = f->prot[i].first + f->prot[i].count;
		n = dblp_segmap_count(&m->miss, f->prot[i].first, end);
		m->prot_missing += n;
		m->prot_bytes += n * m->seg_size;
		/* The last segment may be shorter. */
		if (end == m->nsegs && dblp_segmap_test(&m->miss, end - 1))
			m->prot_bytes -= m->seg_size -
					 dblp_seg_len(m->len, m->seg_size, end - 1);
	}
	if (f->deadline_us) {
		m->hold_at = m->opened_at + f->deadline_us * DBLP_NSEC_PER_USEC +
			     3 * rx_pto(rx);
		rx_timer_at(rx, m->hold_at);
	}
}

/* MARK or CLOSE for an id of which there is no state. */
static void rx_mark_bare(struct dblp_rx *rx, u64 id)
{
	if (id < rx->low) {
		rx_reject(rx, DBLP_REJECT_STALE);
	} else if (id - rx->low >= DBLP_ID_WINDOW) {
		rx_reject(rx, DBLP_REJECT_ID_WINDOW);
	} else if (id_bit(rx->clean, id)) {
		rx_bare(rx, id, DBLP_F_DONE);
	} else if (id_bit(rx->finished, id)) {
		rx_bare(rx, id, DBLP_F_REFUSE);
	} else {
		/* Its DESC came when nothing could be kept: make the sender start again. */
		rx_bare(rx, id, DBLP_F_BUDGET);
		rx_reject(rx, DBLP_REJECT_NO_DESC);
	}
}

static void rx_mark(struct dblp_rx *rx, const struct dblp_f_mark *f, bool close, u64 now)
{
	u64 id = dblp_expand32(f->id, rx->low);
	struct dblp_rxmsg *m = rx_find(rx, id);
	u64 reo;

	if (!m) {
		rx_mark_bare(rx, id);
		return;
	}
	if (m->state == DBLP_RXM_JUDGED) {
		m->parts_due |= rx_parts(m, f->want);
		rx_answer(rx, m);
		return;
	}
	if (!m->has_desc) {
		/* Its DESC was acknowledged when nothing could be kept. */
		rx_bare(rx, id, DBLP_F_BUDGET);
		rx_reject(rx, DBLP_REJECT_NO_DESC);
		return;
	}
	rx_touch(rx, m);
	reo = now + f->reo_us * DBLP_NSEC_PER_USEC;
	if (close) {
		if (!m->close) {
			m->close = true;
			if (m->state == DBLP_RXM_WAITING)
				reo = now;	/* nothing is kept that could still come */
			m->reo_at = reo;
			rx_timer_at(rx, reo);
		}
		return;
	}
	if (m->state == DBLP_RXM_WAITING) {
		rx_answer(rx, m);
		return;
	}
	if (!f->pass) {
		/* The sender thinks that there is no room. */
		m->grant_due = true;
		rx_answer(rx, m);
		return;
	}
	if (f->pass > m->pass) {
		m->pass = f->pass;
		m->answered = false;
		if (!m->close) {
			m->reo_at = reo;
			rx_timer_at(rx, reo);
		}
	} else if (m->answered) {
		rx_answer(rx, m);
	}
}

/* Is this packet number worth an ACK? */
static bool frame_elicits(enum dblp_frame_type t)
{
	switch (t) {
	case DBLP_F_DATA:
	case DBLP_F_DESC:
	case DBLP_F_MARK:
	case DBLP_F_CLOSE:
	case DBLP_F_PING:
	case DBLP_F_ECHO:
		return true;
	default:
		return false;
	}
}

/* Judges what the packet touched: once, when all its frames have been read. */
static void rx_touched(struct dblp_rx *rx, u64 now)
{
	struct dblp_rxmsg *m, *n;
	u32 i, k = rx->ntouch;

	rx->ntouch = 0;
	if (k > DBLP_RX_TOUCH) {
		list_for_each_entry_safe(m, n, &rx->open, node)
			rx_judge(rx, m, now);
		return;
	}
	for (i = 0; i < k; i++)
		rx_judge(rx, rx->touch[i], now);
}

/* Reads one frame; false: the rest of the packet is not for us. */
static bool rx_frame(struct dblp_rx *rx, const struct dblp_frame *f, u64 pkt_low, void *pkt,
		     u64 now)
{
	switch (f->type) {
	case DBLP_F_PAD:
		return true;
	case DBLP_F_DATA:
		rx_data(rx, &f->u.data, pkt_low, pkt, now);
		return true;
	case DBLP_F_DESC:
		rx_desc(rx, &f->u.desc, now);
		return true;
	case DBLP_F_MARK:
	case DBLP_F_CLOSE:
		dblp_ackset_urge(&rx->acks);
		rx_mark(rx, &f->u.mark, f->type == DBLP_F_CLOSE, now);
		return true;
	case DBLP_F_PING:
		dblp_ackset_urge(&rx->acks);
		return true;
	case DBLP_F_ECHO:
		dblp_rx_echo(rx, now);
		return true;
	case DBLP_F_FIN:
		dblp_rx_kill(rx);
		return false;
	default:
		rx_reject(rx, DBLP_REJECT_DIRECTION);
		return false;
	}
}

int dblp_rx_input(struct dblp_rx *rx, const u8 *p, u32 linear, const struct dblp_hdr *h,
		  u8 ecn, void *pkt, u64 now)
{
	struct dblp_reader r;
	struct dblp_frame f;
	bool elicits = false;
	u64 pn, low;
	int ret;

	if (h->flags & DBLP_HDR_REV) {
		rx_reject(rx, DBLP_REJECT_DIRECTION);
		return 0;
	}
	if (linear < h->len) {
		/* Nothing may be done twice: look whether all frames can be read. */
		dblp_reader_init(&r, p, linear, h);
		do {
			ret = dblp_frame_next(&r, &f);
		} while (ret == 1);
		if (ret == DBLP_READ_LINEAR)
			return DBLP_READ_LINEAR;
	}
	if (rx->dead) {
		rx->reset_due = true;
		rx_reject(rx, DBLP_REJECT_CLOSED);
		return 0;
	}
	pn = dblp_expand32(h->pn, dblp_ackset_largest(&rx->acks) + 1);
	if (!pn || dblp_ackset_has(&rx->acks, pn)) {
		rx_reject(rx, DBLP_REJECT_DUP_PACKET);
		return 0;
	}
	rx->heard_at = now;
	rx->stats.pkts++;
	low = dblp_expand32(h->low, rx->low);
	if (low > rx->low) {
		rx_set_low(rx, low);
	} else if (low < rx->low && pn > dblp_ackset_largest(&rx->acks)) {
		/* It never falls: one of them was damaged, and what it forgot is forgotten. */
		rx_reject(rx, DBLP_REJECT_LOW);
		rx_protocol(rx);
		return 0;
	}

	dblp_reader_init(&r, p, linear, h);
	while ((ret = dblp_frame_next(&r, &f)) == 1) {
		if (!rx_frame(rx, &f, low, pkt, now))
			break;
		if (rx->dead)
			return 0;
		elicits |= frame_elicits(f.type);
	}
	if (ret < 0)
		rx_reject(rx, (enum dblp_reject)-ret);
	if (rx->dead)
		return 0;
	dblp_ackset_add(&rx->acks, pn, ecn, elicits, now, rx->rtt_ns);
	rx_touched(rx, now);
	return 0;
}

void dblp_rx_echo(struct dblp_rx *rx, u64 now)
{
	rx->heard_at = now;
	rx->accept_due = true;
	dblp_ackset_urge(&rx->acks);
}

void dblp_rx_granted(struct dblp_rx *rx, struct dblp_rxmsg *m, u64 now)
{
	if (m->state != DBLP_RXM_WAITING)
		return;
	m->state = DBLP_RXM_OPEN;
	rx->nwaiting--;
	rx->stats.grants++;
	m->grant_due = true;
	rx_answer(rx, m);
	rx_judge(rx, m, now);
}

/* ---- time ----------------------------------------------------------------------- */

u64 dblp_rx_timer(const struct dblp_rx *rx)
{
	u64 at = rx->acks.ack_at;

	if (rx->dead)
		return rx->heard_at + DBLP_RX_IDLE_NS;
	at = min(at, rx->timer);
	if (rx->nopen)
		at = min(at, rx->heard_at + rx->cfg.dead_ns);
	else
		at = min(at, rx->heard_at + DBLP_RX_IDLE_NS);
	return at;
}

void dblp_rx_timeout(struct dblp_rx *rx, u64 now)
{
	struct dblp_rxmsg *m, *n;

	if (rx->dead)
		return;
	if (rx->nopen && now - rx->heard_at >= rx->cfg.dead_ns) {
		dblp_rx_kill(rx);
		return;
	}
	if (now < rx->timer)
		return;
	list_for_each_entry_safe(m, n, &rx->open, node)
		if (now >= m->reo_at || now >= m->hold_at)
			rx_judge(rx, m, now);
	rx->timer = DBLP_NEVER;
	list_for_each_entry(m, &rx->open, node) {
		/* A window that is over stays over: the bound may be met later. */
		if (m->reo_at > now)
			rx_timer_at(rx, m->reo_at);
		rx_timer_at(rx, m->hold_at);
	}
}

bool dblp_rx_idle(const struct dblp_rx *rx, u64 now)
{
	return !rx->nopen && now - rx->heard_at >= DBLP_RX_IDLE_NS;
}

void dblp_rx_kill(struct dblp_rx *rx)
{
	struct dblp_rxmsg *m, *n;

	list_for_each_entry_safe(m, n, &rx->open, node)
		rx_forget(rx, m);
	list_for_each_entry_safe(m, n, &rx->judged, node)
		rx_forget(rx, m);
	if (!rx->dead)
		rx->reset_reason = DBLP_RESET_CLOSED;
	rx->dead = true;
	rx->ntouch = 0;
	rx->timer = DBLP_NEVER;
}

void dblp_rx_repeat(struct dblp_rx *rx)
{
	struct dblp_rxmsg *m;

	list_for_each_entry(m, &rx->judged, node) {
		m->parts_due = rx_parts(m, U64_MAX);
		rx_answer(rx, m);
	}
	dblp_ackset_urge(&rx->acks);
}

/* ---- output --------------------------------------------------------------------- */

static void put_done(struct dblp_frame *f, u64 id, u8 verdict, u32 nparts, u32 bytes,
		     u32 segs, u64 digest)
{
	f->type = DBLP_F_DONE;
	f->u.done.verdict = verdict;
	f->u.done.nparts = (u16)nparts;
	f->u.done.id = (u32)id;
	f->u.done.missing_bytes = bytes;
	f->u.done.missing_segs = segs;
	f->u.done.digest = digest;
}

static bool put_budget(struct dblp_rx *rx, struct dblp_frame *f, struct dblp_writer *w, u64 id,
		       u8 op)
{
	f->type = DBLP_F_BUDGET;
	f->u.budget.op = op;
	f->u.budget.id = (u32)id;
	f->u.budget.free_kib = rx->cfg.ops->free_kib(rx);
	return dblp_frame_put(w, f);
}

static bool put_bare(struct dblp_rx *rx, struct dblp_frame *f, struct dblp_writer *w, u32 i)
{
	u64 id = rx->bare[i].id;

	switch (rx->bare[i].type) {
	case DBLP_F_DONE:
		put_done(f, id, DBLP_VERDICT_OK, 0, 0, 0, 0);
		break;
	case DBLP_F_REFUSE:
		f->type = DBLP_F_REFUSE;
		f->u.refuse.reason = DBLP_REFUSE_SIZE;
		f->u.refuse.id = (u32)id;
		f->u.refuse.limit = rx->cfg.limit;
		break;
	default:
		return put_budget(rx, f, w, id, DBLP_BUSY);
	}
	return dblp_frame_put(w, f);
}

/* NEED with as much of the list as fits; a list of a few bytes waits for a packet. */
static bool put_need(struct dblp_rx *rx, struct dblp_rxmsg *m, struct dblp_frame *f,
		     struct dblp_writer *w)
{
	u32 base, nsegs, at = w->len + DBLP_NEED_LEN;
	u32 list_room = at < w->size ? w->size - at : 0;
	u32 need;

	base = dblp_segmap_next(&m->miss, 0) & ~7U;
	nsegs = m->nsegs - base;
	if (list_room < min_t(u32, 256, DIV_ROUND_UP(nsegs, 8)))
		return false;
	nsegs = min_t(u32, nsegs, U16_MAX & ~7U);
	f->type = DBLP_F_NEED;
	f->u.need.list = w->p + at;
	f->u.need.list_len = (u16)dblp_list_encode(&m->miss, base, &nsegs, list_room,
						  w->p + at, &f->u.need.enc);
	need = m->missing > m->desc.allow ? m->missing - m->desc.allow : 0;
	f->u.need.pass = m->pass;
	f->u.need.id = (u32)m->id;
	/* Bytes of protected segments are needed even where the bound is met. */
	f->u.need.need = max(need, m->prot_bytes);
	f->u.need.missing_segs = m->miss.set;
	f->u.need.largest = (u32)dblp_ackset_largest(&rx->acks);
	f->u.need.base = base;
	f->u.need.nsegs = (u16)nsegs;
	return dblp_frame_put(w, f);
}

static bool put_map(struct dblp_rxmsg *m, u32 part, struct dblp_frame *f,
		    struct dblp_writer *w)
{
	u32 base = part * DBLP_PART_SEGS, at = w->len + DBLP_MAP_LEN;
	u32 nsegs = min_t(u32, m->nsegs - base, DBLP_PART_SEGS), all = nsegs;

	if (at >= w->size)
		return false;
	f->type = DBLP_F_MAP;
	f->u.map.part = (u16)part;
	f->u.map.id = (u32)m->id;
	f->u.map.list = w->p + at;
	f->u.map.list_len = (u16)dblp_list_encode(&m->miss, base, &nsegs, w->size - at,
						 w->p + at, &f->u.map.enc);
	return nsegs == all && dblp_frame_put(w, f);
}

/* Writes what is due about @m; false: something is left for the next packet. */
static bool put_answer(struct dblp_rx *rx, struct dblp_rxmsg *m, struct dblp_frame *f,
		       struct dblp_writer *w)
{
	u32 part;

	if (m->grant_due) {
		if (!put_budget(rx, f, w, m->id, DBLP_GRANT))
			return false;
		m->grant_due = false;
		/* What was due before the grant has been overtaken by it. */
		if (m->state == DBLP_RXM_OPEN && !m->answered)
			m->answer_due = false;
	}
	if (m->answer_due) {
		switch (m->state) {
		case DBLP_RXM_WAITING:
			if (!put_budget(rx, f, w, m->id, DBLP_BUSY))
				return false;
			break;
		case DBLP_RXM_OPEN:
			if (m->answered && !put_need(rx, m, f, w))
				return false;
			break;
		case DBLP_RXM_JUDGED:
			put_done(f, m->id, m->verdict, dblp_map_parts(m->nsegs), m->missing,
				 m->miss.set, m->digest);
			if (!dblp_frame_put(w, f))
				return false;
			break;
		}
		m->answer_due = false;
	}
	while (m->parts_due) {
		part = (u32)__ffs64(m->parts_due);
		if (!put_map(m, part, f, w))
			return false;
		m->parts_due &= m->parts_due - 1;
	}
	return true;
}

static u32 next_clean(const struct dblp_rx *rx, u32 delta)
{
	while (delta < DBLP_ID_WINDOW && !id_bit(rx->clean, rx->low + delta))
		delta++;
	return delta;
}

static void fill_done_ranges(const struct dblp_rx *rx, struct dblp_f_ack *a)
{
	u32 left = rx->nclean, d = 0, first;

	while (left && a->ndone < DBLP_ACK_DONE_RANGES) {
		first = next_clean(rx, d);
		for (d = first; d < DBLP_ID_WINDOW && id_bit(rx->clean, rx->low + d); d++)
			left--;
		if (d == first)
			return;
		a->done[a->ndone].delta = (u16)first;
		a->done[a->ndone].more = (u16)(d - first - 1);
		a->ndone++;
	}
}

#define ACK_SIZE_MAX (DBLP_ACK_LEN + 4 * DBLP_ACK_RANGES + 4 * DBLP_ACK_DONE_RANGES)

static bool rx_ack_due(const struct dblp_rx *rx, u64 now)
{
	return rx->acks.n && rx->acks.ack_at <= now;
}

u32 dblp_rx_poll(struct dblp_rx *rx, u64 now, u8 *buf, u32 room)
{
	struct dblp_writer w = { .p = buf, .len = DBLP_HDR_LEN };
	struct dblp_hdr h = { .flags = DBLP_HDR_REV };
	struct dblp_rxmsg *m, *n;
	struct dblp_frame f;	/* the only one: they are large */

	if (rx->dead) {
		if (!rx->reset_due)
			return 0;
		rx->reset_due = false;
		return dblp_hs_reset(rx->cfg.flow, 0, rx->reset_reason, buf, room);
	}
	if (!rx->accept_due && !rx->nbare && list_empty(&rx->answers) && !rx_ack_due(rx, now))
		return 0;

	w.size = min_t(u32, room, rx->cfg.room);
	if (rx->accept_due) {
		f.type = DBLP_F_ACCEPT;
		f.u.accept.incarnation = rx->cfg.incarnation;
		f.u.accept.first_kib = rx->cfg.first_kib;
		if (dblp_frame_put(&w, &f))
			rx->accept_due = false;
	}
	/* Answers before the ACK: BUSY must be read before what it takes back. */
	while (rx->nbare && put_bare(rx, &f, &w, rx->nbare - 1))
		rx->nbare--;
	list_for_each_entry_safe(m, n, &rx->answers, answer) {
		if (!put_answer(rx, m, &f, &w))
			break;
		list_del_init(&m->answer);
	}
	if (rx->acks.n && w.len + ACK_SIZE_MAX <= w.size) {
		f.type = DBLP_F_ACK;
		dblp_ackset_fill(&rx->acks, &f.u.ack, now);
		f.u.ack.budget_kib = rx->cfg.ops->free_kib(rx);
		f.u.ack.ndone = 0;
		fill_done_ranges(rx, &f.u.ack);
		dblp_frame_put(&w, &f);
	}
	h.flow = rx->cfg.peer_flow;
	rx->pn++;
	h.pn = (u32)rx->pn;
	h.low = (u32)rx->low;
	h.len = (u16)w.len;
	dblp_hdr_put(buf, &h);
	return w.len;
}

void dblp_rx_init(struct dblp_rx *rx, const struct dblp_rx_cfg *cfg, u64 now)
{
	memset(rx, 0, sizeof(*rx));
	rx->cfg = *cfg;
	rx->low = 1;
	rx->rtt_ns = cfg->rtt_ns;
	rx->heard_at = now;
	rx->timer = DBLP_NEVER;
	dblp_ackset_init(&rx->acks);
	INIT_LIST_HEAD(&rx->open);
	INIT_LIST_HEAD(&rx->judged);
	INIT_LIST_HEAD(&rx->answers);
}

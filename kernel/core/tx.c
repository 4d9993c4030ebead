// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The sender of a flow: dblp-wire.rst §5 "Message at the sender" and "Handshake".
 *
 * A message is on up to three lists: msgs (all that are held, by id), ready (may have
 * something to send) and waiting (the receiver owes an answer; ordered by when to ask
 * again).  What was sent is in the sent log, by packet number; acknowledgements find their
 * message through it.  What comes back is read in tx_input.c.
 */
#include "txmsg.h"
#include "tx_priv.h"

/* Packet numbers kept free for control, so that probing works when data has filled the log. */
#define LOG_RESERVE		8
#define INIT_FIRST_FLIGHT	(16 * 1024)
#define HS_ECHO_TRIES		3
#define DBLP_UNANSWERED_MAX	32	/* probes of a message; with back-off some 25 s */
#define RX_ACK_DELAY_NS		(1 * DBLP_NSEC_PER_MSEC)
#define REO_MAX_NS		(1 * DBLP_NSEC_PER_SEC)

void dblp_tx_note_reject(struct dblp_tx *tx, enum dblp_reject r)
{
	tx->cfg.reject(tx->cfg.ctx, r);
}

/* ---- lists ---------------------------------------------------------------------- */

static struct dblp_txmsg **tx_bucket(struct dblp_tx *tx, u64 id)
{
	return &tx->hash[id % DBLP_TX_HASH];
}

struct dblp_txmsg *dblp_tx_find(struct dblp_tx *tx, u64 id)
{
	struct dblp_txmsg *m = *tx_bucket(tx, id);

	while (m && m->id != id)
		m = m->hash_next;
	return m;
}

static void tx_hash(struct dblp_tx *tx, struct dblp_txmsg *m)
{
	if (m->hashed)
		return;
	m->hashed = true;
	m->hash_next = *tx_bucket(tx, m->id);
	*tx_bucket(tx, m->id) = m;
}

static void tx_unhash(struct dblp_tx *tx, struct dblp_txmsg *m)
{
	struct dblp_txmsg **p = tx_bucket(tx, m->id);

	if (!m->hashed)
		return;
	m->hashed = false;
	while (*p != m)
		p = &(*p)->hash_next;
	*p = m->hash_next;
}

static bool tx_in_window(const struct dblp_tx *tx, const struct dblp_txmsg *m)
{
	return m->id - tx->low < DBLP_ID_WINDOW;
}

/* Messages that have begun go before those that have not. */
void dblp_tx_make_ready(struct dblp_tx *tx, struct dblp_txmsg *m)
{
	if (!list_empty(&m->rnode))
		return;
	if (m->state == DBLP_TXM_QUEUED)
		list_add_tail(&m->rnode, &tx->ready);
	else
		list_add(&m->rnode, &tx->ready);
}

static u64 tx_reo_ns(const struct dblp_tx *tx)
{
	u64 w;

	if (tx->rtt.min_rtt == DBLP_NEVER)
		return dblp_rtt_srtt(&tx->rtt) / 4;
	w = div_u64(tx->rtt.min_rtt / 4 * tx->log.reo_pkts, DBLP_REO_PKTS);
	w = min(w, dblp_rtt_srtt(&tx->rtt));
	return clamp_t(u64, w, DBLP_NSEC_PER_USEC, REO_MAX_NS);
}

/* The receiver owes an answer about @m from now on. */
void dblp_tx_await(struct dblp_tx *tx, struct dblp_txmsg *m, u64 now)
{
	struct dblp_txmsg *prev;
	struct list_head *at;

	m->ask_at = now + dblp_rtt_pto(&tx->rtt, m->asks) + tx_reo_ns(tx) + RX_ACK_DELAY_NS;
	list_del_init(&m->wait);
	for (at = tx->waiting.prev; at != &tx->waiting; at = at->prev) {
		prev = list_entry(at, struct dblp_txmsg, wait);
		if (prev->ask_at <= m->ask_at)
			break;
	}
	list_add(&m->wait, at);
}

void dblp_tx_unadmit(struct dblp_tx *tx, struct dblp_txmsg *m)
{
	tx->unadmitted -= m->flying_unadmitted;
	m->flying_unadmitted = 0;
}

/* ---- completion ----------------------------------------------------------------- */

static struct dblp_group *tx_group(struct dblp_tx *tx, u32 id)
{
	u32 i;

	for (i = 0; i < DBLP_TX_GROUPS; i++)
		if (tx->groups[i].id == id)
			return &tx->groups[i];
	return NULL;
}

void dblp_tx_complete(struct dblp_tx *tx, struct dblp_txmsg *m, u8 outcome, u64 now)
{
	struct dblp_group *g;

	tx_unhash(tx, m);
	dblp_tx_unadmit(tx, m);
	list_del_init(&m->rnode);
	list_del_init(&m->wait);
	list_move_tail(&m->node, &tx->done);
	m->state = DBLP_TXM_COMPLETE;
	m->outcome = outcome;
	m->completed_at = now;
	g = m->group ? tx_group(tx, m->group) : NULL;
	if (g && g->gen == m->group_gen)
		dblp_group_settle(g, m->allow,
				  outcome == DBLP_TX_OK ? m->missing_bytes : m->allow);
	tx->low = list_empty(&tx->msgs) ? tx->next_id :
		  list_first_entry(&tx->msgs, struct dblp_txmsg, node)->id;
	switch (outcome) {
	case DBLP_TX_OK:
		tx->stats.ok++;
		break;
	case DBLP_TX_BELOW:
		tx->stats.below++;
		break;
	case DBLP_TX_REFUSED:
		tx->stats.refused++;
		break;
	default:
		tx->stats.unknown++;
		break;
	}
}

void dblp_tx_unknown(struct dblp_tx *tx, struct dblp_txmsg *m, int error, u64 now)
{
	m->error = error;
	m->missing_bytes = m->len - m->acked_bytes;
	m->missing_segs = 0;
	dblp_tx_complete(tx, m, DBLP_TX_UNKNOWN, now);
}

void dblp_tx_kill(struct dblp_tx *tx, int error, u64 now)
{
	struct dblp_txmsg *m;

	if (tx->state == DBLP_TX_DEAD)
		return;
	tx->state = DBLP_TX_DEAD;
	tx->error = error;
	while (!list_empty(&tx->msgs)) {
		m = list_first_entry(&tx->msgs, struct dblp_txmsg, node);
		dblp_tx_unknown(tx, m, error, now);
	}
}

void dblp_tx_reset(struct dblp_tx *tx, const struct dblp_hdr *h, u8 reason, u64 now)
{
	u64 pn = dblp_expand32(h->pn, tx->log.next);

	if (tx->state == DBLP_TX_DEAD)
		return;
	tx->stats.resets++;
	switch (reason) {
	case DBLP_RESET_CLOSED:
		dblp_tx_kill(tx, ECONNRESET, now);
		return;
	case DBLP_RESET_PROTOCOL:
		dblp_tx_kill(tx, EPROTO, now);
		return;
	default:
		break;
	}
	/* In ECHO_SENT our data may have overtaken ECHO, and the answer to it may be late. */
	if (tx->state != DBLP_TX_OPEN || pn < tx->open_pn || pn >= tx->log.next) {
		dblp_tx_note_reject(tx, DBLP_REJECT_RESET_LATE);
		return;
	}
	dblp_tx_kill(tx, ECONNRESET, now);
}

void dblp_tx_close_msg(struct dblp_tx *tx, struct dblp_txmsg *m, u8 reason)
{
	switch (m->state) {
	case DBLP_TXM_CLOSING:
	case DBLP_TXM_PULLING:
	case DBLP_TXM_COMPLETE:
		return;
	default:
		break;
	}
	m->state = DBLP_TXM_CLOSING;
	m->close_reason = reason;
	m->close_due = true;
	m->mark_due = false;
	m->asks = 0;
	list_del_init(&m->wait);
	/* Beyond the window all wait in the order of their ids. */
	if (tx_in_window(tx, m))
		list_del_init(&m->rnode);
	dblp_tx_make_ready(tx, m);
}

void dblp_tx_close_all(struct dblp_tx *tx, u64 now)
{
	struct dblp_txmsg *m;

	(void)now;
	list_for_each_entry(m, &tx->msgs, node)
		dblp_tx_close_msg(tx, m, DBLP_CLOSE_SHUTDOWN);
}

/* ---- submission ----------------------------------------------------------------- */

static u32 tx_allow(struct dblp_tx *tx, struct dblp_txmsg *m)
{
	struct dblp_group *g;

	if (!m->group)
		return (u32)dblp_allowance(m->ppm, m->len);
	g = tx_group(tx, m->group);
	if (!g || g->ppm != m->ppm) {
		if (!g)
			g = &tx->groups[tx->group_next++ % DBLP_TX_GROUPS];
		memset(g, 0, sizeof(*g));
		g->id = m->group;
		g->ppm = m->ppm;
		g->gen = ++tx->group_gen;
	}
	m->group_gen = g->gen;
	return dblp_group_admit(g, m->ppm, m->len, m->seg_size);
}

int dblp_tx_submit(struct dblp_tx *tx, struct dblp_txmsg *m, u64 now)
{
	if (tx->state == DBLP_TX_DEAD)
		return -EPIPE;
	if (list_empty(&tx->msgs)) {
		if (tx->state == DBLP_TX_OPEN)
			tx->cc.ops->restart(&tx->cc, now - max(tx->heard_at, tx->began_at),
					    now);
		tx->began_at = now;
	}
	m->id = tx->next_id++;
	dblp_txmsg_start(m, tx->cfg.seed);
	m->allow = min(tx_allow(tx, m), m->len);
	m->submitted_at = now;
	m->deadline_at = DBLP_NEVER;
	if (m->deadline_us) {
		m->deadline_at = now + m->deadline_us * DBLP_NSEC_PER_USEC;
		tx->deadline_at = min(tx->deadline_at, m->deadline_at);
	}
	m->state = DBLP_TXM_QUEUED;
	INIT_LIST_HEAD(&m->wait);
	INIT_LIST_HEAD(&m->rnode);
	list_add_tail(&m->node, &tx->msgs);
	dblp_tx_make_ready(tx, m);
	tx->stats.msgs++;
	return 0;
}

struct dblp_txmsg *dblp_tx_reap(struct dblp_tx *tx)
{
	struct dblp_txmsg *m = list_first_entry_or_null(&tx->done, struct dblp_txmsg, node);

	if (m)
		list_del_init(&m->node);
	return m;
}

bool dblp_tx_busy(const struct dblp_tx *tx)
{
	return !list_empty(&tx->msgs);
}

bool dblp_tx_idle(const struct dblp_tx *tx, u64 now)
{
	return tx->state == DBLP_TX_DEAD ||
	       (!dblp_tx_busy(tx) && now - max(tx->heard_at, tx->began_at) >= DBLP_TX_IDLE_NS);
}

u16 dblp_tx_seg_size(const struct dblp_tx *tx)
{
	return dblp_seg_size_for(tx->cfg.room);
}

void dblp_tx_set_room(struct dblp_tx *tx, u32 room)
{
	tx->cfg.room = max_t(u32, room, DBLP_ROOM_MIN);
}

u32 dblp_tx_log_wish(const struct dblp_tx *tx, u32 more_segs)
{
	u64 want = tx->log.next - tx->log.una + more_segs + 2 * LOG_RESERVE;
	u32 size = DBLP_SENTLOG_MIN;

	while (size < want && size < DBLP_SENTLOG_MAX)
		size *= 2;
	return size;
}

/* ---- time ----------------------------------------------------------------------- */

static u64 tx_silent_since(const struct dblp_tx *tx)
{
	return max(tx->heard_at, tx->began_at);
}

/* May DATA go now, as far as pacing and congestion control are concerned? */
static bool tx_window(const struct dblp_tx *tx)
{
	return tx->log.inflight + tx->cc.mss <= max_t(u64, tx->cc.inflight_cap, tx->cc.mss) &&
	       tx->log.next - tx->log.una + LOG_RESERVE < tx->log.size;
}

u64 dblp_tx_timer(const struct dblp_tx *tx)
{
	u64 at = DBLP_NEVER;

	if (tx->state == DBLP_TX_DEAD)
		return DBLP_NEVER;
	if (!dblp_tx_busy(tx))
		return min(tx_silent_since(tx) + DBLP_TX_IDLE_NS, tx->probe.at);
	at = tx_silent_since(tx) + tx->cfg.dead_ns;
	if (tx->state == DBLP_TX_INIT_SENT ||
	    (tx->state == DBLP_TX_ECHO_SENT && dblp_sentlog_room(&tx->log)))
		at = min(at, tx->hs_at);
	at = min(at, tx->probe.at);
	at = min(at, tx->deadline_at);
	at = min(at, dblp_sentlog_loss_timer(&tx->log, &tx->rtt));
	if (!list_empty(&tx->waiting))
		at = min(at, list_first_entry(&tx->waiting, struct dblp_txmsg, wait)->ask_at);
	return min(at, dblp_pace_timer(&tx->pace, &tx->cc, &tx->rtt));
}

static void tx_deadlines(struct dblp_tx *tx, u64 now)
{
	struct dblp_txmsg *m;

	tx->deadline_at = DBLP_NEVER;
	list_for_each_entry(m, &tx->msgs, node) {
		if (m->deadline_at <= now) {
			m->deadline_at = DBLP_NEVER;
			dblp_tx_close_msg(tx, m, DBLP_CLOSE_DEADLINE);
		}
		tx->deadline_at = min(tx->deadline_at, m->deadline_at);
	}
}

/* Asks again about messages whose answer is overdue. */
static void tx_ask(struct dblp_tx *tx, u64 now)
{
	struct dblp_txmsg *m;

	while (!list_empty(&tx->waiting)) {
		m = list_first_entry(&tx->waiting, struct dblp_txmsg, wait);
		if (m->ask_at > now)
			return;
		/* Whoever lives answers: this one does not know the message any more. */
		if (++m->unanswered > DBLP_UNANSWERED_MAX) {
			dblp_tx_kill(tx, EPROTO, now);
			return;
		}
		list_del_init(&m->wait);
		m->asks++;
		if (m->state == DBLP_TXM_CLOSING)
			m->close_due = true;
		else
			m->mark_due = true;
		tx->stats.probes++;
		dblp_tx_make_ready(tx, m);
	}
}

void dblp_tx_timeout(struct dblp_tx *tx, u64 now)
{
	if (tx->state == DBLP_TX_DEAD)
		return;
	if (dblp_tx_busy(tx) && now - tx_silent_since(tx) >= tx->cfg.dead_ns) {
		dblp_tx_kill(tx, ETIMEDOUT, now);
		return;
	}
	dblp_sentlog_detect(&tx->log, &tx->rtt, &dblp_tx_sent_events, tx, now);
	if (tx->deadline_at <= now)
		tx_deadlines(tx, now);
	tx_ask(tx, now);
	if (tx->state == DBLP_TX_DEAD)
		return;
	switch (dblp_probe_timeout(&tx->probe, tx->log.inflight && dblp_tx_busy(tx), now)) {
	case DBLP_PROBE_LOST:
		dblp_sentlog_lose_all(&tx->log, &dblp_tx_sent_events, tx);
		tx->cc.ops->on_persistent_loss(&tx->cc, now);
		fallthrough;
	case DBLP_PROBE_ASK:
		/* Nothing can be asked with a full log: give up what is out. */
		if (tx->log.next - tx->log.una + LOG_RESERVE / 2 >= tx->log.size)
			dblp_sentlog_lose_all(&tx->log, &dblp_tx_sent_events, tx);
		tx->ping_due = true;
		tx->stats.probes++;
		break;
	default:
		break;
	}
	if (tx->state == DBLP_TX_ECHO_SENT && tx->hs_at <= now && tx->hs_tries >= HS_ECHO_TRIES) {
		tx->state = DBLP_TX_INIT_SENT;
		tx->hs_tries = 0;
	}
}

/* ---- output --------------------------------------------------------------------- */

static void put_desc(struct dblp_writer *w, const struct dblp_txmsg *m)
{
	struct dblp_frame f = { .type = DBLP_F_DESC };
	struct dblp_f_desc *d = &f.u.desc;

	d->mode = m->mode;
	d->phase = m->phase;
	d->priority = m->priority;
	d->nprot = (u8)m->nprot;
	d->grouped = m->group != 0;
	d->seg_size = m->seg_size;
	d->id = (u32)m->id;
	d->msg_len = m->len;
	d->ppm = m->ppm;
	d->allow = m->allow;
	d->deadline_us = m->deadline_us;
	d->group = m->group;
	d->tag = m->tag;
	memcpy(d->prot, m->prot, m->nprot * sizeof(d->prot[0]));
	dblp_frame_put(w, &f);
}

static void put_mark(struct dblp_tx *tx, struct dblp_writer *w, const struct dblp_txmsg *m,
		     enum dblp_frame_type type)
{
	struct dblp_frame f = { .type = type };

	f.u.mark.reason = type == DBLP_F_CLOSE ? m->close_reason : 0;
	f.u.mark.pass = m->state == DBLP_TXM_BUSY ? 0 : m->pass;
	f.u.mark.id = (u32)m->id;
	f.u.mark.want = m->state == DBLP_TXM_PULLING ? m->want : U64_MAX;
	f.u.mark.reo_us = (u32)div_u64(tx_reo_ns(tx), DBLP_NSEC_PER_USEC);
	dblp_frame_put(w, &f);
}

/* Writes the header of a packet whose frames are in @w, and enters it in the log. */
static struct dblp_sent *tx_seal(struct dblp_tx *tx, struct dblp_writer *w, u32 payload,
				 struct dblp_pkt *pkt, u64 now)
{
	struct dblp_hdr h = { .flow = tx->peer_flow, .low = (u32)tx->low };
	u32 len = w->len + payload;

	h.pn = (u32)tx->log.next;
	h.len = (u16)len;
	dblp_hdr_put(w->p, &h);
	pkt->len = w->len;
	pkt->payload = payload;
	tx->stats.pkts++;
	tx->stats.bytes += len;
	dblp_probe_sent(&tx->probe, &tx->rtt, now);
	return dblp_sentlog_push(&tx->log, len, true, now);
}

/* INIT is stateless at the peer: no number, no log. */
static void tx_build_init(struct dblp_tx *tx, struct dblp_writer *w, struct dblp_pkt *pkt,
			  u64 now)
{
	struct dblp_frame f = { .type = DBLP_F_INIT };
	struct dblp_hdr h = { .low = (u32)tx->low };

	f.u.hello.tx_flow = tx->cfg.flow;
	f.u.hello.incarnation = tx->cfg.incarnation;
	dblp_frame_put(w, &f);
	h.len = (u16)w->len;
	dblp_hdr_put(w->p, &h);
	pkt->len = w->len;
	tx->state = DBLP_TX_INIT_SENT;
	tx->hs_at = now + dblp_rtt_pto(&tx->rtt, tx->hs_backoff++);
	tx->hs_tries++;
	tx->hs_sent_at = now;
	tx->stats.pkts++;
	tx->stats.bytes += w->len;
}

static void tx_build_echo(struct dblp_tx *tx, struct dblp_writer *w, struct dblp_pkt *pkt,
			  u64 now)
{
	struct dblp_frame f = { .type = DBLP_F_ECHO };

	f.u.hello = tx->cookie;
	f.u.hello.incarnation = tx->cfg.incarnation;
	f.u.hello.first_kib = 0;
	dblp_frame_put(w, &f);
	tx->hs_at = now + dblp_rtt_pto(&tx->rtt, tx->hs_backoff++);
	tx->hs_tries++;
	tx_seal(tx, w, 0, pkt, now);
}

static bool tx_handshake(struct dblp_tx *tx, struct dblp_writer *w, struct dblp_pkt *pkt,
			 u64 now)
{
	switch (tx->state) {
	case DBLP_TX_IDLE:
		if (!dblp_tx_busy(tx))
			return false;
		tx_build_init(tx, w, pkt, now);
		return true;
	case DBLP_TX_INIT_SENT:
		if (tx->hs_at > now || !dblp_tx_busy(tx))
			return false;
		tx_build_init(tx, w, pkt, now);
		return true;
	case DBLP_TX_ECHO_SENT:
		if (tx->hs_at > now || !dblp_sentlog_room(&tx->log))
			return false;
		tx_build_echo(tx, w, pkt, now);
		return true;
	default:
		return false;
	}
}

/* After a segment or MARK of @m went out: what comes next for it? */
static void tx_advance(struct dblp_tx *tx, struct dblp_txmsg *m, u64 now)
{
	if (m->state == DBLP_TXM_QUEUED)
		m->state = DBLP_TXM_SENDING;
	if (!dblp_txmsg_pass_over(m) ||
	    (m->state != DBLP_TXM_SENDING && m->state != DBLP_TXM_REPAIR))
		return;
	m->state = DBLP_TXM_MARKED;
	/* One segment needs no MARK: its completion rides in the ACK. */
	if (m->nsegs > 1 || m->pass > 1)
		m->mark_due = true;
	else
		dblp_tx_await(tx, m, now);
}

static void tx_log_ctl(struct dblp_tx *tx, struct dblp_sent *e, struct dblp_txmsg *m,
		       bool desc, bool mark)
{
	/* From here on the peer may judge: DESC and CLOSE alone are enough for that. */
	tx->data_sent = true;
	tx_hash(tx, m);
	e->desc_id = m->id;
	if (desc) {
		e->flags |= DBLP_SENT_DESC;
		m->desc_sent = true;
	}
	if (mark)
		e->flags |= DBLP_SENT_MARK;
}

/* MARK, CLOSE or PULLING probe, with DESC in front until it is acknowledged. */
static bool tx_build_mark(struct dblp_tx *tx, struct dblp_txmsg *m, struct dblp_writer *w,
			  struct dblp_pkt *pkt, u64 now)
{
	bool desc = !m->desc_acked;

	if (!dblp_sentlog_room(&tx->log))
		return false;
	if (desc)
		put_desc(w, m);
	put_mark(tx, w, m, m->close_due ? DBLP_F_CLOSE : DBLP_F_MARK);
	if (m->close_due)
		tx->stats.closes++;
	else
		tx->stats.marks++;
	m->mark_due = false;
	m->close_due = false;
	tx_log_ctl(tx, tx_seal(tx, w, 0, pkt, now), m, desc, true);
	dblp_tx_await(tx, m, now);
	return true;
}

/* Room for a message that the receiver has not yet shown to have admitted. */
static bool tx_flight_room(const struct dblp_tx *tx, const struct dblp_txmsg *m, u32 len)
{
	return m->admitted || !tx->unadmitted ||
	       tx->unadmitted + len <= max(tx->first_flight, tx->budget / 4);
}

static bool tx_build_data(struct dblp_tx *tx, struct dblp_txmsg *m, u32 s, bool repair,
			  struct dblp_writer *w, struct dblp_pkt *pkt, u64 now)
{
	struct dblp_frame f = { .type = DBLP_F_DATA };
	u32 len = dblp_txmsg_seg_len(m, s);
	bool desc = !m->desc_acked && !m->desc_sent;
	struct dblp_sent *e;

	if (desc) {
		put_desc(w, m);
		if (w->len + DBLP_DATA_LEN + len > tx->cfg.room) {
			tx_log_ctl(tx, tx_seal(tx, w, 0, pkt, now), m, true, false);
			dblp_pace_sent(&tx->pace, &tx->cc, &tx->rtt, pkt->len, now);
			return true;
		}
	}
	f.u.data.delta = (u16)(m->id - tx->low);
	f.u.data.seg = s;
	f.u.data.msg_len = m->len;
	f.u.data.seg_size = m->seg_size;
	dblp_frame_put(w, &f);
	dblp_txmsg_sent(m, s, tx->log.next);
	e = tx_seal(tx, w, len, pkt, now);
	e->id = m->id;
	e->seg = s;
	e->flags |= DBLP_SENT_DATA;
	tx_log_ctl(tx, e, m, desc, false);
	pkt->msg = m;
	pkt->seg = s;
	pkt->off = s * m->seg_size;
	m->sent_bytes += len;
	if (!m->admitted) {
		m->flying_unadmitted += len;
		tx->unadmitted += len;
	}
	if (repair) {
		e->flags |= DBLP_SENT_REPAIR;
		m->resent_bytes += len;
		tx->stats.resent_segs++;
		tx->stats.resent_bytes += len;
	} else {
		tx->stats.segs++;
		tx->stats.seg_bytes += len;
	}
	dblp_pace_sent(&tx->pace, &tx->cc, &tx->rtt, w->len + len, now);
	tx_advance(tx, m, now);
	return true;
}

enum tx_try { TRY_BUILT, TRY_NOTHING, TRY_BLOCKED };

static enum tx_try tx_try_msg(struct dblp_tx *tx, struct dblp_txmsg *m, struct dblp_writer *w,
			      struct dblp_pkt *pkt, u64 now)
{
	bool repair;
	u32 s;

	if (!tx_in_window(tx, m))
		return TRY_BLOCKED;
	if (m->close_due || m->mark_due)
		return tx_build_mark(tx, m, w, pkt, now) ? TRY_BUILT : TRY_BLOCKED;
	switch (m->state) {
	case DBLP_TXM_QUEUED:
	case DBLP_TXM_SENDING:
	case DBLP_TXM_REPAIR:
	case DBLP_TXM_MARKED:
		break;
	default:
		return TRY_NOTHING;
	}
	/* A repair that turned out to be in flight already leaves only the MARK. */
	tx_advance(tx, m, now);
	if (m->mark_due)
		return tx_build_mark(tx, m, w, pkt, now) ? TRY_BUILT : TRY_BLOCKED;
	s = dblp_txmsg_next(m, &repair);
	if (s == DBLP_NO_SEG)
		return TRY_NOTHING;
	if (!tx_window(tx) || !tx_flight_room(tx, m, dblp_txmsg_seg_len(m, s)))
		return TRY_BLOCKED;
	if (!dblp_pace_may_send(&tx->pace, now))
		return TRY_BLOCKED;
	tx_build_data(tx, m, s, repair, w, pkt, now);
	return TRY_BUILT;
}

bool dblp_tx_poll(struct dblp_tx *tx, u64 now, u8 *buf, u32 room, struct dblp_pkt *pkt)
{
	struct dblp_writer w = { .p = buf, .size = min(room, tx->cfg.room) };
	struct dblp_frame ping = { .type = DBLP_F_PING };
	struct dblp_txmsg *m, *n;

	memset(pkt, 0, sizeof(*pkt));
	w.len = DBLP_HDR_LEN;
	dblp_pace_begin(&tx->pace, now);
	if (tx->state == DBLP_TX_DEAD)
		return false;
	if (tx_handshake(tx, &w, pkt, now))
		return true;
	if (tx->state != DBLP_TX_ECHO_SENT && tx->state != DBLP_TX_OPEN)
		return false;
	if (tx->ping_due && dblp_sentlog_room(&tx->log)) {
		tx->ping_due = false;
		dblp_frame_put(&w, &ping);
		tx_seal(tx, &w, 0, pkt, now);
		return true;
	}
	list_for_each_entry_safe(m, n, &tx->ready, rnode) {
		switch (tx_try_msg(tx, m, &w, pkt, now)) {
		case TRY_BUILT:
			return true;
		case TRY_NOTHING:
			list_del_init(&m->rnode);
			break;
		case TRY_BLOCKED:
			/* Later ones that have not begun are blocked by the same. */
			if (m->state == DBLP_TXM_QUEUED || !tx_in_window(tx, m))
				return false;
			break;
		}
	}
	if (list_empty(&tx->ready))
		dblp_sentlog_app_limited(&tx->log);
	return false;
}

u32 dblp_tx_fin(struct dblp_tx *tx, u8 reason, u8 *buf, u32 room)
{
	struct dblp_writer w = { .p = buf, .size = room, .len = DBLP_HDR_LEN };
	struct dblp_frame f = { .type = DBLP_F_FIN };
	struct dblp_hdr h = { .flow = tx->peer_flow, .low = (u32)tx->low };

	if (!tx->data_sent || room < DBLP_HDR_LEN)
		return 0;
	f.u.reason.reason = reason;
	if (!dblp_frame_put(&w, &f))
		return 0;
	h.pn = (u32)tx->log.next;
	h.len = (u16)w.len;
	dblp_hdr_put(buf, &h);
	if (dblp_sentlog_room(&tx->log))
		dblp_sentlog_push(&tx->log, w.len, false, tx->began_at);
	return w.len;
}

void dblp_tx_init(struct dblp_tx *tx, const struct dblp_tx_cfg *cfg, u64 now)
{
	memset(tx, 0, sizeof(*tx));
	tx->cfg = *cfg;
	tx->cfg.room = max_t(u32, cfg->room, DBLP_ROOM_MIN);
	tx->next_id = 1;
	tx->low = 1;
	INIT_LIST_HEAD(&tx->msgs);
	INIT_LIST_HEAD(&tx->ready);
	INIT_LIST_HEAD(&tx->waiting);
	INIT_LIST_HEAD(&tx->done);
	dblp_sentlog_init(&tx->log, cfg->log, cfg->log_size);
	dblp_rtt_init(&tx->rtt);
	dblp_cc_init(&tx->cc, cfg->cc, tx->cfg.room, now);
	tx->heard_at = now;
	tx->began_at = now;
	tx->hs_at = DBLP_NEVER;
	dblp_probe_init(&tx->probe);
	tx->deadline_at = DBLP_NEVER;
	tx->first_flight = INIT_FIRST_FLIGHT;
}

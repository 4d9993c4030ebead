// SPDX-License-Identifier: GPL-2.0
/*
 * Driving the core: what follows each packet, message and timeout of a flow.
 *
 * The timer is left alone when it would only have to fire later: then it fires for
 * nothing once and is set anew, which is far rarer than setting it for each packet.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include "flow.h"
#include "message.h"

#define DBLP_RUN_PACKETS	256	/* then others get a turn */
#define DBLP_RETRY_NS		(500 * NSEC_PER_USEC)
#define DBLP_TIMER_MIN_NS	(10 * NSEC_PER_USEC)	/* between two of a flow */

void dblp_timer_kick(struct dblp_flow *f)
{
	hrtimer_start(&f->timer, 0, HRTIMER_MODE_ABS_SOFT);
}

static void dblp_timer_set(struct dblp_flow *f, u64 at, u64 now)
{
	at = max(min(at, f->retry_at), now + DBLP_TIMER_MIN_NS);
	if (at >= f->timer_at)
		return;
	f->timer_at = at;
	hrtimer_start(&f->timer, ns_to_ktime(min_t(u64, at, KTIME_MAX)),
		      HRTIMER_MODE_ABS_SOFT);
	/* That may have put off a kick. */
	if (!f->sender && !list_empty_careful(&dblp_rxflow(f)->grants))
		dblp_timer_kick(f);
}

/* ---- counters ------------------------------------------------------------------- */

static void dblp_count(struct dblp_net *dn, enum dblp_mib mib, u64 now, u64 *seen)
{
	if (now == *seen)
		return;
	dblp_mib_add(dn, mib, now - *seen);
	*seen = now;
}

static void dblp_tx_count(struct dblp_txflow *t)
{
	struct dblp_net *dn = dblp_sk_net(t->f.dsk);
	const struct dblp_tx_stats *s = &t->tx.stats;
	struct dblp_tx_stats *seen = &t->seen;

	dblp_count(dn, DBLP_MIB_SEGS_SENT, s->segs, &seen->segs);
	dblp_count(dn, DBLP_MIB_BYTES_SENT, s->seg_bytes, &seen->seg_bytes);
	dblp_count(dn, DBLP_MIB_SEGS_RETRANSMITTED, s->resent_segs, &seen->resent_segs);
	dblp_count(dn, DBLP_MIB_BYTES_RETRANSMITTED, s->resent_bytes, &seen->resent_bytes);
	dblp_count(dn, DBLP_MIB_PROBES_SENT, s->probes, &seen->probes);
	dblp_count(dn, DBLP_MIB_BUSY_RECEIVED, s->busy, &seen->busy);
	dblp_count(dn, DBLP_MIB_RESETS_RECEIVED, s->resets, &seen->resets);
}

static void dblp_rx_count(struct dblp_rxflow *r)
{
	struct dblp_net *dn = dblp_sk_net(r->f.dsk);
	const struct dblp_rx_stats *s = &r->rx.stats;
	struct dblp_rx_stats *seen = &r->seen;

	dblp_count(dn, DBLP_MIB_SEGS_RECEIVED, s->segs, &seen->segs);
	dblp_count(dn, DBLP_MIB_BYTES_RECEIVED, s->seg_bytes, &seen->seg_bytes);
	dblp_count(dn, DBLP_MIB_NEEDS_SENT, s->needs, &seen->needs);
	dblp_count(dn, DBLP_MIB_BUSY_SENT, s->busy, &seen->busy);
	dblp_count(dn, DBLP_MIB_GRANTS_SENT, s->grants, &seen->grants);
}

/* ---- sender --------------------------------------------------------------------- */

static void dblp_tx_send(struct dblp_txflow *t, u64 now)
{
	struct dblp_flow *f = &t->f;
	struct dblp_pkt pkt;
	int n;
	u8 *p;

	for (n = 0; n < DBLP_RUN_PACKETS; n++) {
		if (dblp_out_full(f->dsk)) {
			dblp_mib_inc(dblp_sk_net(f->dsk), DBLP_MIB_XMIT_HELD);
			f->retry_at = now + DBLP_RETRY_NS;
			return;
		}
		p = dblp_out_room(f, t->room);
		if (!p) {
			f->retry_at = now + DBLP_RETRY_NS;
			return;
		}
		if (!dblp_tx_poll(&t->tx, now, p, t->room, &pkt))
			return;
		if (pkt.payload)
			dblp_txm_copy(dblp_txm(pkt.msg), pkt.off, pkt.payload, p + pkt.len);
		dblp_out_commit(f, pkt.len + pkt.payload, true);
	}
	f->retry_at = now;
}

static void dblp_tx_work(struct dblp_txflow *t, u64 now)
{
	struct dblp_tx *tx = &t->tx;

	dblp_tx_send(t, now);
	if (tx->state == DBLP_TX_OPEN)
		t->icmp = 0;
	if (tx->state == DBLP_TX_DEAD) {
		dblp_mib_inc(dblp_sk_net(t->f.dsk), DBLP_MIB_FLOWS_DIED);
		dblp_flow_unlink(&t->f);
		return;
	}
	if (dblp_tx_idle(tx, now)) {
		dblp_mib_inc(dblp_sk_net(t->f.dsk), DBLP_MIB_FLOWS_IDLE);
		dblp_flow_unlink(&t->f);
		return;
	}
	dblp_timer_set(&t->f, dblp_tx_timer(tx), now);
}

static void dblp_tx_collect(struct dblp_txflow *t, struct list_head *done)
{
	struct dblp_txmsg *m;

	while ((m = dblp_tx_reap(&t->tx)) != NULL) {
		/* Nobody answered, and somebody said why. */
		if (m->outcome == DBLP_TX_UNKNOWN && m->error == ETIMEDOUT && t->icmp)
			m->error = t->icmp;
		list_add_tail(&m->node, done);
	}
	dblp_tx_count(t);
}

/* ---- receiver ------------------------------------------------------------------- */

static void dblp_rx_grants(struct dblp_rxflow *r, u64 now)
{
	struct dblp_sock *dsk = r->f.dsk;
	struct dblp_rxm *w;

	if (list_empty_careful(&r->grants))
		return;
	spin_lock(&dsk->budget_lock);
	while ((w = list_first_entry_or_null(&r->grants, struct dblp_rxm, grant)) != NULL) {
		list_del_init(&w->grant);
		spin_unlock(&dsk->budget_lock);
		/* Only this flow, that is we, can release it. */
		dblp_rx_granted(&r->rx, &w->m, now);
		spin_lock(&dsk->budget_lock);
	}
	spin_unlock(&dsk->budget_lock);
}

static void dblp_rx_work(struct dblp_rxflow *r, u64 now)
{
	struct dblp_flow *f = &r->f;
	struct dblp_rx *rx = &r->rx;
	u32 len, room = rx->cfg.room;
	u8 *p;
	int n;

	dblp_rx_grants(r, now);
	for (n = 0; n < DBLP_RUN_PACKETS; n++) {
		p = dblp_out_room(f, room);
		if (!p) {
			f->retry_at = now + DBLP_RETRY_NS;
			break;
		}
		len = dblp_rx_poll(rx, now, p, room);
		if (!len)
			break;
		dblp_out_commit(f, len, false);
	}
	if (n == DBLP_RUN_PACKETS)
		f->retry_at = now;
	dblp_rx_count(r);
	if (dblp_rx_idle(rx, now)) {
		dblp_mib_inc(dblp_sk_net(f->dsk), DBLP_MIB_FLOWS_IDLE);
		dblp_rx_kill(rx);
		dblp_flow_unlink(f);
		return;
	}
	dblp_timer_set(f, dblp_rx_timer(rx), now);
}

/* ---- both ----------------------------------------------------------------------- */

void dblp_flow_run(struct dblp_flow *f)
	__releases(&f->lock)
{
	bool was_dead = f->dead, died, drain;
	u64 now = f->now;
	struct dblp_txmsg *m, *n;
	LIST_HEAD(done);

	lockdep_assert_held(&f->lock);
	f->retry_at = DBLP_NEVER;
	if (f->sender) {
		if (!f->dead)
			dblp_tx_work(dblp_txflow(f), now);
		dblp_tx_collect(dblp_txflow(f), &done);
	} else if (!f->dead) {
		dblp_rx_work(dblp_rxflow(f), now);
	}
	died = f->dead && !was_dead;
	drain = dblp_out_claim(f);
	spin_unlock(&f->lock);

	if (drain)
		dblp_out_drain(f);
	list_for_each_entry_safe(m, n, &done, node)
		dblp_txm_done(dblp_txm(m), f->id);
	if (died)
		dblp_flow_put(f);
}

enum hrtimer_restart dblp_timer_fn(struct hrtimer *t)
{
	struct dblp_flow *f = container_of(t, struct dblp_flow, timer);
	u64 now;

	now = dblp_flow_lock(f, ktime_get_ns());
	f->timer_at = DBLP_NEVER;
	if (f->dead) {
		spin_unlock(&f->lock);
		return HRTIMER_NORESTART;
	}
	if (f->sender) {
		if (now >= dblp_tx_timer(&dblp_txflow(f)->tx))
			dblp_tx_timeout(&dblp_txflow(f)->tx, now);
	} else {
		if (now >= dblp_rx_timer(&dblp_rxflow(f)->rx))
			dblp_rx_timeout(&dblp_rxflow(f)->rx, now);
	}
	dblp_flow_run(f);
	return HRTIMER_NORESTART;
}

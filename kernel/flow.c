// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: tables, references, birth and death.
 *
 * A flow has a reference of the tables as long as it is not dead.  Softirq finds flows
 * under RCU and needs none; process context that sleeps takes one.  The timer needs none
 * either: it is started only while the flow is not dead.  Its callback may run while the
 * flow dies, so that it cannot be cancelled then; whoever frees the memory waits for it.
 */
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include "flow.h"
#include "message.h"
#include "trace.h"

#define DBLP_LAST_WORD	64	/* room for a packet with FIN or RESET */
#define DBLP_LAST_PACKETS 16	/* of answers repeated before it */

static const struct rhashtable_params dblp_by_id_params = {
	.head_offset		= offsetof(struct dblp_flow, id_node),
	.key_offset		= offsetof(struct dblp_flow, id),
	.key_len		= sizeof_field(struct dblp_flow, id),
	.automatic_shrinking	= true,
};

static const struct rhashtable_params dblp_by_peer_params = {
	.head_offset		= offsetof(struct dblp_flow, peer_node),
	.key_offset		= offsetof(struct dblp_flow, key),
	.key_len		= sizeof_field(struct dblp_flow, key),
	.automatic_shrinking	= true,
};

int dblp_flow_tables_init(struct dblp_endpoint *ep)
{
	int err;

	err = rhashtable_init(&ep->by_id, &dblp_by_id_params);
	if (err)
		return err;
	err = rhashtable_init(&ep->by_peer, &dblp_by_peer_params);
	if (err)
		rhashtable_destroy(&ep->by_id);
	return err;
}

void dblp_flow_tables_exit(struct dblp_endpoint *ep)
{
	rhashtable_destroy(&ep->by_peer);
	rhashtable_destroy(&ep->by_id);
}

struct dblp_flow *dblp_flow_by_id(struct dblp_endpoint *ep, u64 id)
{
	return rhashtable_lookup(&ep->by_id, &id, dblp_by_id_params);
}

struct dblp_flow *dblp_flow_by_peer(struct dblp_endpoint *ep, const struct dblp_addr *addr,
				    u64 id)
{
	struct dblp_peer_key key = { .addr = *addr, .id = id };

	return rhashtable_lookup(&ep->by_peer, &key, dblp_by_peer_params);
}

void dblp_reject(struct dblp_sock *dsk, u64 flow, enum dblp_reject r)
{
	dblp_mib_inc(dblp_sk_net(dsk), DBLP_MIB_REJECT + r - 1);
	trace_dblp_reject(flow, r);
}

/* ---- end ------------------------------------------------------------------------ */

static void dblp_flow_free(struct dblp_flow *f)
{
	struct dblp_sock *dsk = f->dsk;

	/* A callback that ran while the flow died may have left it started. */
	hrtimer_cancel(&f->timer);
	dblp_out_purge(f);
	dblp_path_put(&f->path);
	if (f->sender) {
		kvfree(dblp_txflow(f)->tx.log.e);
		kfree(dblp_txflow(f));
	} else {
		kfree(dblp_rxflow(f));
		dblp_mem_uncharge(dsk, DBLP_MEM_META, sizeof(struct dblp_rxflow));
	}
	sock_put(&dsk->sk);
}

static void dblp_flow_free_rcu(struct rcu_head *rcu)
{
	dblp_flow_free(container_of(rcu, struct dblp_flow, rcu));
}

void dblp_flow_put(struct dblp_flow *f)
{
	if (refcount_dec_and_test(&f->refs))
		call_rcu(&f->rcu, dblp_flow_free_rcu);
}

void dblp_flow_unlink(struct dblp_flow *f)
{
	struct dblp_sock *dsk = f->dsk;

	lockdep_assert_held(&f->lock);
	trace_dblp_flow_end(f->id, f->sender,
			    f->sender ? dblp_txflow(f)->tx.log.delivered :
			    dblp_rxflow(f)->rx.stats.seg_bytes);
	f->dead = true;
	hrtimer_try_to_cancel(&f->timer);
	rhashtable_remove_fast(&dsk->ep.by_peer, &f->peer_node, dblp_by_peer_params);
	rhashtable_remove_fast(&dsk->ep.by_id, &f->id_node, dblp_by_id_params);
	spin_lock(&dsk->flows_lock);
	list_del_rcu(&f->node);
	dsk->nflows--;
	spin_unlock(&dsk->flows_lock);
}

void dblp_flows_each(struct dblp_sock *dsk, void (*fn)(struct dblp_flow *f))
{
	struct dblp_flow *f;
	bool died;

	rcu_read_lock();
	list_for_each_entry_rcu(f, &dsk->flows, node) {
		local_bh_disable();
		dblp_flow_lock(f, ktime_get_ns());
		died = false;
		if (!f->dead) {
			fn(f);
			died = f->dead;
		}
		dblp_flow_run(f);
		local_bh_enable();
		if (died)
			dblp_flow_put(f);
	}
	rcu_read_unlock();
}

/* What a peer may have missed, so that it need not call UNKNOWN what is known here. */
static void dblp_flow_repeat(struct dblp_rxflow *r)
{
	u32 len, room = r->rx.cfg.room;
	u8 *p;
	int n;

	dblp_rx_repeat(&r->rx);
	for (n = 0; n < DBLP_LAST_PACKETS; n++) {
		p = dblp_out_room(&r->f, room);
		len = p ? dblp_rx_poll(&r->rx, r->f.now, p, room) : 0;
		if (!len)
			return;
		dblp_out_commit(&r->f, len, false);
	}
}

/* Packets outside of the core's polling. */
static void dblp_flow_last_word(struct dblp_flow *f)
{
	u32 len;
	u8 *p;

	if (!f->sender && !dblp_rxflow(f)->rx.dead)
		dblp_flow_repeat(dblp_rxflow(f));
	p = dblp_out_room(f, DBLP_LAST_WORD);
	if (!p)
		return;
	if (f->sender) {
		len = dblp_tx_fin(&dblp_txflow(f)->tx, DBLP_FIN_CLOSED, p, DBLP_LAST_WORD);
	} else {
		len = dblp_hs_reset(f->id, 0, DBLP_RESET_CLOSED, p, DBLP_LAST_WORD);
		dblp_mib_inc(dblp_sk_net(f->dsk), DBLP_MIB_RESETS_SENT);
	}
	if (len)
		dblp_out_commit(f, len, false);
}

void dblp_flow_end(struct dblp_flow *f)
{
	dblp_flow_last_word(f);
	if (f->sender)
		dblp_tx_kill(&dblp_txflow(f)->tx, ECANCELED, f->now);
	else
		dblp_rx_kill(&dblp_rxflow(f)->rx);
	dblp_flow_unlink(f);
}

/*
 * The flow stays: its id must outlive the cookies that could open it again, and if it is
 * opened again, what was received before must not be received twice.
 */
void dblp_flow_filter(struct dblp_flow *f)
{
	if (f->sender || dblp_rxflow(f)->rx.dead || !dblp_is_deaf_to(f->dsk, &f->key.addr))
		return;
	dblp_flow_last_word(f);
	dblp_rx_kill(&dblp_rxflow(f)->rx);
}

/* SHUT_RD, or connected to another. */
static bool dblp_filters(const struct dblp_sock *dsk, const struct dblp_addr *peer)
{
	lockdep_assert_held(&dsk->flows_lock);
	return dsk->deaf || (dsk->connected && !dblp_addr_equal(&dsk->peer, peer));
}

bool dblp_is_deaf_to(struct dblp_sock *dsk, const struct dblp_addr *peer)
{
	bool deaf;

	spin_lock_bh(&dsk->flows_lock);
	deaf = dsk->closing || dblp_filters(dsk, peer);
	spin_unlock_bh(&dsk->flows_lock);
	return deaf;
}

/* ---- birth ---------------------------------------------------------------------- */

static void dblp_flow_init(struct dblp_flow *f, struct dblp_sock *dsk, bool sender,
			   const struct dblp_addr *peer, u64 peer_id)
{
	f->dsk = dsk;
	sock_hold(&dsk->sk);
	f->sender = sender;
	f->key.addr = *peer;
	f->key.id = peer_id;
	refcount_set(&f->refs, 1);
	spin_lock_init(&f->lock);
	f->timer_at = DBLP_NEVER;
	f->retry_at = DBLP_NEVER;
	dblp_hrtimer_init(&f->timer, dblp_timer_fn);
	__skb_queue_head_init(&f->out.queue);
}

static int dblp_flow_list(struct dblp_flow *f)
{
	struct dblp_sock *dsk = f->dsk;
	int err = 0;

	spin_lock_bh(&dsk->flows_lock);
	if (dsk->closing) {
		err = -EPIPE;
	} else if (!f->sender && dblp_filters(dsk, &f->key.addr)) {
		err = -EPIPE;	/* since the packet was let in */
	} else if (dsk->nflows >= DBLP_FLOWS_MAX) {
		err = -ENOBUFS;
	} else {
		dsk->nflows++;
		list_add_tail_rcu(&f->node, &dsk->flows);
	}
	spin_unlock_bh(&dsk->flows_lock);
	return err;
}

static void dblp_flow_unlist(struct dblp_flow *f)
{
	struct dblp_sock *dsk = f->dsk;

	spin_lock_bh(&dsk->flows_lock);
	list_del_rcu(&f->node);
	dsk->nflows--;
	spin_unlock_bh(&dsk->flows_lock);
}

/*
 * Makes a new flow known; its lock is held, so nobody can do anything with it before that
 * is given back.  -EEXIST: somebody else was first; @other is what is there.
 */
static int dblp_flow_link(struct dblp_flow *f, struct dblp_flow **other)
{
	struct dblp_endpoint *ep = &f->dsk->ep;
	struct dblp_flow *old;
	int err;

	lockdep_assert_held(&f->lock);
	err = dblp_flow_list(f);
	if (err)
		return err;
	old = rhashtable_lookup_get_insert_fast(&ep->by_peer, &f->peer_node,
						dblp_by_peer_params);
	if (old) {
		err = IS_ERR(old) ? PTR_ERR(old) : -EEXIST;
		*other = IS_ERR(old) ? NULL : old;
		goto err_peer;
	}
	err = rhashtable_lookup_insert_fast(&ep->by_id, &f->id_node, dblp_by_id_params);
	if (err) {
		*other = NULL;
		goto err_id;
	}
	dblp_mib_inc(dblp_sk_net(f->dsk), DBLP_MIB_FLOWS_OPENED);
	return 0;

err_id:
	rhashtable_remove_fast(&ep->by_peer, &f->peer_node, dblp_by_peer_params);
err_peer:
	f->dead = true;
	dblp_flow_unlist(f);
	return err;
}

static void dblp_tx_reject(void *ctx, enum dblp_reject r)
{
	struct dblp_flow *f = ctx;

	dblp_reject(f->dsk, f->id, r);
}

static struct dblp_txflow *dblp_txflow_new(struct dblp_sock *dsk,
					   const struct dblp_addr *peer)
{
	struct dblp_tx_cfg cfg = {
		.incarnation	= dsk->ep.hs.incarnation,
		.dead_ns	= READ_ONCE(dsk->dead_ms) * DBLP_NSEC_PER_MSEC,
		.cc		= READ_ONCE(dsk->cc),
		.log_size	= DBLP_SENTLOG_MIN,
		.reject		= dblp_tx_reject,
	};
	struct dblp_path path = { };
	struct dblp_txflow *t;
	int err;

	if (!ipv6_addr_any(&dsk->ep.local.ip) &&
	    dblp_addr_is_v4(&dsk->ep.local) == dblp_addr_is_v4(peer))
		path.saddr = dsk->ep.local.ip;
	err = dblp_path_find(dsk, peer, &path);
	if (err)
		return ERR_PTR(err);

	t = kzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	cfg.log = kvcalloc(cfg.log_size, sizeof(*cfg.log), GFP_KERNEL_ACCOUNT);
	if (!t || !cfg.log) {
		kvfree(cfg.log);
		kfree(t);
		dblp_path_put(&path);
		return ERR_PTR(-ENOMEM);
	}
	dblp_flow_init(&t->f, dsk, true, peer, 0);
	do {
		get_random_bytes(&t->f.id, sizeof(t->f.id));
	} while (!t->f.id);
	t->f.path = path;
	cfg.flow = t->f.id;
	get_random_bytes(&cfg.seed, sizeof(cfg.seed));
	cfg.room = path.room;
	t->room = path.room;
	cfg.ctx = &t->f;
	dblp_tx_init(&t->tx, &cfg, ktime_get_ns());
	if (READ_ONCE(dsk->rate))
		dblp_cc_set_fixed_rate(&t->tx.cc, READ_ONCE(dsk->rate));
	return t;
}

struct dblp_txflow *dblp_txflow_get(struct dblp_sock *dsk, const struct dblp_addr *peer)
{
	struct dblp_flow *f, *other;
	struct dblp_txflow *t;
	int err;

	for (;;) {
		rcu_read_lock();
		f = dblp_flow_by_peer(&dsk->ep, peer, 0);
		if (f && !refcount_inc_not_zero(&f->refs))
			f = NULL;
		rcu_read_unlock();
		if (f)
			return dblp_txflow(f);

		t = dblp_txflow_new(dsk, peer);
		if (IS_ERR(t))
			return t;
		refcount_inc(&t->f.refs);
		local_bh_disable();
		dblp_flow_lock(&t->f, ktime_get_ns());
		err = dblp_flow_link(&t->f, &other);
		if (err)
			spin_unlock(&t->f.lock);
		else
			dblp_flow_run(&t->f);	/* ends when nothing is ever sent */
		local_bh_enable();
		if (!err)
			return t;
		/* Seen by nobody but readers under RCU. */
		dblp_flow_put(&t->f);
		dblp_flow_put(&t->f);
		if (err != -EEXIST)
			return ERR_PTR(err);
	}
}

u32 dblp_first_flight_kib(struct dblp_sock *dsk)
{
	u64 free;

	spin_lock(&dsk->budget_lock);
	dsk->budget.limit = dblp_recv_limit(dsk);
	free = dblp_budget_free(&dsk->budget);
	spin_unlock(&dsk->budget_lock);
	return min_t(u64, DBLP_FIRST_FLIGHT_KIB,
		     div_u64(free >> 10, READ_ONCE(dsk->nflows) + 1));
}

static struct dblp_rxflow *dblp_rxflow_new(struct dblp_sock *dsk,
					   const struct dblp_addr *peer,
					   const struct in6_addr *local,
					   const struct dblp_f_hello *echo, u64 rtt, u64 now)
{
	struct dblp_rx_cfg cfg = {
		.flow		= echo->rx_flow,
		.peer_flow	= echo->tx_flow,
		.incarnation	= dsk->ep.hs.incarnation,
		.dead_ns	= READ_ONCE(dsk->dead_ms) * DBLP_NSEC_PER_MSEC,
		.limit		= dblp_max_message(dsk),
		.first_kib	= dblp_first_flight_kib(dsk),
		.rtt_ns		= rtt,
		.ops		= &dblp_rx_ops,
	};
	struct dblp_path path = { .saddr = *local };
	struct dblp_rxflow *r;

	if (dblp_mem_charge(dsk, DBLP_MEM_META, sizeof(*r)))
		return NULL;
	r = kzalloc(sizeof(*r), GFP_ATOMIC | __GFP_NOWARN);
	if (!r || dblp_path_find(dsk, peer, &path)) {
		kfree(r);
		dblp_mem_uncharge(dsk, DBLP_MEM_META, sizeof(*r));
		return NULL;
	}
	dblp_flow_init(&r->f, dsk, false, peer, echo->tx_flow);
	r->f.id = echo->rx_flow;
	r->f.now = now;
	r->f.path = path;
	cfg.room = path.room;
	INIT_LIST_HEAD(&r->grants);
	dblp_rx_init(&r->rx, &cfg, now);
	return r;
}

struct dblp_rxflow *dblp_rxflow_open(struct dblp_sock *dsk, const struct dblp_addr *peer,
				     const struct in6_addr *local,
				     const struct dblp_f_hello *echo, u64 rtt, u64 now)
{
	struct dblp_flow *other;
	struct dblp_rxflow *r;
	int err;

	r = dblp_rxflow_new(dsk, peer, local, echo, rtt, now);
	if (!r) {
		dblp_reject(dsk, echo->rx_flow, DBLP_REJECT_MEMORY);
		return NULL;
	}
	spin_lock(&r->f.lock);
	err = dblp_flow_link(&r->f, &other);
	spin_unlock(&r->f.lock);
	if (!err)
		return r;
	dblp_flow_put(&r->f);
	/* Another CPU opened it for the same ECHO. */
	if (err == -EEXIST && other && other->id == echo->rx_flow)
		return dblp_rxflow(other);
	dblp_reject(dsk, echo->rx_flow, err == -ENOBUFS ? DBLP_REJECT_FLOWS :
		    err == -EPIPE ? DBLP_REJECT_CLOSED :
		    err == -EEXIST ? DBLP_REJECT_HANDSHAKE : DBLP_REJECT_MEMORY);
	return NULL;
}

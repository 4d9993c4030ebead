// SPDX-License-Identifier: GPL-2.0
/* What the core's receiver asks for.  All of it runs under flow->lock. */
#include "flow.h"
#include "message.h"
#include "trace.h"

static struct dblp_rxflow *dblp_rxflow_of(struct dblp_rx *rx)
{
	return container_of(rx, struct dblp_rxflow, rx);
}

static struct dblp_rxmsg *dblp_rx_open(struct dblp_rx *rx, u32 msg_len, u32 seg_size,
				       u32 nsegs)
{
	struct dblp_flow *f = &dblp_rxflow_of(rx)->f;
	struct dblp_rxm *r;

	r = dblp_rxm_new(f->dsk, nsegs);
	if (!r)
		return NULL;
	r->flow = f;
	r->peer = f->key.addr;
	return &r->m;
}

static bool dblp_rx_claim(struct dblp_rx *rx, struct dblp_rxmsg *m, u64 bytes)
{
	struct dblp_sock *dsk = dblp_rxm(m)->dsk;
	bool held;

	spin_lock(&dsk->budget_lock);
	dsk->budget.limit = dblp_recv_limit(dsk);
	held = dblp_budget_claim(&dsk->budget, &m->claim, bytes);
	spin_unlock(&dsk->budget_lock);
	return held;
}

static int dblp_rx_store(struct dblp_rx *rx, struct dblp_rxmsg *m,
			 const struct dblp_f_data *data, void *pkt)
{
	const struct dblp_rx_pkt *p = pkt;

	return dblp_rxm_store(dblp_rxm(m), data->seg, p->skb, p->off + data->off, data->len);
}

static void dblp_rx_judged(struct dblp_rx *rx, struct dblp_rxmsg *m)
{
	struct dblp_flow *f = &dblp_rxflow_of(rx)->f;
	bool ok = m->verdict == DBLP_VERDICT_OK;
	struct dblp_net *dn = dblp_sk_net(f->dsk);
	struct dblp_rxm *r = dblp_rxm(m);

	trace_dblp_msg_judged(f->id, m->id, m->verdict, m->len, m->missing, m->miss.set,
			      m->judged_at - m->opened_at);
	if (!ok && !READ_ONCE(f->dsk->partial)) {
		dblp_mib_inc(dn, DBLP_MIB_MSGS_UNWANTED);
		dblp_rxm_drop(r);
		return;
	}
	dblp_mib_inc(dn, DBLP_MIB_MSGS_RECEIVED);
	if (ok)
		dblp_mib_add(dn, DBLP_MIB_BYTES_TOLERATED, m->missing);
	else
		dblp_mib_inc(dn, DBLP_MIB_MSGS_PARTIAL);
	dblp_rxm_unwait(r);
	r->queued = true;
	refcount_inc(&r->item.refs);
	dblp_enqueue(f->dsk, &r->item);
}

static void dblp_rx_release(struct dblp_rx *rx, struct dblp_rxmsg *m)
{
	struct dblp_rxm *r = dblp_rxm(m);

	if (!r->queued)
		dblp_rxm_drop(r);
	dblp_item_put(&r->item);
}

static u32 dblp_rx_free_kib(struct dblp_rx *rx)
{
	struct dblp_sock *dsk = dblp_rxflow_of(rx)->f.dsk;
	u64 free;

	spin_lock(&dsk->budget_lock);
	free = dblp_budget_free(&dsk->budget);
	spin_unlock(&dsk->budget_lock);
	return min_t(u64, free >> 10, U32_MAX);
}

static void dblp_rx_reject(struct dblp_rx *rx, enum dblp_reject r)
{
	struct dblp_flow *f = &dblp_rxflow_of(rx)->f;

	dblp_reject(f->dsk, f->id, r);
}

const struct dblp_rx_ops dblp_rx_ops = {
	.open		= dblp_rx_open,
	.claim		= dblp_rx_claim,
	.store		= dblp_rx_store,
	.judged		= dblp_rx_judged,
	.release	= dblp_rx_release,
	.free_kib	= dblp_rx_free_kib,
	.reject		= dblp_rx_reject,
};

// SPDX-License-Identifier: GPL-2.0
/* What an ACK told a sender, in the form in which the tracepoint gives it away. */
#include "flow.h"
#include "sample.h"
#include "trace.h"

static void dblp_sample_fill(const struct dblp_txflow *t, struct dblp_rate_info *info)
{
	const struct dblp_flow *f = &t->f;
	const struct dblp_tx *tx = &t->tx;
	const struct dblp_rate_sample *rs = &tx->sample;
	const struct sock *sk = &f->dsk->sk;

	lockdep_assert_held(&f->lock);
	*info = (struct dblp_rate_info){
		.size		= sizeof(*info),
		.pid		= f->dsk->pid,
		.flow		= f->id,
		.netns_cookie	= sock_net(sk)->net_cookie,
		.inode		= f->dsk->ino,
		.time_ns	= f->now,
		.delivered	= rs->delivered,
		.interval_ns	= rs->interval_ns,
		.rtt_ns		= rs->rtt_ns,
		.srtt_ns	= dblp_rtt_srtt(&tx->rtt),
		.min_rtt_ns	= tx->rtt.min_rtt == DBLP_NEVER ? 0 : tx->rtt.min_rtt,
		.acked		= rs->acked,
		.lost		= rs->lost,
		.inflight	= rs->inflight,
		.pacing_rate	= tx->cc.pacing_rate,
		.inflight_cap	= tx->cc.inflight_cap,
		.total_delivered = tx->log.delivered,
		.ce		= rs->ce,
		.loss_ppm	= tx->log.loss_ppm,
		.tolerance_ppm	= t->ppm,
		.app_limited	= rs->app_limited,
		.phase		= t->phase,
		.family		= dblp_addr_is_v4(&f->key.addr) ? AF_INET : AF_INET6,
		.local_port	= ntohs(f->dsk->ep.local.port),
		.peer_port	= ntohs(f->key.addr.port),
	};
	memcpy(info->local, &f->path.saddr, sizeof(info->local));
	memcpy(info->peer, &f->key.addr.ip, sizeof(info->peer));
}

/* Apart, so that the structure is on no stack but when somebody looks. */
noinline void __dblp_sample_trace(struct dblp_txflow *t)
{
	struct dblp_rate_info info;

	dblp_sample_fill(t, &info);
	trace_dblp_rate_sample(&info);
}

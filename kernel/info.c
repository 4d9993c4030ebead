// SPDX-License-Identifier: GPL-2.0
/* What a sender knows of its flow, for DBLP_SO_INFO. */
#include "flow.h"
#include "info.h"

static u8 dblp_info_state(struct dblp_flow *f)
{
	if (f->dead)
		return DBLP_FLOW_DEAD;
	switch (dblp_txflow(f)->tx.state) {
	case DBLP_TX_OPEN:
		return DBLP_FLOW_OPEN;
	case DBLP_TX_DEAD:
		return DBLP_FLOW_DEAD;
	default:
		return DBLP_FLOW_HANDSHAKE;
	}
}

static void dblp_info_fill(struct dblp_flow *f, struct dblp_info *info)
{
	const struct dblp_tx *tx = &dblp_txflow(f)->tx;
	const struct dblp_tx_stats *s = &tx->stats;

	lockdep_assert_held(&f->lock);
	info->state = dblp_info_state(f);
	info->app_limited = tx->sample.app_limited;
	info->seg_size = dblp_tx_seg_size(tx);
	info->flow = f->id;
	info->srtt_ns = tx->rtt.srtt;
	info->rttvar_ns = tx->rtt.rttvar;
	info->min_rtt_ns = tx->rtt.min_rtt == DBLP_NEVER ? 0 : tx->rtt.min_rtt;
	if (tx->sample.interval_ns)
		info->delivery_rate = mul_u64_u64_div_u64(tx->sample.delivered, NSEC_PER_SEC,
							  tx->sample.interval_ns);
	info->pacing_rate = tx->cc.pacing_rate;
	info->inflight = tx->log.inflight;
	info->inflight_cap = tx->cc.inflight_cap;
	info->peer_budget = tx->budget;
	info->pkts_sent = s->pkts;
	info->bytes_sent = s->bytes;
	info->bytes_delivered = tx->log.delivered;
	info->segs_sent = s->segs;
	info->segs_retransmitted = s->resent_segs;
	info->data_sent = s->seg_bytes;
	info->data_retransmitted = s->resent_bytes;
	info->probes = s->probes;
	info->msgs_sent = s->msgs;
	info->msgs_ok = s->ok;
	info->msgs_below = s->below;
	info->msgs_refused = s->refused;
	info->msgs_unknown = s->unknown;
	info->loss_ppm = tx->log.loss_ppm;
}

int dblp_info_get(struct dblp_sock *dsk, struct dblp_info *info)
{
	struct dblp_flow *f;

	if (!dsk->connected)
		return -ENOTCONN;
	memset(info, 0, sizeof(*info));
	rcu_read_lock();
	f = dblp_is_bound(dsk) ? dblp_flow_by_peer(&dsk->ep, &dsk->peer, 0) : NULL;
	if (f) {
		spin_lock_bh(&f->lock);
		dblp_info_fill(f, info);
		spin_unlock_bh(&f->lock);
	}
	rcu_read_unlock();
	return 0;
}

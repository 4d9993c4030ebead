// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * "bdp": the model of the path: bottleneck rate, length, and how much in flight beside
 * their product the hosts at its ends need.
 */
#include "cc_bdp_priv.h"

/* Packets above gain * BDP: an ACK comes for two packets, one more is on its way. */
#define QUANTUM_PKTS		3
/* With UP_CAP our own queue is one RTprop and all of these at most; a quarter for bursts. */
#define OWN_NUM			5
#define OWN_DEN			4
/* Rounds in which an ACK burst is remembered, at least; at most twice that. */
#define EXTRA_ROUNDS		5
/* A host that holds ACKs longer than this, ns, and more than a BDP of them, is not kept busy. */
#define EXTRA_MAX_NS		(10 * DBLP_NSEC_PER_MSEC)

/* What must be sent, bytes/s, for BtlBw to arrive. */
u64 dblp_bdp_send_rate(const struct dblp_cc *cc)
{
	return div_u64(cc->btlbw * PPM, PPM - cc->u.bdp.free_ppm);
}

/* One BDP, bytes. */
u64 dblp_bdp_bytes(const struct dblp_cc *cc)
{
	return dblp_cc_bytes(dblp_bdp_send_rate(cc), cc->u.bdp.rtprop);
}

/* In flight beside the BDP: packets that wait for an ACK, ACKs that come in bursts. */
u64 dblp_bdp_slack(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;

	return QUANTUM_PKTS * cc->mss + max(b->extra[0], b->extra[1]);
}

/* And in the delay that hosts may add under load. */
u64 dblp_bdp_lag(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;

	return dblp_cc_bytes(cc->btlbw, min(dblp_bdp_queue_delay(b, b->srtt), b->lag_ns));
}

static void bw_find(struct dblp_cc *cc)
{
	u32 i;

	cc->btlbw = 0;
	for (i = 0; i < DBLP_BDP_BW_ROUNDS; i++)
		cc->btlbw = max(cc->btlbw, cc->u.bdp.bw[i]);
}

void dblp_bdp_bw_set(struct dblp_cc *cc, u64 bw)
{
	struct dblp_bdp *b = &cc->u.bdp;

	memset(b->bw, 0, sizeof(b->bw));
	b->bw[b->bw_slot] = bw;
	cc->btlbw = bw;
}

u64 dblp_bdp_own_queue(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;
	u64 own = b->rtprop + 2 * b->lag_ns;

	if (cc->btlbw)
		own += div64_u64(dblp_bdp_slack(cc) * DBLP_NSEC_PER_SEC, cc->btlbw);
	return own / OWN_DEN * OWN_NUM;
}

void dblp_bdp_bw_sample(struct dblp_cc *cc, const struct dblp_rate_sample *rs)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 bw;

	if (!rs->interval_ns)
		return;
	bw = dblp_cc_rate(rs->delivered, rs->interval_ns);
	/* A sample of an idle application can only be too low. */
	if (rs->app_limited && bw < cc->btlbw)
		return;
	b->round_bw = max(b->round_bw, bw);
	if (b->collapsed)
		return;
	b->bw[b->bw_slot] = max(b->bw[b->bw_slot], bw);
	cc->btlbw = max(cc->btlbw, bw);
}

/* Rounds that said nothing about the bandwidth do not age the filter. */
void dblp_bdp_bw_round(struct dblp_cc *cc)
{
	struct dblp_bdp *b = &cc->u.bdp;

	if (!b->round_bw || b->collapsed)
		return;
	b->bw_slot = (b->bw_slot + 1) % DBLP_BDP_BW_ROUNDS;
	b->bw[b->bw_slot] = 0;
	bw_find(cc);
}

void dblp_bdp_update_rtprop(struct dblp_bdp *b, const struct dblp_rate_sample *rs,
			    const struct dblp_rtt *rtt)
{
	b->srtt = dblp_rtt_srtt(rtt);
	if (rtt->min_rtt == DBLP_NEVER)
		return;
	if (rs->rtt_ns && rs->rtt_ns < b->rtprop_floor)
		b->rtprop_floor = rs->rtt_ns;
	b->rtprop = max(rtt->min_rtt, b->rtprop_floor);
}

/* Bytes acknowledged faster than BtlBw, in one go: ACKs that were held together. */
void dblp_bdp_update_extra(struct dblp_cc *cc, const struct dblp_rate_sample *rs, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 expected = dblp_cc_bytes(cc->btlbw, now - b->extra_at);
	u64 most;

	if (b->extra_acked <= expected) {
		b->extra_acked = 0;
		b->extra_at = now;
		expected = 0;
	}
	b->extra_acked += rs->acked;
	if (b->round >= b->extra_round + EXTRA_ROUNDS) {
		b->extra[1] = b->extra[0];
		b->extra[0] = 0;
		b->extra_round = b->round;
	}
	if (b->extra_acked <= expected)
		return;
	most = max(dblp_bdp_bytes(cc), dblp_cc_bytes(cc->btlbw, EXTRA_MAX_NS));
	b->extra[0] = max(b->extra[0], min(b->extra_acked - expected, most));
}

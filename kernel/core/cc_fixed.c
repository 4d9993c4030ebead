// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * "fixed": the rate that the administrator sets, whatever the network says.  For labs
 * and reserved links.  What may be in flight only bounds memory: twice what the rate
 * moves in a round trip and the time an ACK may be late.
 */
#include "cc.h"

/* Before a rate is set, bytes/s: 10 Mb/s, harmless on every network it may meet. */
#define FIXED_DEFAULT	1250000ULL
/* In flight at least, packets: one largest GSO burst. */
#define FIXED_CAP_PKTS	64ULL
/* How late an ACK may be for reasons other than the path, ns. */
#define FIXED_SLACK_NS	(10 * DBLP_NSEC_PER_MSEC)

static void fixed_update(struct dblp_cc *cc, u64 srtt)
{
	cc->pacing_rate = cc->u.fixed.rate;
	cc->inflight_cap = max_t(u64, 2 * dblp_cc_bytes(cc->u.fixed.rate, srtt + FIXED_SLACK_NS),
				 FIXED_CAP_PKTS * cc->mss);
}

static void fixed_init(struct dblp_cc *cc, u32 mss, u64 now)
{
	cc->u.fixed.rate = FIXED_DEFAULT;
	fixed_update(cc, DBLP_RTT_INITIAL_NS);
}

static void fixed_on_ack(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
			 const struct dblp_rtt *rtt, u64 total_delivered, u64 now)
{
	/* For the statistics only. */
	if (rs->interval_ns)
		cc->btlbw = dblp_cc_rate(rs->delivered, rs->interval_ns);
	fixed_update(cc, dblp_rtt_srtt(rtt));
}

static void fixed_on_persistent_loss(struct dblp_cc *cc, u64 now)
{
}

static void fixed_restart(struct dblp_cc *cc, u64 idle_ns, u64 now)
{
}

void dblp_cc_set_fixed_rate(struct dblp_cc *cc, u64 rate)
{
	if (cc->ops != &dblp_cc_fixed)
		return;
	cc->u.fixed.rate = clamp_t(u64, rate, 1, DBLP_CC_RATE_MAX);
	fixed_update(cc, DBLP_RTT_INITIAL_NS);
}

const struct dblp_cc_ops dblp_cc_fixed = {
	.name = "fixed",
	.init = fixed_init,
	.on_ack = fixed_on_ack,
	.on_persistent_loss = fixed_on_persistent_loss,
	.restart = fixed_restart,
};

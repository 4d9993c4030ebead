// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Round-trip estimation: RFC 6298 smoothing on samples corrected for the peer's ACK
 * delay as in RFC 9002 §5, a windowed minimum, and the probe time-out.
 */
#include "rtt.h"
#include "ackset.h"	/* DBLP_ACK_DELAY_NS */

/* Shares of a sample in srtt and rttvar, as in RFC 6298. */
#define SRTT_SHIFT	3
#define RTTVAR_SHIFT	2
/* The bound on the ACK delay falls by 1/16 per sample: a slow patch is soon forgotten. */
#define DELAY_SHIFT	4

void dblp_rtt_init(struct dblp_rtt *r)
{
	memset(r, 0, sizeof(*r));
	r->min_rtt = DBLP_NEVER;
	r->next_rtt = DBLP_NEVER;
}

/*
 * The minimum expires after the window.  Its successor is not whatever sample comes
 * next, which may have met our own queue, but the smallest of the last half window.
 */
static void update_min(struct dblp_rtt *r, u64 rtt, u64 now)
{
	if (rtt <= r->min_rtt) {
		r->min_rtt = rtt;
		r->min_at = now;
		r->next_rtt = DBLP_NEVER;
		return;
	}
	if (now - r->min_at <= DBLP_MIN_RTT_WIN_NS / 2)
		return;
	if (rtt <= r->next_rtt) {
		r->next_rtt = rtt;
		r->next_at = now;
	}
	if (now - r->min_at > DBLP_MIN_RTT_WIN_NS) {
		r->min_rtt = r->next_rtt;
		r->min_at = r->next_at;
		r->next_rtt = DBLP_NEVER;
	}
}

void dblp_rtt_sample(struct dblp_rtt *r, u64 rtt, u64 ack_delay, u64 now)
{
	u64 adjusted, dev;

	rtt = clamp_t(u64, rtt, 1, DBLP_RTT_MAX_NS);
	update_min(r, rtt, now);
	r->latest = rtt;

	r->ack_delay -= r->ack_delay >> DELAY_SHIFT;
	r->ack_delay = max_t(u64, r->ack_delay, min_t(u64, ack_delay, DBLP_ACK_DELAY_NS));

	/* What the peer says is not believed where it would undercut the minimum. */
	adjusted = rtt;
	if (ack_delay <= rtt && rtt - ack_delay >= r->min_rtt)
		adjusted = rtt - ack_delay;

	if (!r->srtt) {
		r->srtt = adjusted;
		r->rttvar = adjusted / 2;
		return;
	}
	dev = adjusted > r->srtt ? adjusted - r->srtt : r->srtt - adjusted;
	r->rttvar = r->rttvar - (r->rttvar >> RTTVAR_SHIFT) + (dev >> RTTVAR_SHIFT);
	r->srtt = r->srtt - (r->srtt >> SRTT_SHIFT) + (adjusted >> SRTT_SHIFT);
	r->srtt = max_t(u64, r->srtt, 1);
}

u64 dblp_rtt_srtt(const struct dblp_rtt *r)
{
	return r->srtt ? r->srtt : DBLP_RTT_INITIAL_NS;
}

u64 dblp_rtt_pto(const struct dblp_rtt *r, u32 backoff)
{
	u64 srtt = dblp_rtt_srtt(r);
	u64 var = r->srtt ? r->rttvar : srtt / 2;
	u64 delay, pto;

	/* The peer may hold an ACK for a quarter of the round trip, or as it did lately. */
	delay = min_t(u64, srtt / 4, DBLP_ACK_DELAY_NS);
	delay = max_t(u64, delay, r->ack_delay);
	pto = max_t(u64, srtt + 4 * var + delay, DBLP_PTO_MIN_NS);
	/* From 200 us to 1 s are 13 doublings. */
	pto <<= min_t(u32, backoff, 13);
	return min_t(u64, pto, DBLP_PTO_MAX_NS);
}

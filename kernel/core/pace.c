// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Whoever is late catches up in one burst, as far as its credit reaches: two packets, a
 * quarter of the round trip but a millisecond at most, or as much as this host's timers
 * have been late.  Less would let the rate fall with each stall, and the bandwidth that is
 * measured with it.  What the congestion control lets fly bounds the burst further.
 */
#include "pace.h"

/* A timer may be set later by so much, so that one wake-up sends several packets. */
#define QUANTUM_NS	(250 * DBLP_NSEC_PER_USEC)
#define CREDIT_PKTS	2
#define CREDIT_RTT_NS	(1 * DBLP_NSEC_PER_MSEC)
#define CREDIT_LATE_NS	(8 * DBLP_NSEC_PER_MSEC)
/* Lateness is forgotten by an eighth per time that we wait. */
#define LATE_SHIFT	3

static u64 credit(const struct dblp_pace *p, const struct dblp_cc *cc,
		  const struct dblp_rtt *rtt)
{
	u64 least = p->late;
	u64 share = 0;

	if (cc->pacing_rate)
		least = max(least, div64_u64(CREDIT_PKTS * (u64)cc->mss * DBLP_NSEC_PER_SEC,
					     cc->pacing_rate));
	if (rtt->min_rtt != DBLP_NEVER)
		share = min_t(u64, rtt->min_rtt / 4, CREDIT_RTT_NS);
	return max(least, share);
}

void dblp_pace_begin(struct dblp_pace *p, u64 now)
{
	/* An ACK may wake us before the timer does: then nothing is known. */
	if (p->waiting && now >= p->send_at) {
		p->late -= p->late >> LATE_SHIFT;
		p->late = max_t(u64, p->late, min_t(u64, now - p->send_at, CREDIT_LATE_NS));
	}
	p->waiting = false;
}

bool dblp_pace_may_send(struct dblp_pace *p, u64 now)
{
	p->waiting = p->send_at > now;
	return !p->waiting;
}

void dblp_pace_sent(struct dblp_pace *p, const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		    u32 len, u64 now)
{
	u64 most;

	if (!cc->pacing_rate) {
		p->send_at = 0;
		return;
	}
	most = credit(p, cc, rtt);
	if (p->send_at + most < now)
		p->send_at = now - most;
	p->send_at += div64_u64(len * DBLP_NSEC_PER_SEC, cc->pacing_rate);
}

u64 dblp_pace_timer(const struct dblp_pace *p, const struct dblp_cc *cc,
		    const struct dblp_rtt *rtt)
{
	if (!p->waiting)
		return DBLP_NEVER;
	return p->send_at + min_t(u64, QUANTUM_NS, credit(p, cc, rtt) / 2);
}

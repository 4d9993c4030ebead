// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The first probes double their distance, so that many flows that have overrun a queue do
 * not fill it with probes.  After that a probe comes whenever the silence has become longer
 * by a fixed part: an outage lasts that much longer for us than it did, and no more.
 */
#include "probe.h"

#define DOUBLINGS	2
/* Longer by 1/32: an outage of 200 ms is over for us after 206. */
#define SILENCE_SHARE	32
#define LOST_TRIES	2

void dblp_probe_init(struct dblp_probe *p)
{
	memset(p, 0, sizeof(*p));
	p->at = DBLP_NEVER;
}

void dblp_probe_sent(struct dblp_probe *p, const struct dblp_rtt *rtt, u64 now)
{
	u64 wait;

	/* What is sent asks for an answer itself, until one has been missed. */
	if (p->at != DBLP_NEVER && p->tries)
		return;
	if (p->at == DBLP_NEVER && !p->tries)
		p->since = now;
	wait = dblp_rtt_pto(rtt, min_t(u32, p->tries, DOUBLINGS));
	wait = max_t(u64, wait, (now - p->since) / SILENCE_SHARE);
	p->at = now + min_t(u64, wait, DBLP_PTO_MAX_NS);
}

void dblp_probe_heard(struct dblp_probe *p, const struct dblp_rtt *rtt, bool inflight, u64 now)
{
	dblp_probe_init(p);
	if (inflight)
		dblp_probe_sent(p, rtt, now);
}

enum dblp_probe_result dblp_probe_timeout(struct dblp_probe *p, bool inflight, u64 now)
{
	if (p->at > now)
		return DBLP_PROBE_NOTHING;
	p->at = DBLP_NEVER;
	if (!inflight)
		return DBLP_PROBE_NOTHING;
	p->tries++;
	return p->tries >= LOST_TRIES && now - p->since >= DBLP_PROBE_LOST_NS ?
	       DBLP_PROBE_LOST : DBLP_PROBE_ASK;
}

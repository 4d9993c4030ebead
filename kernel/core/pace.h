/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Pacing: when the next packet may go, so that the rate is kept although timers are late.
 */
#ifndef DBLP_PACE_H
#define DBLP_PACE_H

#include "cc.h"
#include "rtt.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct dblp_pace - pacing of one flow
 * @send_at: not before
 * @late: how late we were lately when pacing held us back, ns
 * @waiting: the last poll ended because of it
 */
struct dblp_pace {
	u64 send_at, late;
	bool waiting;
};

/* The sender runs: it may have waited for @p. */
void dblp_pace_begin(struct dblp_pace *p, u64 now);
/* May a packet go?  If not, it waits for that. */
bool dblp_pace_may_send(struct dblp_pace *p, u64 now);
/* A packet of @len bytes goes. */
void dblp_pace_sent(struct dblp_pace *p, const struct dblp_cc *cc, const struct dblp_rtt *rtt,
		    u32 len, u64 now);
/* When to send next; DBLP_NEVER if nothing waits. */
u64 dblp_pace_timer(const struct dblp_pace *p, const struct dblp_cc *cc,
		    const struct dblp_rtt *rtt);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_PACE_H */

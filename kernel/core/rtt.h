/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Round-trip estimation (RFC 6298) with a windowed minimum (RTprop), and the probe
 * timer built on it (RFC 9002 §6.2).
 */
#ifndef DBLP_RTT_H
#define DBLP_RTT_H

#include "dblp_deps.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLP_RTT_INITIAL_NS	(20 * DBLP_NSEC_PER_MSEC)  /* before a sample */
#define DBLP_PTO_MIN_NS		(200 * DBLP_NSEC_PER_USEC)
#define DBLP_PTO_MAX_NS		(1 * DBLP_NSEC_PER_SEC)
#define DBLP_MIN_RTT_WIN_NS	(10 * DBLP_NSEC_PER_SEC)
#define DBLP_RTT_MAX_NS		(64 * DBLP_NSEC_PER_SEC)   /* samples are cut to it */

/**
 * struct dblp_rtt - estimator of one flow, all ns
 * @srtt: smoothed, 0 before the first sample
 * @rttvar: mean deviation
 * @min_rtt: RTprop, minimum over DBLP_MIN_RTT_WIN_NS, DBLP_NEVER before a sample
 * @min_at: when it was taken
 * @next_rtt: smallest sample since half a window after @min_at: takes over when
 *	@min_rtt expires; DBLP_NEVER none
 * @next_at: when it was taken
 * @latest: last sample
 * @ack_delay: recent upper bound of the delay that the peer reports
 */
struct dblp_rtt {
	u64 srtt, rttvar, min_rtt, min_at, next_rtt, next_at, latest, ack_delay;
};

void dblp_rtt_init(struct dblp_rtt *r);
/* A sample of @rtt ns, of which the peer says it held the ACK for @ack_delay ns. */
void dblp_rtt_sample(struct dblp_rtt *r, u64 rtt, u64 ack_delay, u64 now);
/* srtt, or the initial guess. */
u64 dblp_rtt_srtt(const struct dblp_rtt *r);
/* Probe time-out with @backoff doublings, clamped to MIN and MAX. */
u64 dblp_rtt_pto(const struct dblp_rtt *r, u32 backoff);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_RTT_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The probe timer of a flow: something is in flight and nothing comes back.
 */
#ifndef DBLP_PROBE_H
#define DBLP_PROBE_H

#include "rtt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Silence is taken for loss after two probes and this time: hosts stall for milliseconds. */
#define DBLP_PROBE_LOST_NS	(10 * DBLP_NSEC_PER_MSEC)

/**
 * struct dblp_probe - probe timer of one flow
 * @at: when it expires, DBLP_NEVER off
 * @since: when we began to wait for an answer
 * @tries: expiries since then
 */
struct dblp_probe {
	u64 at, since;
	u32 tries;
};

enum dblp_probe_result {
	DBLP_PROBE_NOTHING,	/* not yet, or nothing is in flight */
	DBLP_PROBE_ASK,		/* send something that must be acknowledged */
	DBLP_PROBE_LOST,	/* and what is in flight counts as lost */
};

void dblp_probe_init(struct dblp_probe *p);
/* Something that must be acknowledged was sent. */
void dblp_probe_sent(struct dblp_probe *p, const struct dblp_rtt *rtt, u64 now);
/* It, or part of it, was; @inflight: there is more. */
void dblp_probe_heard(struct dblp_probe *p, const struct dblp_rtt *rtt, bool inflight, u64 now);
/* It is @now; @inflight as above.  Whoever asks then calls dblp_probe_sent(). */
enum dblp_probe_result dblp_probe_timeout(struct dblp_probe *p, bool inflight, u64 now);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_PROBE_H */

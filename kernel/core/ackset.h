/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which packet numbers a receiver has seen, and when an ACK is due.
 */
#ifndef DBLP_ACKSET_H
#define DBLP_ACKSET_H

#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLP_ACKSET_RANGES	64
#define DBLP_ACK_EVERY		2	/* ack-eliciting packets */
#define DBLP_ACK_DELAY_NS	(1 * DBLP_NSEC_PER_MSEC)	/* at most */

/**
 * struct dblp_ackset - received packet numbers and the state of acknowledging
 * @r: ranges [first, last], newest (largest) first, disjoint, not adjacent
 * @n: ranges in use
 * @largest_at: when the largest number came, ns
 * @ect0: packets received marked ECT(0)
 * @ect1: ECT(1)
 * @ce: CE
 * @unacked: ack-eliciting packets since the last ACK
 * @ack_at: when an ACK is due, DBLP_NEVER none, 0 at once
 * @forgotten: numbers up to this one fell off the end
 */
struct dblp_ackset {
	struct { u64 first, last; } r[DBLP_ACKSET_RANGES];
	u32 n;
	u64 largest_at;
	u32 ect0, ect1, ce;
	u32 unacked;
	u64 ack_at;
	u64 forgotten;
};

enum dblp_ecn { DBLP_ECN_NOT = 0, DBLP_ECN_ECT1 = 1, DBLP_ECN_ECT0 = 2, DBLP_ECN_CE = 3 };

void dblp_ackset_init(struct dblp_ackset *s);
/* Largest number received, 0 none. */
u64 dblp_ackset_largest(const struct dblp_ackset *s);
/* Was @pn received?  What is too old to know counts as received. */
bool dblp_ackset_has(const struct dblp_ackset *s, u64 pn);

/**
 * dblp_ackset_add() - a packet was received and read
 * @s: the set
 * @pn: its full number, not in the set
 * @ecn: enum dblp_ecn
 * @eliciting: it holds an ack-eliciting frame
 * @now: ns
 * @rtt_ns: round trip if known, else 0: the delay is at most a quarter of it
 *
 * Sets ack_at: at once on a gap (@pn is not largest + 1), on CE, on every
 * DBLP_ACK_EVERY-th eliciting packet; else after the delay.
 */
void dblp_ackset_add(struct dblp_ackset *s, u64 pn, u8 ecn, bool eliciting, u64 now,
		     u64 rtt_ns);

/* An ACK is wanted at once (MARK, CLOSE, PING, ECHO). */
void dblp_ackset_urge(struct dblp_ackset *s);

/*
 * Fills ranges, largest, delay and ECN counts; clears ack_at and unacked.  Without a
 * packet received there are 0 ranges, and no such ACK may be sent.
 */
void dblp_ackset_fill(struct dblp_ackset *s, struct dblp_f_ack *f, u64 now);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_ACKSET_H */

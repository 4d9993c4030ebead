/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Shared by the parts of the "bdp" control; nobody else.  See cc_bdp.c for the whole.
 */
#ifndef DBLP_CC_BDP_PRIV_H
#define DBLP_CC_BDP_PRIV_H

#include "cc.h"

/* Gains are in units of 1/256, loss shares in parts per million. */
#define GAIN_ONE		256
#define PPM			1000000U
/* How many standard errors, squared, more is lost than expected: 2. */
#define SIGMA2			4

/* A queue stands if even the fastest packet of a round met a quarter of RTprop of it... */
#define QUEUE_SHARE		4
/* ...and 1 ms: less is within the scheduling noise of hosts. */
#define QUEUE_MIN_NS		(1 * DBLP_NSEC_PER_MSEC)
/* The largest delay falls by an eighth per round: loss that follows it is ours. */
#define MAX_RTT_DECAY		8
/* Below that the delay may be the hosts' own under load, and is given room in flight. */
#define LAG_MIN_NS		QUEUE_MIN_NS
/* So may be more, if a probe with twice the room has found more and lost nothing. */
#define LAG_MAX_NS		(16 * DBLP_NSEC_PER_MSEC)

static inline u64 dblp_bdp_scale(u64 v, u32 gain)
{
	return v * gain / GAIN_ONE;
}

static inline struct dblp_bdp_sent *dblp_bdp_sent_in(struct dblp_bdp *b, u64 round)
{
	return &b->sent[round & (DBLP_BDP_SENT_ROUNDS - 1)];
}

/* Queue delay, ns, of a round trip of @rtt. */
static inline u64 dblp_bdp_queue_delay(const struct dblp_bdp *b, u64 rtt)
{
	return rtt != DBLP_NEVER && rtt > b->rtprop ? rtt - b->rtprop : 0;
}

static inline u64 dblp_bdp_queue_limit(const struct dblp_bdp *b)
{
	return max_t(u64, b->rtprop / QUEUE_SHARE, QUEUE_MIN_NS);
}

/* Rate, RTprop and ACK bursts, in cc_bdp_path.c. */

/* What must be sent, bytes/s, for BtlBw to arrive. */
u64 dblp_bdp_send_rate(const struct dblp_cc *cc);
/* One BDP, bytes. */
u64 dblp_bdp_bytes(const struct dblp_cc *cc);
/* In flight beside the BDP: packets that wait for an ACK, ACKs that come in bursts. */
u64 dblp_bdp_slack(const struct dblp_cc *cc);
/* And in the delay that hosts may add under load. */
u64 dblp_bdp_lag(const struct dblp_cc *cc);
/* The longest queue delay, ns, that our own ceiling can make. */
u64 dblp_bdp_own_queue(const struct dblp_cc *cc);
/* Forgets BtlBw for @bw, bytes/s. */
void dblp_bdp_bw_set(struct dblp_cc *cc, u64 bw);
void dblp_bdp_bw_sample(struct dblp_cc *cc, const struct dblp_rate_sample *rs);
/* A round ends: the oldest leaves the filter. */
void dblp_bdp_bw_round(struct dblp_cc *cc);
void dblp_bdp_update_rtprop(struct dblp_bdp *b, const struct dblp_rate_sample *rs,
			    const struct dblp_rtt *rtt);
void dblp_bdp_update_extra(struct dblp_cc *cc, const struct dblp_rate_sample *rs, u64 now);

/* What losses say, in cc_bdp_loss.c. */

/* Counts what an ACK tells to the packets and the times that it is about. */
void dblp_bdp_account(struct dblp_cc *cc, const struct dblp_rate_sample *rs);
/* The fate of the packets of a round that was no probe: what is lost without us. */
void dblp_bdp_learn_base(struct dblp_cc *cc, const struct dblp_bdp_sent *s);
void dblp_bdp_find_free_loss(struct dblp_cc *cc);
void dblp_bdp_forget_losses(struct dblp_bdp *b);
/* Was more lost in a probe than outside? */
bool dblp_bdp_probe_lost(const struct dblp_cc *cc, const struct dblp_bdp_sent *s);
/* The questions of R3, at the end of a round. */
bool dblp_bdp_standing_lost(struct dblp_cc *cc);
bool dblp_bdp_loss_follows_delay(struct dblp_cc *cc);
bool dblp_bdp_loss_unbearable(struct dblp_cc *cc);
/* Is much lost, and was the queue never seen empty meanwhile? */
bool dblp_bdp_unproven_loss(const struct dblp_cc *cc);

#endif /* DBLP_CC_BDP_PRIV_H */

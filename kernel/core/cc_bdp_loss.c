// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * "bdp": what losses say.  They are counted by when they happened: while a probe was under
 * way or not, while the queue was empty, low, high or stood; and the shares are compared.
 */
#include "bound.h"	/* dblp_isqrt() */
#include "cc_bdp_priv.h"

/* Loss follows the delay: packets above and below its half that can tell. */
#define FOLLOW_MIN_PKTS		16
#define FOLLOW_PKTS		256
/* More loss than expected is real beyond 1.5 packets and SIGMA2... */
#define EXCESS_MIN_HALVES	3
/* ...but three standard errors where the question is asked in every round. */
#define FOLLOW_SIGMA2		9
/* The queue was empty if a packet met less than an eighth of RTprop of it. */
#define EMPTY_SHARE		8
/* Base loss is remembered over 256 to 512 packets: some 30 rounds of a small BDP. */
#define BASE_PKTS		512
/* Random loss is made up for once 64 packets tell of it (2 % standard error at 3 %)... */
#define FREE_MIN_PKTS		64
#define FREE_PKTS		256
/* ...up to 10 %, parts per million: the largest share that we promise to bear. */
#define FREE_LOSS_MAX		100000
/* R3: more than that, with a margin, is congestion once 32 packets tell of it. */
#define BEAR_MAX		120000
#define BEAR_MIN_PKTS		32
/* With more than 2 % lost that no empty queue explains RTprop may never have been seen. */
#define UNPROVEN_MIN		20000

/* Loss share of @lost in @sent bytes, parts per million. */
static u64 share_ppm(u64 lost, u64 sent)
{
	return sent ? div64_u64(lost * PPM, sent) : 0;
}

/*
 * Are @lost of @sent bytes more than a loss share of @p parts per million explains?
 * The number of lost packets is binomial if it does.
 */
static bool lost_more(const struct dblp_cc *cc, u64 lost, u64 sent, u64 p, u32 sigma2)
{
	u64 n = div_u64(sent, cc->mss);
	u64 excess;

	/* In millionths of a packet. */
	lost = div_u64(lost * PPM, cc->mss);
	if (lost <= n * p)
		return false;
	excess = lost - n * p;
	if (2 * excess <= EXCESS_MIN_HALVES * (u64)PPM)
		return false;
	/* excess^2 > 4 n p (1 - p), in thousandths of packets, squared */
	excess = min_t(u64, div_u64(excess, 1000), 1ULL << 31);
	return excess * excess > sigma2 * n * div_u64(p * (PPM - p), PPM);
}

static void add_decaying(u64 *lost, u64 *sent, u64 more_lost, u64 more_acked, u64 limit)
{
	*lost += more_lost;
	*sent += more_acked + more_lost;
	if (*sent >= limit) {
		*lost /= 2;
		*sent /= 2;
	}
}

/*
 * Finds the share by which BtlBw is short because the path loses packets without our
 * help, parts per million.  A maximum of ten rounds of n packets is already some two
 * standard errors above their mean: only what is beyond that is short.
 */
void dblp_bdp_find_free_loss(struct dblp_cc *cc)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 n = max_t(u64, div_u64(dblp_bdp_bytes(cc), cc->mss), 1);
	u64 share, luck;

	b->free_ppm = 0;
	if (b->free_sent < FREE_MIN_PKTS * cc->mss)
		return;
	share = share_ppm(b->free_lost, b->free_sent);
	luck = 2 * dblp_isqrt(div64_u64(share * (PPM - share), n));
	if (share > luck)
		b->free_ppm = (u32)min_t(u64, share - luck, FREE_LOSS_MAX);
}

/* Packets sent when @delivered bytes had been: their round, NULL if long ago. */
static struct dblp_bdp_sent *sent_when(struct dblp_bdp *b, u64 delivered)
{
	u32 i;

	for (i = 0; i < DBLP_BDP_SENT_ROUNDS && i <= b->round; i++)
		if (delivered >= dblp_bdp_sent_in(b, b->round - i)->start)
			return dblp_bdp_sent_in(b, b->round - i);
	return NULL;
}

void dblp_bdp_forget_losses(struct dblp_bdp *b)
{
	b->base_lost = 0;
	b->base_sent = 0;
	b->free_lost = 0;
	b->free_sent = 0;
	b->bear_lost = 0;
	b->bear_sent = 0;
	b->low_lost = 0;
	b->low_sent = 0;
	b->high_lost = 0;
	b->high_sent = 0;
}

void dblp_bdp_learn_base(struct dblp_cc *cc, const struct dblp_bdp_sent *s)
{
	struct dblp_bdp *b = &cc->u.bdp;

	/* Lost while the queue was empty: nobody's queue did it. */
	if (s->kind == DBLP_BDP_DOWN) {
		if (dblp_bdp_queue_delay(b, s->min_rtt) <= b->rtprop / EMPTY_SHARE)
			add_decaying(&b->free_lost, &b->free_sent, s->lost, s->acked,
				     FREE_PKTS * cc->mss);
		else
			b->free_lost -= b->free_lost / 4;
	}
	add_decaying(&b->base_lost, &b->base_sent, s->lost, s->acked, BASE_PKTS * cc->mss);
}

bool dblp_bdp_probe_lost(const struct dblp_cc *cc, const struct dblp_bdp_sent *s)
{
	const struct dblp_bdp *b = &cc->u.bdp;

	return lost_more(cc, s->lost, s->acked + s->lost,
			 share_ppm(b->base_lost, b->base_sent), SIGMA2);
}

/* Loss share while the queue delay is low, 0 unknown. */
static u64 low_share(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;

	return b->low_sent < FOLLOW_MIN_PKTS * cc->mss ? 0 :
	       share_ppm(b->low_lost, b->low_sent);
}

/* R3: a queue stands; is there more loss than while it is low? */
bool dblp_bdp_standing_lost(struct dblp_cc *cc)
{
	struct dblp_bdp *b = &cc->u.bdp;

	b->stand_lost += b->round_lost;
	b->stand_sent += b->round_lost + b->round_acked;
	if (!lost_more(cc, b->stand_lost, b->stand_sent, low_share(cc), SIGMA2))
		return false;
	b->stand_lost = 0;
	b->stand_sent = 0;
	return true;
}

/*
 * R3 for short queues: is more lost while the queue delay is above half of its largest
 * value than while it is below?  Random loss does not know the delay, and neither does
 * the noise of hosts.
 */
bool dblp_bdp_loss_follows_delay(struct dblp_cc *cc)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 least = FOLLOW_MIN_PKTS * cc->mss;

	if (b->low_sent < least || b->high_sent < least ||
	    !lost_more(cc, b->high_lost, b->high_sent, low_share(cc), FOLLOW_SIGMA2))
		return false;
	b->high_lost = 0;
	b->high_sent = 0;
	return true;
}

/* Is more lost than we promise to bear?  Whatever it is, it is congestion too. */
bool dblp_bdp_loss_unbearable(struct dblp_cc *cc)
{
	struct dblp_bdp *b = &cc->u.bdp;
	const struct dblp_bdp_sent *s = dblp_bdp_sent_in(b, b->round - 1);
	bool much;

	if (!b->round)
		return false;
	b->bear_lost += s->lost;
	b->bear_sent += s->acked + s->lost;
	if (b->bear_sent < BEAR_MIN_PKTS * cc->mss)
		return false;
	much = lost_more(cc, b->bear_lost, b->bear_sent, BEAR_MAX, SIGMA2);
	b->bear_lost = 0;
	b->bear_sent = 0;
	return much;
}

/* Is much lost, and was the queue never seen empty meanwhile? */
bool dblp_bdp_unproven_loss(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;
	u64 p = UNPROVEN_MIN;

	if (b->free_sent >= FREE_MIN_PKTS * cc->mss)
		p = max(p, share_ppm(b->free_lost, b->free_sent));
	return lost_more(cc, b->base_lost, b->base_sent, p, SIGMA2);
}

void dblp_bdp_account(struct dblp_cc *cc, const struct dblp_rate_sample *rs)
{
	struct dblp_bdp *b = &cc->u.bdp;
	struct dblp_bdp_sent *s;

	b->round_lost += rs->lost;
	b->round_acked += rs->acked;
	b->round_inflight = max(b->round_inflight, rs->inflight + rs->acked + rs->lost);
	if (rs->rtt_ns) {
		b->round_min_rtt = min(b->round_min_rtt, rs->rtt_ns);
		b->max_rtt = max(b->max_rtt, rs->rtt_ns);
		b->high = dblp_bdp_queue_delay(b, rs->rtt_ns) >
			  dblp_bdp_queue_delay(b, b->max_rtt) / 2;
	}
	/* A loss is noticed a few packets later: their delay is what it met. */
	if (b->high)
		add_decaying(&b->high_lost, &b->high_sent, rs->lost, rs->acked,
			     FOLLOW_PKTS * cc->mss);
	else
		add_decaying(&b->low_lost, &b->low_sent, rs->lost, rs->acked,
			     FOLLOW_PKTS * cc->mss);
	if (rs->acked) {
		s = sent_when(b, rs->prior_delivered);
		if (s) {
			s->acked += rs->acked;
			if (rs->rtt_ns)
				s->min_rtt = min(s->min_rtt, rs->rtt_ns);
		}
	}
	if (rs->lost) {
		s = sent_when(b, rs->lost_prior_delivered);
		if (s)
			s->lost += rs->lost;
	}
}

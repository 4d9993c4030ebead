// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * "bdp": model-based congestion control that tells its own queue from lossy links.
 *
 * Model: a path has a bottleneck rate, BtlBw = the largest delivery rate of ten rounds,
 * and a length, RTprop = the smallest round trip.  Sending at BtlBw with BtlBw * RTprop
 * in flight keeps the bottleneck busy and its queue empty; both are learnt by probing:
 * a round at 1.25 BtlBw shows whether there is more, one at 0.75 drains what that left.
 * A round is the time until a packet that was sent after its beginning is acknowledged.
 *
 *             +---------+  full  +-------+ drained +-------------------------+
 *  first ACK->| STARTUP |------->| DRAIN |-------->| PROBE: UP DOWN CRUISE.. |<-+
 *             +---------+        +-------+         +-------------------------+  |
 *                                                  9 s without a new |          | one RTT
 *                                         minimum, or a queue that   v          | at half
 *                                         does not yield         +---------+    | a BDP
 *                                                                | REFRESH |----+
 *                                                                +---------+
 *  Any of them crawls while most packets are lost (R4, R6), then goes on where it was.
 *
 * What it ignores: single losses, and every loss whose share is the same whether it
 * probes or not and whether there is a queue or not.  Such a share, measured while the
 * queue is seen empty, is made up for by sending that much more (10 % at most).  It never
 * sees the application's tolerance, mode or deadline (R1): they would make it pay with
 * loss for its own queue.
 *
 * What it reacts to ("the ceiling" is of what is in flight):
 * R2  More is lost in a probe than outside: the queue is short and the loss ours.  The
 *     ceiling falls to 0.85 of what the probe had in flight, not below one BDP.
 * R3  A queue stands for a whole round and more is lost than while it is low; or more is
 *     lost whenever the delay is high, even if both are small; or the queue is longer
 *     than our own ceiling can make it; or more than 12 % are lost for whatever reason:
 *     congestion.  The ceiling falls by 0.85, and the last round's rate is all the
 *     bandwidth that we have.  The latter is not repeated while the queue does not yield:
 *     then the path may have become longer.  If nothing is lost, RTprop is measured anew.
 * R4  Most packets are lost in three rounds: crawl at what gets through.  BtlBw is kept
 *     and holds again after two clean rounds, unless a queue stood meanwhile.
 * R5  CE: the ceiling falls to 0.7 of what is in flight, once per round trip.
 * R6  Nothing is heard: crawl, at most one packet per round trip.
 * What R3 and R5 took comes back by the same step for all, so that shares become equal.
 *
 * Caveats:
 * - Flows with less than two packets of BDP each overrun a short queue: one packet in
 *   flight and one per round trip is the least that any of them sends.
 * - Who starts into a standing queue takes its delay for RTprop, until he and the others
 *   drain together: at the latest after 10 s, after 32 round trips if there is loss.
 * - RTprop that grows more than twofold is found at once only if less than 2 % are lost,
 *   else when its window of 10 s is over.  Until then the rate is low.
 * - Jitter of several RTprop and more than 1 ms lowers the rate, more so with loss.
 *
 * References: Cardwell et al., "BBR: congestion-based congestion control", ACM Queue
 * 14(5), 2016; draft-cheng-iccrg-delivery-rate-estimation.
 */
#include "cc.h"
#include "bound.h"	/* dblp_isqrt() */

/* Gains are in units of 1/256. */
#define GAIN_ONE		256

/* STARTUP: 4 ln 2 = 2.77 is the least that doubles the rate in each round. */
#define STARTUP_PACING		709
/* Twice the estimate in flight keeps the doubling and fills a queue of one BDP at most. */
#define STARTUP_CAP		512
/* DRAIN: the inverse, so what STARTUP queued is gone in about one round. */
#define DRAIN_PACING		92
/* PROBE: one round each of a quarter more and a quarter less. */
#define UP_PACING		320
#define UP_CAP			512
#define DOWN_PACING		192
/* One percent below BtlBw: errors of the estimate must not pile up a queue. */
#define CRUISE_PACING		253
/* Half a BDP for late ACKs; it bounds the queue of flows that each hold too large a BtlBw. */
#define CRUISE_CAP		384
/* Crawling: a quarter more than got through after a round with loss, else twice. */
#define CRAWL_PACING		320
#define CRAWL_CLEAN_PACING	512
#define CRAWL_CAP		512
/* REFRESH: half a BDP in flight cannot queue. */
#define REFRESH_CAP		128

/* Packets above gain * BDP: an ACK comes for two packets, one more is on its way. */
#define QUANTUM_PKTS		3
/* A BDP counts as reached with so many packets more in flight, for the same reason. */
#define DRAINED_PKTS		2
/* In flight at least, packets, unless R3 or R5 took it: fewer cannot show a loss. */
#define MIN_CAP_PKTS		4
/* CRUISE lasts so many rounds and up to 3 more: flows that share must not probe in step. */
#define CRUISE_ROUNDS		3

/* STARTUP is over after 3 rounds with less than a quarter more each... */
#define FULL_NUM		5
#define FULL_DEN		4
#define FULL_ROUNDS		3
/* ...or two rounds of standing queue and loss... */
#define FULL_QUEUE_ROUNDS	2
/* ...or one without growth that lost a fifth: twice what we hold for random. */
#define FULL_LOSS_SHARE		5

/* A queue stands if even the fastest packet of a round met a quarter of RTprop of it... */
#define QUEUE_SHARE		4
/* ...and 1 ms: less is within the scheduling noise of hosts. */
#define QUEUE_MIN_NS		(1 * DBLP_NSEC_PER_MSEC)
/* Below that the delay may be the hosts' own under load, and is given room in flight. */
#define LAG_MAX_NS		QUEUE_MIN_NS
/* Loss that follows the delay: the largest delay falls by an eighth per round... */
#define MAX_RTT_DECAY		8
/* ...and so many packets above and below its half can tell. */
#define FOLLOW_MIN_PKTS		16
#define FOLLOW_PKTS		256
/* With UP_CAP our own queue is one RTprop and LAG_MAX_NS at most; a quarter for bursts. */
#define OWN_NUM			5
#define OWN_DEN			4
/* The queue was empty if a packet met less than an eighth of RTprop of it. */
#define EMPTY_SHARE		8
/* Rounds of standing queue, and rounds between two tries, before RTprop is doubted. */
#define DOUBT_ROUNDS		8
#define DOUBT_EVERY		32
/* With more than 2 % lost it is a queue, and a larger RTprop would only feed it. */
#define DOUBT_LOSS_SHARE	50

/* R2 and R3: 0.85. */
#define LOSS_CUT		218
/* R3: rounds until a cut shows. */
#define CUT_ROUNDS		2
/* R5: 0.7. */
#define CE_CUT			179
/*
 * More loss than expected is real beyond 1.5 packets and so many standard errors,
 * squared: 2, but 3 where the question is asked in every round.
 */
#define EXCESS_MIN_HALVES	3
#define SIGMA2			4
#define FOLLOW_SIGMA2		9
/* A probe that found more with less than 2 % lost voids the ceiling... */
#define UP_LOSS_SHARE		50
/* ...else one above one BDP rises by this part of it per clean probe... */
#define CAP_STEP		8
/* ...and one below by an eighth of a packet and this part per clean round. */
#define CAP_GROW		32

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
#define PPM			1000000U

/* R4: rounds that are looked at, and packets that make them worth it. */
#define CRAWL_ROUNDS		3
#define CRAWL_MIN_PKTS		8
/* Rounds in a row with less than a quarter lost, and their packets, that end it. */
#define CRAWL_CLEAN		2
#define CRAWL_CLEAN_SHARE	4
#define CRAWL_CLEAN_PKTS	8
/* A crawl that comes back within so many rounds: BtlBw is void. */
#define CRAWL_AGAIN		16
/* A BtlBw that was void for mere loss so many rounds before a crawl is the one to keep. */
#define KEPT_ROUNDS		8

/* RTprop is refreshed when it is this old, ns: before it expires at 10 s. */
#define REFRESH_AFTER		(9 * DBLP_NSEC_PER_SEC)
/*
 * With loss of more than 2 % that no empty queue explains we may never have seen the
 * true RTprop: others' queue was there before us.  Flows that meet the same minimum
 * refresh it at the same time, and together they find it.
 */
#define REFRESH_LOSSY_RTTS	32
#define UNPROVEN_MIN		20000
/* Rounds after which a phase that waits for a drained queue gives up. */
#define DRAIN_ROUNDS		4

/* Rounds in which an ACK burst is remembered, at least; at most twice that. */
#define EXTRA_ROUNDS		5

static u64 scale(u64 v, u32 gain)
{
	return v * gain / GAIN_ONE;
}

static struct dblp_bdp_sent *sent_in(struct dblp_bdp *b, u64 round)
{
	return &b->sent[round & (DBLP_BDP_SENT_ROUNDS - 1)];
}

/* Packets sent when @delivered bytes had been: their round, NULL if long ago. */
static struct dblp_bdp_sent *sent_when(struct dblp_bdp *b, u64 delivered)
{
	u32 i;

	for (i = 0; i < DBLP_BDP_SENT_ROUNDS && i <= b->round; i++)
		if (delivered >= sent_in(b, b->round - i)->start)
			return sent_in(b, b->round - i);
	return NULL;
}

/* What must be sent, bytes/s, for BtlBw to arrive. */
static u64 send_rate(const struct dblp_cc *cc)
{
	return div_u64(cc->btlbw * PPM, PPM - cc->u.bdp.free_ppm);
}

/* One BDP, bytes. */
static u64 bdp(const struct dblp_cc *cc)
{
	return dblp_cc_bytes(send_rate(cc), cc->u.bdp.rtprop);
}

/* Queue delay, ns, of a round trip of @rtt. */
static u64 queue_delay(const struct dblp_bdp *b, u64 rtt)
{
	return rtt != DBLP_NEVER && rtt > b->rtprop ? rtt - b->rtprop : 0;
}

/* In flight beside the BDP: packets that wait for an ACK, ACKs that come in bursts. */
static u64 slack(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;

	return QUANTUM_PKTS * cc->mss + max(b->extra[0], b->extra[1]);
}

/* And in the delay that hosts may add under load. */
static u64 lag(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;

	return dblp_cc_bytes(cc->btlbw, min_t(u64, queue_delay(b, b->srtt), LAG_MAX_NS));
}

static u64 queue_limit(const struct dblp_bdp *b)
{
	return max_t(u64, b->rtprop / QUEUE_SHARE, QUEUE_MIN_NS);
}

/* 0 .. 3, different for flows that began at different times. */
static u32 dice(u64 now)
{
	return (u32)(now * 0x9e3779b97f4a7c15ULL >> 62);
}

/* Loss share of @lost in @sent bytes, parts per million. */
static u64 share_ppm(u64 lost, u64 sent)
{
	return sent ? div64_u64(lost * PPM, sent) : 0;
}

/*
 * Are @lost of @sent bytes more than a loss share of @p parts per million explains?
 * The number of lost packets is binomial if it does.
 */
static bool lost_more(const struct dblp_cc *cc, u64 lost, u64 sent, u64 p,
		      u32 sigma2)
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
static void find_free_loss(struct dblp_cc *cc)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 n = max_t(u64, div_u64(bdp(cc), cc->mss), 1);
	u64 share, luck;

	b->free_ppm = 0;
	if (b->free_sent < FREE_MIN_PKTS * cc->mss)
		return;
	share = share_ppm(b->free_lost, b->free_sent);
	luck = 2 * dblp_isqrt(div64_u64(share * (PPM - share), n));
	if (share > luck)
		b->free_ppm = (u32)min_t(u64, share - luck, FREE_LOSS_MAX);
}

/* ---- bandwidth filter ---- */

static void bw_find(struct dblp_cc *cc)
{
	u32 i;

	cc->btlbw = 0;
	for (i = 0; i < DBLP_BDP_BW_ROUNDS; i++)
		cc->btlbw = max(cc->btlbw, cc->u.bdp.bw[i]);
}

static void bw_set(struct dblp_cc *cc, u64 bw)
{
	struct dblp_bdp *b = &cc->u.bdp;

	memset(b->bw, 0, sizeof(b->bw));
	b->bw[b->bw_slot] = bw;
	cc->btlbw = bw;
}

static void bw_sample(struct dblp_cc *cc, const struct dblp_rate_sample *rs)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 bw;

	if (!rs->interval_ns)
		return;
	bw = dblp_cc_rate(rs->delivered, rs->interval_ns);
	/* A sample of an idle application can only be too low. */
	if (rs->app_limited && bw < cc->btlbw)
		return;
	b->round_bw = max(b->round_bw, bw);
	if (b->collapsed)
		return;
	b->bw[b->bw_slot] = max(b->bw[b->bw_slot], bw);
	cc->btlbw = max(cc->btlbw, bw);
}

/* Rounds that said nothing about the bandwidth do not age the filter. */
static void bw_round(struct dblp_cc *cc)
{
	struct dblp_bdp *b = &cc->u.bdp;

	if (!b->round_bw || b->collapsed)
		return;
	b->bw_slot = (b->bw_slot + 1) % DBLP_BDP_BW_ROUNDS;
	b->bw[b->bw_slot] = 0;
	bw_find(cc);
}

/* ---- phases ---- */

static void set_kind(struct dblp_bdp *b, enum dblp_bdp_kind kind, u32 rounds)
{
	b->kind = kind;
	b->phase_left = rounds;
}

/* For a change inside a round, whose packets are then of no kind. */
static void set_mode(struct dblp_bdp *b, enum dblp_bdp_mode mode, enum dblp_bdp_kind kind,
		     u32 rounds)
{
	b->mode = mode;
	set_kind(b, kind, rounds);
	sent_in(b, b->round)->kind = DBLP_BDP_OTHER;
}

static void cruise(struct dblp_bdp *b, u64 now)
{
	set_mode(b, DBLP_BDP_PROBE, DBLP_BDP_CRUISE, CRUISE_ROUNDS + dice(now));
}

static void probe_round(struct dblp_cc *cc, u64 inflight, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	const struct dblp_bdp_sent *up;

	if (b->phase_left)
		b->phase_left--;
	switch (b->kind) {
	case DBLP_BDP_UP:
		set_kind(b, DBLP_BDP_DOWN, DRAIN_ROUNDS);
		break;
	case DBLP_BDP_DOWN:
		if (b->phase_left && inflight > bdp(cc) + DRAINED_PKTS * cc->mss)
			break;
		/* There was more: ask again at once, it may be much more. */
		if (cc->btlbw >= b->up_bw + b->up_bw / 8) {
			up = sent_in(b, b->round - 1);
			if (up->kind == DBLP_BDP_UP &&
			    up->lost * UP_LOSS_SHARE <= up->acked)
				b->cap_bytes = U64_MAX;
			b->up_bw = cc->btlbw;
			set_kind(b, DBLP_BDP_UP, 1);
		} else {
			set_kind(b, DBLP_BDP_CRUISE, CRUISE_ROUNDS + dice(now));
		}
		break;
	default:
		if (b->phase_left)
			break;
		b->up_bw = cc->btlbw;
		set_kind(b, DBLP_BDP_UP, 1);
		break;
	}
}

static void startup_round(struct dblp_cc *cc)
{
	const struct dblp_bdp_sent *s = sent_in(&cc->u.bdp, cc->u.bdp.round - 1);
	struct dblp_bdp *b = &cc->u.bdp;

	if (b->round_lost && b->queue_rounds >= FULL_QUEUE_ROUNDS)
		b->full_rounds = FULL_ROUNDS;
	if (cc->btlbw >= b->full_bw / FULL_DEN * FULL_NUM) {
		b->full_bw = cc->btlbw;
		b->full_rounds = b->full_rounds == FULL_ROUNDS ? FULL_ROUNDS : 0;
	} else if (b->round_bw) {
		b->full_rounds++;
		if (b->round && s->lost * FULL_LOSS_SHARE > s->acked + s->lost)
			b->full_rounds = FULL_ROUNDS;
	}
	if (b->full_rounds >= FULL_ROUNDS)
		set_mode(b, DBLP_BDP_DRAIN, DBLP_BDP_OTHER, DRAIN_ROUNDS);
}

static void start_refresh(struct dblp_bdp *b, bool doubt)
{
	set_mode(b, DBLP_BDP_REFRESH, DBLP_BDP_OTHER, DRAIN_ROUNDS);
	b->refresh_doubt = doubt;
	b->refresh_round = b->round;
	b->refresh_end = 0;
	b->refresh_rtt = DBLP_NEVER;
}

static void end_refresh(struct dblp_bdp *b, u64 now)
{
	/*
	 * Half a BDP of ours met as much delay as ever: that is the path now, or it is
	 * the queue of others.  The latter must not feed on itself, hence the bound.
	 */
	if (b->refresh_doubt && b->refresh_end &&
	    b->refresh_rtt >= b->doubt_rtt - b->doubt_rtt / 16)
		b->rtprop_floor = min(b->refresh_rtt, 2 * b->rtprop);
	b->refresh_at = now;
	b->queue_rounds = 0;
	cruise(b, now);
}

/* ---- congestion ---- */

static void cut_cap(struct dblp_cc *cc, u32 gain, u64 least)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 cap = scale(min(b->cap_bytes, b->round_inflight), gain);

	b->cap_bytes = max_t(u64, cap, max_t(u64, least, cc->mss));
}

/* BtlBw becomes void: for @sure, or may a crawl show that it was not congestion? */
static void keep_bw(struct dblp_cc *cc, bool sure)
{
	struct dblp_bdp *b = &cc->u.bdp;

	if (sure) {
		b->kept_bw = 0;
		return;
	}
	if (!b->kept_bw || b->round > b->kept_round + KEPT_ROUNDS)
		b->kept_bw = cc->btlbw;
	b->kept_round = b->round;
}

/* R3; @queue is the queue delay of the round, ns, @sure that it stands. */
static void queue_congestion(struct dblp_cc *cc, u64 queue, bool sure)
{
	struct dblp_bdp *b = &cc->u.bdp;

	if (b->round < b->cut_round + CUT_ROUNDS)
		return;
	b->cut_round = b->round;
	/*
	 * If the last cut did not move the queue, it may not be one: a path that has
	 * become longer looks the same, and shares of shares would soon be nothing.
	 */
	if (!b->cut_queue || queue < b->cut_queue / 8 * 7 || queue > b->cut_queue / 4 * 5) {
		b->cut_queue = queue;
		if (b->round_bw && b->round_bw < cc->btlbw) {
			keep_bw(cc, sure);
			bw_set(cc, b->round_bw);
		}
	}
	cut_cap(cc, LOSS_CUT, bdp(cc));
	b->up_bw = cc->btlbw;
	set_mode(b, DBLP_BDP_PROBE, DBLP_BDP_DOWN, DRAIN_ROUNDS);
}

/* R5 */
static void ce_congestion(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
			  u64 total_delivered)
{
	struct dblp_bdp *b = &cc->u.bdp;

	b->round_ce = true;
	if (rs->prior_delivered < b->ce_until)
		return;
	b->ce_until = total_delivered;
	cut_cap(cc, CE_CUT, 0);
	if (b->mode == DBLP_BDP_STARTUP)
		set_mode(b, DBLP_BDP_DRAIN, DBLP_BDP_OTHER, DRAIN_ROUNDS);
}

static void judge_probe(struct dblp_cc *cc, const struct dblp_bdp_sent *s)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 room = bdp(cc) + slack(cc) + lag(cc);

	if (lost_more(cc, s->lost, s->acked + s->lost, share_ppm(b->base_lost, b->base_sent),
		      SIGMA2)) {
		/* What the probe had in flight is what was acknowledged and lost of it. */
		b->cap_bytes = min(b->cap_bytes, s->acked + s->lost);
		b->cap_bytes = max_t(u64, scale(b->cap_bytes, LOSS_CUT), room);
	} else if (b->cap_bytes != U64_MAX) {
		b->cap_bytes += bdp(cc) / CAP_STEP;
		if (b->cap_bytes >= room + bdp(cc))
			b->cap_bytes = U64_MAX;
	}
}

static void forget_losses(struct dblp_bdp *b)
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

static void start_crawl(struct dblp_cc *cc, u64 bw)
{
	struct dblp_bdp *b = &cc->u.bdp;

	b->collapsed = true;
	b->clean_rounds = 0;
	b->clean_bytes = 0;
	b->crawl_bw = scale(bw, CRAWL_PACING);
	/* What looked like congestion was the beginning of this. */
	if (b->round <= b->kept_round + KEPT_ROUNDS && b->kept_bw > cc->btlbw)
		bw_set(cc, b->kept_bw);
	b->kept_bw = 0;
	forget_losses(b);
}

static void end_crawl(struct dblp_cc *cc, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	bool again = b->restored_at && b->round < b->restored_at + CRAWL_AGAIN;

	b->collapsed = false;
	b->restored_at = b->round;
	forget_losses(b);
	if ((again || b->queue_rounds) && b->round_bw) {
		/* Not a burst of loss but congestion: BtlBw is void. */
		bw_set(cc, b->round_bw);
	} else {
		bw_set(cc, cc->btlbw);
		b->cap_bytes = U64_MAX;
	}
	b->up_bw = cc->btlbw;
	if (b->mode == DBLP_BDP_STARTUP) {
		b->full_bw = 0;
		b->full_rounds = 0;
	} else {
		cruise(b, now);
	}
}

/* R4, at the end of a round. */
static void judge_collapse(struct dblp_cc *cc, const struct dblp_bdp_sent *s, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 acked = 0, lost = 0;
	u32 i;

	if (b->collapsed) {
		b->crawl_bw = scale(b->round_bw,
				    b->round_lost ? CRAWL_PACING : CRAWL_CLEAN_PACING);
		if (s->lost * CRAWL_CLEAN_SHARE >= s->acked + s->lost) {
			b->clean_rounds = 0;
			b->clean_bytes = 0;
			return;
		}
		b->clean_rounds++;
		b->clean_bytes += s->acked;
		if (b->clean_rounds >= CRAWL_CLEAN &&
		    b->clean_bytes >= CRAWL_CLEAN_PKTS * cc->mss)
			end_crawl(cc, now);
		return;
	}
	if (b->round < b->restored_at + CRAWL_ROUNDS + 1)
		return;
	for (i = 0; i < CRAWL_ROUNDS; i++) {
		acked += sent_in(b, b->round - 2 - i)->acked;
		lost += sent_in(b, b->round - 2 - i)->lost;
	}
	if (lost > acked && lost + acked >= CRAWL_MIN_PKTS * cc->mss)
		start_crawl(cc, b->round_bw);
}

/* ---- rounds ---- */

/*
 * The fate of what was sent two rounds ago is known now: its ACKs came in the last round,
 * its last losses are noticed a few packets later.
 */
static void judge_sent(struct dblp_cc *cc, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	const struct dblp_bdp_sent *s = sent_in(b, b->round - 2);

	if (b->round < 2)
		return;
	judge_collapse(cc, s, now);
	if (b->collapsed)
		return;
	switch (s->kind) {
	case DBLP_BDP_UP:
		judge_probe(cc, s);
		break;
	case DBLP_BDP_DOWN:
		/* Lost while the queue was empty: nobody's queue did it. */
		if (queue_delay(b, s->min_rtt) <= b->rtprop / EMPTY_SHARE)
			add_decaying(&b->free_lost, &b->free_sent, s->lost, s->acked,
				     FREE_PKTS * cc->mss);
		else
			b->free_lost -= b->free_lost / 4;
		fallthrough;
	case DBLP_BDP_CRUISE:
		add_decaying(&b->base_lost, &b->base_sent, s->lost, s->acked,
			     BASE_PKTS * cc->mss);
		break;
	default:
		break;
	}
}

/* Loss share while the queue delay is low, 0 unknown. */
static u64 low_share(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;

	return b->low_sent < FOLLOW_MIN_PKTS * cc->mss ? 0 :
	       share_ppm(b->low_lost, b->low_sent);
}

/* R3: a queue stands; is there more loss than while it is low? */
static bool standing_lost(struct dblp_cc *cc)
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
static bool loss_follows_delay(struct dblp_cc *cc)
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
static bool loss_unbearable(struct dblp_cc *cc)
{
	struct dblp_bdp *b = &cc->u.bdp;
	const struct dblp_bdp_sent *s = sent_in(b, b->round - 1);
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
static bool unproven_loss(const struct dblp_cc *cc)
{
	const struct dblp_bdp *b = &cc->u.bdp;
	u64 p = UNPROVEN_MIN;

	if (b->free_sent >= FREE_MIN_PKTS * cc->mss)
		p = max(p, share_ppm(b->free_lost, b->free_sent));
	return lost_more(cc, b->base_lost, b->base_sent, p, SIGMA2);
}

static void new_round(struct dblp_bdp *b, u64 total_delivered)
{
	struct dblp_bdp_sent *s;

	b->round++;
	s = sent_in(b, b->round);
	memset(s, 0, sizeof(*s));
	s->start = total_delivered;
	s->min_rtt = DBLP_NEVER;
	s->kind = b->collapsed || b->mode != DBLP_BDP_PROBE ? DBLP_BDP_OTHER : b->kind;
	b->round_bw = 0;
	b->round_min_rtt = DBLP_NEVER;
	b->round_lost = 0;
	b->round_acked = 0;
	b->round_inflight = 0;
	b->round_ce = false;
	b->max_rtt -= queue_delay(b, b->max_rtt) / MAX_RTT_DECAY;
}

static void end_round(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		      const struct dblp_rtt *rtt, u64 total_delivered, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 queue = queue_delay(b, b->round_min_rtt);
	bool standing = queue > queue_limit(b);
	/* More than our ceiling allows if BtlBw is right needs no loss to tell. */
	bool congested = standing && queue > b->rtprop / OWN_DEN * OWN_NUM + LAG_MAX_NS;
	u64 refresh_after = REFRESH_AFTER;
	bool crawled = b->collapsed;
	bool unbearable;
	u64 room;

	if (unproven_loss(cc))
		refresh_after = min_t(u64, REFRESH_LOSSY_RTTS * b->srtt, REFRESH_AFTER);
	if (!standing) {
		b->stand_lost = 0;
		b->stand_sent = 0;
	} else if (standing_lost(cc)) {
		congested = true;
	}
	if (loss_follows_delay(cc))
		congested = true;
	unbearable = loss_unbearable(cc);
	b->queue_rounds = standing ? b->queue_rounds + 1 : 0;
	if (b->queue_rounds == 1) {
		b->doubt_rtt = b->round_min_rtt;
		b->doubt_lost = 0;
		b->doubt_acked = 0;
	}
	b->doubt_lost += b->round_lost;
	b->doubt_acked += b->round_acked;
	if (!standing && !congested)
		b->cut_queue = 0;
	judge_sent(cc, now);
	bw_round(cc);
	find_free_loss(cc);

	if (b->mode == DBLP_BDP_STARTUP) {
		startup_round(cc);
	} else if (b->mode == DBLP_BDP_PROBE) {
		probe_round(cc, rs->inflight, now);
		/* The losses of a crawl do not touch the BtlBw that is being kept. */
		if (!crawled && !b->collapsed && (congested || unbearable))
			queue_congestion(cc, queue, standing);
		if (b->queue_rounds >= DOUBT_ROUNDS &&
		    b->doubt_lost * DOUBT_LOSS_SHARE <= b->doubt_acked &&
		    b->round >= b->refresh_round + DOUBT_EVERY)
			start_refresh(b, true);
		else if (now - rtt->min_at >= refresh_after && now >= b->refresh_at + refresh_after)
			start_refresh(b, false);
	} else {
		if (b->phase_left)
			b->phase_left--;
		if (b->mode == DBLP_BDP_REFRESH &&
		    (!b->phase_left || (b->refresh_end && b->round >= b->refresh_end)))
			end_refresh(b, now);
		else if (!b->phase_left)
			cruise(b, now);
	}

	/*
	 * What congestion took below a BDP comes back bit by bit, the same for all who
	 * share: that is what makes their shares equal in the end.
	 */
	room = bdp(cc) + slack(cc) + lag(cc);
	if (b->cap_bytes < room && !b->round_ce && !congested && !unbearable) {
		b->cap_bytes += bdp(cc) / CAP_GROW + cc->mss / 8;
		b->cap_bytes = min(b->cap_bytes, room);
	}
	new_round(b, total_delivered);
}

/* ---- each ACK ---- */

static void update_rtprop(struct dblp_bdp *b, const struct dblp_rate_sample *rs,
			  const struct dblp_rtt *rtt)
{
	b->srtt = dblp_rtt_srtt(rtt);
	if (rtt->min_rtt == DBLP_NEVER)
		return;
	if (rs->rtt_ns && rs->rtt_ns < b->rtprop_floor)
		b->rtprop_floor = rs->rtt_ns;
	b->rtprop = max(rtt->min_rtt, b->rtprop_floor);
}

/* Bytes acknowledged faster than BtlBw, in one go: ACKs that were held together. */
static void update_extra(struct dblp_cc *cc, const struct dblp_rate_sample *rs, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 expected = dblp_cc_bytes(cc->btlbw, now - b->extra_at);

	if (b->extra_acked <= expected) {
		b->extra_acked = 0;
		b->extra_at = now;
		expected = 0;
	}
	b->extra_acked += rs->acked;
	if (b->round >= b->extra_round + EXTRA_ROUNDS) {
		b->extra[1] = b->extra[0];
		b->extra[0] = 0;
		b->extra_round = b->round;
	}
	if (b->extra_acked > expected)
		b->extra[0] = max(b->extra[0], min(b->extra_acked - expected, bdp(cc)));
}

static void account(struct dblp_cc *cc, const struct dblp_rate_sample *rs)
{
	struct dblp_bdp *b = &cc->u.bdp;
	struct dblp_bdp_sent *s;

	b->round_lost += rs->lost;
	b->round_acked += rs->acked;
	b->round_inflight = max(b->round_inflight, rs->inflight + rs->acked + rs->lost);
	if (rs->rtt_ns) {
		b->round_min_rtt = min(b->round_min_rtt, rs->rtt_ns);
		b->max_rtt = max(b->max_rtt, rs->rtt_ns);
		b->high = queue_delay(b, rs->rtt_ns) > queue_delay(b, b->max_rtt) / 2;
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

static void set_limits(struct dblp_cc *cc)
{
	static const struct {
		u32 pacing, cap;
	} probe[] = {
		[DBLP_BDP_OTHER] = { CRUISE_PACING, CRUISE_CAP },
		[DBLP_BDP_UP] = { UP_PACING, UP_CAP },
		[DBLP_BDP_DOWN] = { DOWN_PACING, CRUISE_CAP },
		[DBLP_BDP_CRUISE] = { CRUISE_PACING, CRUISE_CAP },
	};
	struct dblp_bdp *b = &cc->u.bdp;
	u64 least = MIN_CAP_PKTS * cc->mss;
	u64 rate, cap;

	if (b->collapsed) {
		rate = b->crawl_bw;
		cap = scale(dblp_cc_bytes(rate, b->rtprop), CRAWL_CAP);
	} else if (b->mode == DBLP_BDP_STARTUP) {
		least = DBLP_CC_INIT_PKTS * cc->mss;
		rate = max(send_rate(cc), dblp_cc_rate(least, b->srtt));
		rate = max(scale(rate, STARTUP_PACING), cc->pacing_rate);
		cap = scale(bdp(cc), STARTUP_CAP) + slack(cc);
	} else if (b->mode == DBLP_BDP_DRAIN) {
		rate = scale(send_rate(cc), DRAIN_PACING);
		cap = scale(bdp(cc), STARTUP_CAP) + slack(cc);
	} else if (b->mode == DBLP_BDP_REFRESH) {
		rate = scale(send_rate(cc), CRUISE_PACING);
		cap = scale(bdp(cc), REFRESH_CAP);
		least = cc->mss;
	} else {
		rate = scale(send_rate(cc), probe[b->kind].pacing);
		cap = scale(bdp(cc), probe[b->kind].cap) + slack(cc) + lag(cc);
	}
	/* Not below one packet per round trip, whatever happens. */
	cc->pacing_rate = max(rate, dblp_cc_rate(cc->mss, b->srtt));
	cc->inflight_cap = max(cap, least);
	if (!b->collapsed)
		cc->inflight_cap = min(cc->inflight_cap, b->cap_bytes);
}

static void bdp_init(struct dblp_cc *cc, u32 mss, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;

	b->cap_bytes = U64_MAX;
	b->round_min_rtt = DBLP_NEVER;
	b->sent[0].min_rtt = DBLP_NEVER;
	b->srtt = DBLP_RTT_INITIAL_NS;
	b->refresh_at = now;
	b->extra_at = now;
	/* Paced as soon as there is a round trip to pace over. */
	cc->pacing_rate = 0;
	cc->inflight_cap = DBLP_CC_INIT_PKTS * (u64)mss;
}

static void bdp_on_ack(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		       const struct dblp_rtt *rtt, u64 total_delivered, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;

	if (!rs->acked && !rs->lost && !rs->ce)
		return;
	update_rtprop(b, rs, rtt);
	account(cc, rs);
	bw_sample(cc, rs);
	update_extra(cc, rs, now);
	if (rs->ce)
		ce_congestion(cc, rs, total_delivered);
	if (b->mode == DBLP_BDP_DRAIN && rs->inflight <= bdp(cc) + DRAINED_PKTS * cc->mss)
		cruise(b, now);
	if (b->mode == DBLP_BDP_REFRESH) {
		if (!b->refresh_end && rs->inflight <= cc->inflight_cap)
			b->refresh_end = b->round + 1;
		if (b->refresh_end && rs->rtt_ns)
			b->refresh_rtt = min(b->refresh_rtt, rs->rtt_ns);
	}
	if (rs->interval_ns && rs->prior_delivered >= sent_in(b, b->round)->start)
		end_round(cc, rs, rtt, total_delivered, now);
	set_limits(cc);
}

static void bdp_on_persistent_loss(struct dblp_cc *cc, u64 now)
{
	start_crawl(cc, 0);
	set_limits(cc);
}

static void bdp_restart(struct dblp_cc *cc, u64 idle_ns, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;

	/* Nothing of ours is queued: the next round trips refresh RTprop. */
	if (b->rtprop && idle_ns >= b->rtprop)
		b->refresh_at = now;
	b->extra_at = now;
	b->extra_acked = 0;
	if (b->mode != DBLP_BDP_STARTUP)
		cruise(b, now);
	if (cc->pacing_rate)
		set_limits(cc);
}

const struct dblp_cc_ops dblp_cc_bdp = {
	.name = "bdp",
	.init = bdp_init,
	.on_ack = bdp_on_ack,
	.on_persistent_loss = bdp_on_persistent_loss,
	.restart = bdp_restart,
};

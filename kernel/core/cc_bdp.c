// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * "bdp": model-based congestion control that tells its own queue from lossy links.
 *
 * Model: a path has a bottleneck rate, BtlBw = the largest delivery rate of ten rounds,
 * and a length, RTprop = the smallest round trip.  Sending at BtlBw with BtlBw * RTprop
 * in flight keeps the bottleneck busy and its queue empty; both are learnt by probing:
 * a round at 1.25 BtlBw shows whether there is more, one at 0.75 drains what that left.
 * A round is the time until a packet that was sent after its beginning is acknowledged.
 * Hosts add delays that are no queue, and stall: what bursts of ACKs, and up to 1 ms of
 * delay, show to be in their hands is in flight beside the BDP.  A probe doubles that too;
 * if it found more, up to 16 ms of delay are theirs until something is lost.
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
 *     lost whenever the delay is high, even if both are small; or for three rounds and
 *     10 ms the queue is longer than our own ceiling can make it; or more than 12 % are
 *     lost for whatever reason: congestion.  The ceiling falls by 0.85, not below one BDP,
 *     and without loss not below what hosts need beside it; and what these rounds
 *     delivered is all the bandwidth that we have.  The latter is not repeated while the
 *     queue does not yield: then the path may have become longer.  If nothing is lost,
 *     RTprop is measured anew.
 * R4  Most packets are lost in three rounds: crawl at what gets through, and a few packets
 *     per round trip that show when it is over.  BtlBw is kept and holds again after two
 *     clean rounds or eight packets in a row, or half of it if a queue stood meanwhile or
 *     the last crawl is not long ago.
 * R5  CE: the ceiling falls to 0.7 of what is in flight, once per round trip.
 * R6  Nothing is heard: crawl, at most one packet per round trip; undone if what was
 *     given up is acknowledged after all.
 * What R3 and R5 took comes back by the same step for all, so that shares become equal.
 *
 * Caveats:
 * - Flows with less than two packets of BDP each overrun a short queue: one packet in
 *   flight and one per round trip is the least that any of them sends.
 * - Who starts into a standing queue takes its delay for RTprop, until he and the others
 *   drain together: at the latest after 10 s, after 32 round trips if there is loss.
 * - RTprop that grows more than twofold is found at once only if less than 2 % are lost,
 *   else when its window of 10 s is over.  Until then the rate is low.
 * - A delay of the hosts that never goes away, many RTprop and some milliseconds, is
 *   found out slowly, and jitter of more than 1 ms with loss lowers the rate.
 *
 * References: Cardwell et al., "BBR: congestion-based congestion control", ACM Queue
 * 14(5), 2016; draft-cheng-iccrg-delivery-rate-estimation.
 */
#include "cc_bdp_priv.h"

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

/* Rounds of standing queue, and rounds between two tries, before RTprop is doubted. */
#define DOUBT_ROUNDS		8
#define DOUBT_EVERY		32
/* With more than 2 % lost it is a queue, and a larger RTprop would only feed it. */
#define DOUBT_LOSS_SHARE	50

/* R3 without loss: hosts stall for milliseconds, which one round or two feel. */
#define STAND_MIN_NS		(10 * DBLP_NSEC_PER_MSEC)
#define STAND_ROUNDS		3
/* R2 and R3: 0.85. */
#define LOSS_CUT		218
/* R3: rounds until a cut shows. */
#define CUT_ROUNDS		2
/* R5: 0.7. */
#define CE_CUT			179
/* A probe that found more with less than 2 % lost voids the ceiling... */
#define UP_LOSS_SHARE		50
/* ...else one above one BDP rises by this part of it per clean probe... */
#define CAP_STEP		8
/* ...and one below by an eighth of a packet and this part per clean round. */
#define CAP_GROW		32

/* R4: rounds that are looked at, and packets that make them worth it. */
#define CRAWL_ROUNDS		3
#define CRAWL_MIN_PKTS		8
/* While something gets through, a quarter of a BDP per round trip, but 4 packets at most. */
#define CRAWL_PROBE_SHARE	4
#define CRAWL_PROBE_PKTS	4
/*
 * Rounds in a row with less than a quarter lost, and their packets, that end it; or so
 * many packets in a row.  Of two thirds that are lost 8 in a row arrive once in 6000.
 */
#define CRAWL_CLEAN		2
#define CRAWL_CLEAN_SHARE	4
#define CRAWL_CLEAN_PKTS	8
/* A crawl that comes back within so many rounds: BtlBw is halved. */
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
/* Rounds after which a phase that waits for a drained queue gives up. */
#define DRAIN_ROUNDS		4

/* 0 .. 3, different for flows that began at different times. */
static u32 dice(u64 now)
{
	return (u32)(now * 0x9e3779b97f4a7c15ULL >> 62);
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
	dblp_bdp_sent_in(b, b->round)->kind = DBLP_BDP_OTHER;
}

static void cruise(struct dblp_bdp *b, u64 now)
{
	set_mode(b, DBLP_BDP_PROBE, DBLP_BDP_CRUISE, CRUISE_ROUNDS + dice(now));
}

static bool drained(const struct dblp_cc *cc, u64 inflight)
{
	return inflight <= dblp_bdp_bytes(cc) + DRAINED_PKTS * cc->mss;
}

/* More in flight delivered more: the delay is none of our queue. */
static void learn_lag(struct dblp_bdp *b)
{
	if (dblp_bdp_queue_delay(b, b->srtt) >= b->lag_ns)
		b->lag_ns = min_t(u64, 2 * b->lag_ns, LAG_MAX_NS);
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
		if (b->phase_left && !drained(cc, inflight))
			break;
		/* There was more: ask again at once, it may be much more. */
		if (cc->btlbw >= b->up_bw + b->up_bw / 8) {
			up = dblp_bdp_sent_in(b, b->round - 1);
			if (up->kind == DBLP_BDP_UP &&
			    up->lost * UP_LOSS_SHARE <= up->acked) {
				b->cap_bytes = U64_MAX;
				learn_lag(b);
			}
			b->up_bw = cc->btlbw;
			set_kind(b, DBLP_BDP_UP, 1);
		} else {
			b->lag_ns = max_t(u64, b->lag_ns - b->lag_ns / 8, LAG_MIN_NS);
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
	const struct dblp_bdp_sent *s = dblp_bdp_sent_in(&cc->u.bdp, cc->u.bdp.round - 1);
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
	u64 cap = dblp_bdp_scale(min(b->cap_bytes, b->round_inflight), gain);

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

/*
 * R3; @queue is the queue delay of the round, ns, @bw what was delivered meanwhile; @sure
 * that it stands, @lossy that it cost something.
 */
static void queue_congestion(struct dblp_cc *cc, u64 queue, u64 bw, bool sure, bool lossy,
			     u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 least;

	if (b->round < b->cut_round + CUT_ROUNDS)
		return;
	b->cut_round = b->round;
	/*
	 * If the last cut did not move the queue, it may not be one: a path that has
	 * become longer looks the same, and shares of shares would soon be nothing.
	 */
	if (!b->cut_queue || queue < b->cut_queue / 8 * 7 || queue > b->cut_queue / 4 * 5) {
		b->cut_queue = queue;
		if (bw && bw < cc->btlbw) {
			keep_bw(cc, sure);
			dblp_bdp_bw_set(cc, bw);
		}
	}
	/* A delay that cost nothing may be one of hosts: they need what is beside the BDP. */
	if (lossy)
		b->lag_ns = LAG_MIN_NS;
	least = dblp_bdp_bytes(cc);
	if (!lossy)
		least += dblp_bdp_slack(cc) + dblp_bdp_lag(cc);
	cut_cap(cc, LOSS_CUT, least);
	b->stand_at = now;
	b->stand_rounds = 0;
	b->stand_bw = 0;
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
	b->lag_ns = LAG_MIN_NS;
	cut_cap(cc, CE_CUT, 0);
	if (b->mode == DBLP_BDP_STARTUP)
		set_mode(b, DBLP_BDP_DRAIN, DBLP_BDP_OTHER, DRAIN_ROUNDS);
}

static void judge_probe(struct dblp_cc *cc, const struct dblp_bdp_sent *s)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 room = dblp_bdp_bytes(cc) + dblp_bdp_slack(cc) + dblp_bdp_lag(cc);

	if (dblp_bdp_probe_lost(cc, s)) {
		b->lag_ns = LAG_MIN_NS;
		/* What the probe had in flight is what was acknowledged and lost of it. */
		b->cap_bytes = min(b->cap_bytes, s->acked + s->lost);
		b->cap_bytes = max_t(u64, dblp_bdp_scale(b->cap_bytes, LOSS_CUT), room);
	} else if (b->cap_bytes != U64_MAX) {
		b->cap_bytes += dblp_bdp_bytes(cc) / CAP_STEP;
		if (b->cap_bytes >= room + dblp_bdp_bytes(cc))
			b->cap_bytes = U64_MAX;
	}
}

static void start_crawl(struct dblp_cc *cc, u64 bw)
{
	struct dblp_bdp *b = &cc->u.bdp;

	b->collapsed = true;
	b->clean_rounds = 0;
	b->clean_bytes = 0;
	b->row_bytes = 0;
	b->crawl_bw = dblp_bdp_scale(bw, CRAWL_PACING);
	/* What looked like congestion was the beginning of this. */
	if (b->round <= b->kept_round + KEPT_ROUNDS && b->kept_bw > cc->btlbw)
		dblp_bdp_bw_set(cc, b->kept_bw);
	b->kept_bw = 0;
	dblp_bdp_forget_losses(b);
}

/* It was the hosts that were silent, and not the path: nothing has been lost. */
static void undo_crawl(struct dblp_bdp *b)
{
	b->collapsed = false;
	b->silent = false;
}

static void end_crawl(struct dblp_cc *cc, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	bool again = b->restored_at && b->round < b->restored_at + CRAWL_AGAIN;

	b->collapsed = false;
	b->silent = false;
	b->restored_at = b->round;
	dblp_bdp_forget_losses(b);
	if ((again || b->queue_rounds) && b->round_bw) {
		/* Not a burst of loss but congestion. */
		dblp_bdp_bw_set(cc, max(b->round_bw, cc->btlbw / 2));
	} else {
		dblp_bdp_bw_set(cc, cc->btlbw);
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

/* R4, at each ACK: so many in a row that arrive are no accident while most are lost. */
static void crawl(struct dblp_cc *cc, const struct dblp_rate_sample *rs, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;

	b->silent = false;
	b->row_bytes = rs->lost ? 0 : b->row_bytes + rs->acked;
	if (b->row_bytes >= CRAWL_CLEAN_PKTS * cc->mss)
		end_crawl(cc, now);
}

/* R4, at the end of a round. */
static void judge_collapse(struct dblp_cc *cc, const struct dblp_bdp_sent *s, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 acked = 0, lost = 0;
	u32 i;

	if (b->collapsed) {
		b->crawl_bw = dblp_bdp_scale(b->round_bw, b->round_lost ? CRAWL_PACING :
					     CRAWL_CLEAN_PACING);
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
		acked += dblp_bdp_sent_in(b, b->round - 2 - i)->acked;
		lost += dblp_bdp_sent_in(b, b->round - 2 - i)->lost;
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
	const struct dblp_bdp_sent *s = dblp_bdp_sent_in(b, b->round - 2);

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
	case DBLP_BDP_CRUISE:
		dblp_bdp_learn_base(cc, s);
		break;
	default:
		break;
	}
}

static void new_round(struct dblp_bdp *b, u64 total_delivered)
{
	struct dblp_bdp_sent *s;

	b->round++;
	s = dblp_bdp_sent_in(b, b->round);
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
	b->max_rtt -= dblp_bdp_queue_delay(b, b->max_rtt) / MAX_RTT_DECAY;
}

/*
 * R3 without loss: was the queue longer than our own ceiling can make it, if BtlBw is
 * right, all the time?  A host that stalls delays what it holds, and then nothing.
 */
static bool standing_long(struct dblp_cc *cc, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;

	if (dblp_bdp_queue_delay(b, b->round_min_rtt) <=
	    max(dblp_bdp_own_queue(cc), dblp_bdp_queue_limit(b))) {
		b->stand_at = now;
		b->stand_rounds = 0;
		b->stand_bw = 0;
		return false;
	}
	b->stand_rounds++;
	b->stand_bw = max(b->stand_bw, b->round_bw);
	return b->stand_rounds >= STAND_ROUNDS && now - b->stand_at >= STAND_MIN_NS;
}

static void end_round(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		      const struct dblp_rtt *rtt, u64 total_delivered, u64 now)
{
	struct dblp_bdp *b = &cc->u.bdp;
	u64 queue = dblp_bdp_queue_delay(b, b->round_min_rtt);
	bool standing = queue > dblp_bdp_queue_limit(b);
	bool congested = standing_long(cc, now);
	bool lossy = false;
	u64 refresh_after = REFRESH_AFTER;
	bool crawled = b->collapsed;
	u64 room;

	if (dblp_bdp_unproven_loss(cc))
		refresh_after = min_t(u64, REFRESH_LOSSY_RTTS * b->srtt, REFRESH_AFTER);
	if (!standing) {
		b->stand_lost = 0;
		b->stand_sent = 0;
	} else if (dblp_bdp_standing_lost(cc)) {
		lossy = true;
	}
	if (dblp_bdp_loss_follows_delay(cc))
		lossy = true;
	if (dblp_bdp_loss_unbearable(cc))
		lossy = true;
	b->queue_rounds = standing ? b->queue_rounds + 1 : 0;
	if (b->queue_rounds == 1) {
		b->doubt_rtt = b->round_min_rtt;
		b->doubt_lost = 0;
		b->doubt_acked = 0;
	}
	b->doubt_lost += b->round_lost;
	b->doubt_acked += b->round_acked;
	if (!standing && !lossy)
		b->cut_queue = 0;
	judge_sent(cc, now);
	dblp_bdp_bw_round(cc);
	dblp_bdp_find_free_loss(cc);

	if (b->mode == DBLP_BDP_STARTUP) {
		startup_round(cc);
	} else if (b->mode == DBLP_BDP_PROBE) {
		probe_round(cc, rs->inflight, now);
		/* The losses of a crawl do not touch the BtlBw that is being kept. */
		if (!crawled && !b->collapsed && (congested || lossy))
			queue_congestion(cc, queue, lossy ? b->round_bw : b->stand_bw, standing,
					 lossy, now);
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
	room = dblp_bdp_bytes(cc) + dblp_bdp_slack(cc) + dblp_bdp_lag(cc);
	if (b->cap_bytes < room && !b->round_ce && !congested && !lossy) {
		b->cap_bytes += dblp_bdp_bytes(cc) / CAP_GROW + cc->mss / 8;
		b->cap_bytes = min(b->cap_bytes, room);
	}
	new_round(b, total_delivered);
}

/* ---- each ACK ---- */

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
	u64 few = cc->mss;
	u64 rate, cap;

	if (b->collapsed) {
		/* A few packets tell sooner that it is over, unless a few are all there are. */
		if (!b->silent)
			few = clamp_t(u64, dblp_bdp_bytes(cc) / CRAWL_PROBE_SHARE, cc->mss,
				      CRAWL_PROBE_PKTS * cc->mss);
		rate = max(b->crawl_bw, dblp_cc_rate(few, b->srtt));
		cap = dblp_bdp_scale(dblp_cc_bytes(rate, b->rtprop), CRAWL_CAP);
	} else if (b->mode == DBLP_BDP_STARTUP) {
		least = DBLP_CC_INIT_PKTS * cc->mss;
		rate = max(dblp_bdp_send_rate(cc), dblp_cc_rate(least, b->srtt));
		rate = max(dblp_bdp_scale(rate, STARTUP_PACING), cc->pacing_rate);
		cap = dblp_bdp_scale(dblp_bdp_bytes(cc) + dblp_bdp_slack(cc), STARTUP_CAP);
	} else if (b->mode == DBLP_BDP_DRAIN) {
		rate = dblp_bdp_scale(dblp_bdp_send_rate(cc), DRAIN_PACING);
		cap = dblp_bdp_scale(dblp_bdp_bytes(cc), STARTUP_CAP) + dblp_bdp_slack(cc);
	} else if (b->mode == DBLP_BDP_REFRESH) {
		rate = dblp_bdp_scale(dblp_bdp_send_rate(cc), CRUISE_PACING);
		cap = dblp_bdp_scale(dblp_bdp_bytes(cc), REFRESH_CAP);
		least = cc->mss;
	} else {
		rate = dblp_bdp_scale(dblp_bdp_send_rate(cc), probe[b->kind].pacing);
		cap = dblp_bdp_scale(dblp_bdp_bytes(cc), probe[b->kind].cap) + dblp_bdp_lag(cc);
		cap += dblp_bdp_slack(cc) * (b->kind == DBLP_BDP_UP ? 2 : 1);
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
	b->lag_ns = LAG_MIN_NS;
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
	dblp_bdp_update_rtprop(b, rs, rtt);
	dblp_bdp_account(cc, rs);
	dblp_bdp_bw_sample(cc, rs);
	dblp_bdp_update_extra(cc, rs, now);
	if (b->silent && rs->spurious)
		undo_crawl(b);
	else if (b->collapsed)
		crawl(cc, rs, now);
	if (rs->ce)
		ce_congestion(cc, rs, total_delivered);
	if (b->mode == DBLP_BDP_DRAIN && drained(cc, rs->inflight))
		cruise(b, now);
	if (b->mode == DBLP_BDP_REFRESH) {
		if (!b->refresh_end && rs->inflight <= cc->inflight_cap)
			b->refresh_end = b->round + 1;
		if (b->refresh_end && rs->rtt_ns)
			b->refresh_rtt = min(b->refresh_rtt, rs->rtt_ns);
	}
	if (rs->interval_ns && rs->prior_delivered >= dblp_bdp_sent_in(b, b->round)->start)
		end_round(cc, rs, rtt, total_delivered, now);
	set_limits(cc);
}

static void bdp_on_persistent_loss(struct dblp_cc *cc, u64 now)
{
	start_crawl(cc, 0);
	cc->u.bdp.silent = true;
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

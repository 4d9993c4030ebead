// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The log of sent packets.
 *
 * Packet numbers are never reused and grow in the order of sending, so the ring is
 * ordered by number and by time at once: what is lost is always a prefix of what is
 * open, and loss detection walks from una and stops at the first packet that is not
 * lost.  What is acknowledged is not walked again either: an acknowledged entry points
 * to a number above itself up to which all are acknowledged, and these pointers are
 * shortened as they are followed, as in a union-find forest.
 *
 * Loss (RFC 9002 §6.1): a packet is lost when reo_pkts later ones have been sent before
 * one that was acknowledged, or when it is older than one acknowledged and was sent
 * more than (8 + reo_eighths)/8 round trips ago.  Both limits grow when an ACK proves a
 * packet alive that had been declared lost, the first to the distance seen, the second
 * by one eighth; after DBLP_REO_DECAY_RTTS round trips without proof of reordering what
 * they have grown by is halved.
 *
 * Invariant between calls: una == next, or the entry of una is in flight.
 */
#include "sentlog.h"

/* Weight of one packet in the loss average: keeps halving exact for small counts. */
#define FATE_UNIT	256
/* The average remembers 256 to 512 packets: 1 % standard error at 5 % loss. */
#define FATE_MAX	(512 * FATE_UNIT)

static struct dblp_sent *entry(const struct dblp_sentlog *s, u64 pn)
{
	return &s->e[pn & (s->size - 1)];
}

void dblp_sentlog_init(struct dblp_sentlog *s, struct dblp_sent *mem, u32 size)
{
	memset(s, 0, sizeof(*s));
	s->e = mem;
	s->size = size;
	s->next = 1;
	s->una = 1;
	s->tail = 1;
	s->reo_pkts = DBLP_REO_PKTS;
	s->reo_eighths = DBLP_REO_EIGHTHS;
}

struct dblp_sent *dblp_sentlog_grow(struct dblp_sentlog *s, struct dblp_sent *mem, u32 size)
{
	struct dblp_sent *old = s->e;
	u64 pn;

	for (pn = s->tail; pn < s->next; pn++)
		mem[pn & (size - 1)] = *entry(s, pn);
	s->e = mem;
	s->size = size;
	return old;
}

bool dblp_sentlog_room(const struct dblp_sentlog *s)
{
	return s->next - s->una < s->size;
}

struct dblp_sent *dblp_sentlog_push(struct dblp_sentlog *s, u32 size, bool counted, u64 now)
{
	struct dblp_sent *e;

	if (DBLP_CHECK(dblp_sentlog_room(s) && size <= U16_MAX))
		return NULL;
	if (s->next - s->tail == s->size)
		s->tail++;

	/* A pipe that was empty says nothing about the rate: the clocks start anew. */
	if (counted && !s->inflight) {
		s->first_at = now;
		s->delivered_at = now;
	}

	e = entry(s, s->next);
	memset(e, 0, sizeof(*e));
	e->at = now;
	e->delivered = s->delivered;
	e->delivered_at = s->delivered_at;
	e->first_at = s->first_at;
	e->size = (u16)size;
	if (s->applim_until)
		e->flags |= DBLP_SENT_APPLIM;
	s->sent_pkts++;
	if (counted) {
		e->flags |= DBLP_SENT_INFLIGHT;
		s->inflight += size;
	} else if (s->una == s->next) {
		s->una++;
	}
	s->next++;
	return e;
}

void dblp_sentlog_app_limited(struct dblp_sentlog *s)
{
	s->applim_until = max_t(u64, s->delivered + s->inflight, 1);
}

/* The smallest number from @pn on that is not acknowledged, at most next. */
static u64 next_open(struct dblp_sentlog *s, u64 pn)
{
	u64 open = pn;

	while (open < s->next && entry(s, open)->flags & DBLP_SENT_ACKED)
		open = entry(s, open)->skip;
	while (pn < open) {
		struct dblp_sent *e = entry(s, pn);

		pn = e->skip;
		e->skip = open;
	}
	return open;
}

static void count_fate(struct dblp_sentlog *s, bool lost)
{
	s->fate_all += FATE_UNIT;
	if (lost)
		s->fate_lost += FATE_UNIT;
	if (s->fate_all >= FATE_MAX) {
		s->fate_all /= 2;
		s->fate_lost /= 2;
	}
}

static void set_loss_ppm(struct dblp_sentlog *s)
{
	if (s->fate_all)
		s->loss_ppm = (u32)div_u64(s->fate_lost * 1000000ULL, s->fate_all);
}

/* Reordering by @dist packets was seen. */
static void note_reordering(struct dblp_sentlog *s, u64 dist, bool spurious, u64 now)
{
	if (dist >= DBLP_REO_PKTS)
		s->reo_at = now;
	if (!spurious)
		return;
	s->reo_at = now;
	if (dist >= s->reo_pkts)
		s->reo_pkts = (u32)min_t(u64, dist + 1, DBLP_REO_PKTS_MAX);
	else if (s->reo_eighths < DBLP_REO_EIGHTHS_MAX)
		s->reo_eighths++;
}

static void forget_reordering(struct dblp_sentlog *s, const struct dblp_rtt *rtt, u64 now)
{
	if (s->reo_pkts == DBLP_REO_PKTS && s->reo_eighths == DBLP_REO_EIGHTHS)
		return;
	if (now - s->reo_at < DBLP_REO_DECAY_RTTS * dblp_rtt_srtt(rtt))
		return;
	s->reo_pkts = DBLP_REO_PKTS + (s->reo_pkts - DBLP_REO_PKTS) / 2;
	s->reo_eighths = DBLP_REO_EIGHTHS + (s->reo_eighths - DBLP_REO_EIGHTHS) / 2;
	s->reo_at = now;
}

/* What one ACK frame has brought so far. */
struct ack_news {
	u64 sent_at;	/* of the newest counted packet */
	u64 first_at, delivered_at, prior_delivered;
	u32 pkts;	/* newly acknowledged, counted or not */
	bool counted;	/* one of them was counted */
	bool applim;
};

static void ack_one(struct dblp_sentlog *s, u64 pn, const struct dblp_sent_events *ev,
		    void *ctx, struct ack_news *news, struct dblp_rate_sample *rs, u64 now)
{
	struct dblp_sent *e = entry(s, pn);
	bool spurious = e->flags & DBLP_SENT_LOST;
	bool counted = spurious || e->flags & DBLP_SENT_INFLIGHT;

	news->pkts++;
	if (counted) {
		if (spurious) {
			s->spurious++;
			rs->spurious += e->size;
			s->lost -= e->size;
			s->fate_lost -= min_t(u32, s->fate_lost, FATE_UNIT);
		} else {
			s->inflight -= e->size;
			count_fate(s, false);
		}
		if (pn < s->largest)
			note_reordering(s, s->largest - pn, spurious, now);
		rs->acked += e->size;
		s->delivered += e->size;
		s->delivered_at = now;
		/* Ranges come in ascending order: the last one is the newest. */
		news->counted = true;
		news->sent_at = e->at;
		news->first_at = e->first_at;
		news->delivered_at = e->delivered_at;
		news->prior_delivered = e->delivered;
		news->applim = e->flags & DBLP_SENT_APPLIM;
	}
	e->flags = (e->flags | DBLP_SENT_ACKED) & ~DBLP_SENT_INFLIGHT;
	ev->acked(ctx, pn, e);
	e->skip = pn + 1;
}

/* The oldest number acknowledged by the frame, 0 if the ranges are impossible. */
static u64 check_ranges(const struct dblp_sentlog *s, const struct dblp_f_ack *f, u64 largest)
{
	u64 low = largest + 1;
	u32 i;

	if (!f->nranges || f->nranges > DBLP_ACK_RANGES || f->range[0].gap)
		return 0;
	if (!largest || largest >= s->next)
		return 0;
	for (i = 0; i < f->nranges; i++) {
		u64 step = (u64)f->range[i].gap + f->range[i].len;

		if (!f->range[i].len || step >= low)
			return 0;
		low -= step;
	}
	return low;
}

static u64 loss_delay(const struct dblp_sentlog *s, const struct dblp_rtt *rtt)
{
	u64 base = max_t(u64, dblp_rtt_srtt(rtt), rtt->latest);

	return base + base * s->reo_eighths / 8;
}

static void lose_one(struct dblp_sentlog *s, u64 pn, const struct dblp_sent_events *ev,
		     void *ctx)
{
	struct dblp_sent *e = entry(s, pn);

	e->flags = (e->flags | DBLP_SENT_LOST) & ~DBLP_SENT_INFLIGHT;
	s->inflight -= e->size;
	s->lost += e->size;
	s->lost_pkts++;
	count_fate(s, true);
	ev->lost(ctx, pn, e);
}

/*
 * Moves una to the oldest packet in flight, declaring lost on the way what is.  A
 * packet is lost together with all that are older, so it stops at the first that is not.
 */
static u64 settle(struct dblp_sentlog *s, const struct dblp_rtt *rtt,
		  const struct dblp_sent_events *ev, void *ctx, u64 now)
{
	u64 delay = loss_delay(s, rtt);
	u64 bytes = 0;

	while (s->una < s->next) {
		const struct dblp_sent *e = entry(s, s->una);

		if (e->flags & DBLP_SENT_ACKED) {
			s->una = next_open(s, s->una);
			continue;
		}
		if (e->flags & DBLP_SENT_INFLIGHT) {
			if (s->una >= s->largest ||
			    (s->largest - s->una < s->reo_pkts && now < e->at + delay))
				break;
			if (!s->lost_unsaid)
				s->lost_prior = e->delivered;
			s->lost_unsaid += e->size;
			bytes += e->size;
			lose_one(s, s->una, ev, ctx);
		}
		s->una++;
	}
	if (bytes)
		set_loss_ppm(s);
	return bytes;
}

static void take_ce(struct dblp_sentlog *s, const struct dblp_f_ack *f,
		    const struct ack_news *news, struct dblp_rate_sample *rs)
{
	u32 more = f->ce - s->ce_seen;

	/* The count wraps; one that fell is an old frame or a lie. */
	if (!more || more > U32_MAX / 2)
		return;
	s->ce_seen = f->ce;
	/* More marks than packets cannot be. */
	rs->ce = min_t(u32, more, news->pkts);
}

static void sample_rate(const struct dblp_sentlog *s, const struct ack_news *news,
			struct dblp_rate_sample *rs)
{
	rs->prior_delivered = news->prior_delivered;
	rs->delivered = s->delivered - news->prior_delivered;
	rs->app_limited = news->applim;
	rs->interval_ns = max_t(u64, news->sent_at - news->first_at,
				s->delivered_at - news->delivered_at);
}

int dblp_sentlog_ack(struct dblp_sentlog *s, const struct dblp_f_ack *f, struct dblp_rtt *rtt,
		     const struct dblp_sent_events *ev, void *ctx, struct dblp_rate_sample *rs,
		     u64 now)
{
	u64 largest = dblp_expand32(f->largest, s->next);
	u64 low = check_ranges(s, f, largest);
	struct ack_news news = { 0 };
	u64 rtt_ns = 0;
	u32 i;

	memset(rs, 0, sizeof(*rs));
	rs->inflight = s->inflight;
	if (!low)
		return DBLP_REJECT_ACK;

	/* Oldest range first, so that callbacks and samples see numbers in order. */
	for (i = f->nranges; i-- > 0;) {
		u64 end = low + f->range[i].len;
		u64 pn = next_open(s, max_t(u64, low, s->tail));

		while (pn < end) {
			ack_one(s, pn, ev, ctx, &news, rs, now);
			if (pn == largest && largest > s->largest)
				rtt_ns = max_t(u64, now - entry(s, pn)->at, 1);
			pn = next_open(s, pn + 1);
		}
		low = end + f->range[i].gap;
	}

	if (largest > s->largest)
		s->largest = largest;
	if (news.counted) {
		/* The first of two packets sent in a row is acknowledged later than the
		 * second if they swap: the clock of sending must not go back.
		 */
		s->first_at = max_t(u64, s->first_at, news.sent_at);
		if (rtt_ns) {
			rs->rtt_ns = rtt_ns;
			dblp_rtt_sample(rtt, rtt_ns, f->delay_us * DBLP_NSEC_PER_USEC, now);
		}
		sample_rate(s, &news, rs);
		set_loss_ppm(s);
		if (s->applim_until && s->delivered > s->applim_until)
			s->applim_until = 0;
	}
	forget_reordering(s, rtt, now);
	take_ce(s, f, &news, rs);
	settle(s, rtt, ev, ctx, now);
	rs->lost = s->lost_unsaid;
	rs->lost_prior_delivered = s->lost_prior;
	s->lost_unsaid = 0;
	rs->inflight = s->inflight;
	return 0;
}

u64 dblp_sentlog_loss_timer(const struct dblp_sentlog *s, const struct dblp_rtt *rtt)
{
	if (s->una >= s->largest)
		return DBLP_NEVER;
	return entry(s, s->una)->at + loss_delay(s, rtt);
}

u64 dblp_sentlog_detect(struct dblp_sentlog *s, const struct dblp_rtt *rtt,
			const struct dblp_sent_events *ev, void *ctx, u64 now)
{
	return settle(s, rtt, ev, ctx, now);
}

u64 dblp_sentlog_lose_all(struct dblp_sentlog *s, const struct dblp_sent_events *ev, void *ctx)
{
	u64 bytes = s->inflight;

	for (; s->una < s->next; s->una++)
		if (entry(s, s->una)->flags & DBLP_SENT_INFLIGHT)
			lose_one(s, s->una, ev, ctx);
	set_loss_ppm(s);
	return bytes;
}

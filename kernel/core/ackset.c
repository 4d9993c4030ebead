// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "ackset.h"

void dblp_ackset_init(struct dblp_ackset *s)
{
	memset(s, 0, sizeof(*s));
	s->ack_at = DBLP_NEVER;
}

u64 dblp_ackset_largest(const struct dblp_ackset *s)
{
	return s->n ? s->r[0].last : 0;
}

/* Index of the newest range that starts at or below @pn. */
static u32 find(const struct dblp_ackset *s, u64 pn)
{
	u32 i = 0;

	while (i < s->n && s->r[i].first > pn)
		i++;
	return i;
}

bool dblp_ackset_has(const struct dblp_ackset *s, u64 pn)
{
	u32 i;

	if (pn <= s->forgotten)
		return true;
	i = find(s, pn);
	return i < s->n && pn <= s->r[i].last;
}

static void remove_range(struct dblp_ackset *s, u32 i)
{
	s->n--;
	memmove(&s->r[i], &s->r[i + 1], (s->n - i) * sizeof(s->r[0]));
}

static void insert_range(struct dblp_ackset *s, u32 i, u64 pn)
{
	if (s->n == DBLP_ACKSET_RANGES) {
		if (i == s->n) {
			s->forgotten = pn;
			return;
		}
		s->n--;
		s->forgotten = s->r[s->n].last;
	}
	memmove(&s->r[i + 1], &s->r[i], (s->n - i) * sizeof(s->r[0]));
	s->r[i].first = pn;
	s->r[i].last = pn;
	s->n++;
}

static void insert(struct dblp_ackset *s, u64 pn)
{
	u32 i = find(s, pn);
	bool below = i < s->n && s->r[i].last + 1 == pn;
	bool above = i && s->r[i - 1].first == pn + 1;

	if (below && above) {
		s->r[i - 1].first = s->r[i].first;
		remove_range(s, i);
	} else if (below) {
		s->r[i].last = pn;
	} else if (above) {
		s->r[i - 1].first = pn;
	} else {
		insert_range(s, i, pn);
	}
}

static void count_ecn(struct dblp_ackset *s, u8 ecn)
{
	if (ecn == DBLP_ECN_ECT0)
		s->ect0++;
	else if (ecn == DBLP_ECN_ECT1)
		s->ect1++;
	else if (ecn == DBLP_ECN_CE)
		s->ce++;
}

void dblp_ackset_add(struct dblp_ackset *s, u64 pn, u8 ecn, bool eliciting, u64 now,
		     u64 rtt_ns)
{
	u64 largest = dblp_ackset_largest(s);
	u64 delay = DBLP_ACK_DELAY_NS;

	if (DBLP_CHECK(!dblp_ackset_has(s, pn)))
		return;
	insert(s, pn);
	count_ecn(s, ecn);
	if (pn > largest)
		s->largest_at = now;
	if (eliciting)
		s->unacked++;

	if (pn != largest + 1 || ecn == DBLP_ECN_CE || s->unacked >= DBLP_ACK_EVERY) {
		s->ack_at = 0;
	} else if (eliciting) {
		if (rtt_ns)
			delay = min_t(u64, delay, rtt_ns / 4);
		s->ack_at = min_t(u64, s->ack_at, now + delay);
	}
}

void dblp_ackset_urge(struct dblp_ackset *s)
{
	s->ack_at = 0;
}

void dblp_ackset_fill(struct dblp_ackset *s, struct dblp_f_ack *f, u64 now)
{
	u64 gap, len, delay = now > s->largest_at ? now - s->largest_at : 0;
	u32 i;

	f->largest = (u32)dblp_ackset_largest(s);
	f->delay_us = (u32)min_t(u64, div_u64(delay, DBLP_NSEC_PER_USEC), U32_MAX);
	f->ect0 = s->ect0;
	f->ect1 = s->ect1;
	f->ce = s->ce;

	/*
	 * What does not fit 16 bits ends the list: it is further back than any sender
	 * remembers.
	 */
	for (i = 0; i < s->n && i < DBLP_ACK_RANGES; i++) {
		gap = i ? s->r[i - 1].first - s->r[i].last - 1 : 0;
		if (gap > U16_MAX)
			break;
		len = s->r[i].last - s->r[i].first + 1;
		f->range[i].gap = (u16)gap;
		f->range[i].len = (u16)min_t(u64, len, U16_MAX);
		if (len > U16_MAX) {
			i++;
			break;
		}
	}
	f->nranges = (u8)i;
	s->unacked = 0;
	s->ack_at = DBLP_NEVER;
}

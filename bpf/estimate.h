/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Estimators of a path, for BPF programs and for their tests in user space.
 *
 * A path has a rate that it cannot exceed (BtlBw) and a round trip that it cannot go
 * below (RTprop).  They cannot be seen at once: at full rate there is a queue, without a
 * queue there is not full rate.  So the best of each over a window is kept: BtlBw is the
 * largest delivery rate of ten round trips, RTprop the shortest round trip of two
 * seconds.  What a flow does not try it cannot see: a flow that never fills the path has
 * too small a BtlBw, and one that never lets the queue drain too long an RTprop.
 *
 * The windows are eight buckets, the oldest of which is forgotten at once: a value is
 * remembered for 7/8 to 8/8 of the window.
 */
#ifndef DBLP_BPF_ESTIMATE_H
#define DBLP_BPF_ESTIMATE_H

#define DBLP_NSEC_PER_SEC	1000000000ULL
/* A bucket of BtlBw is no shorter, as a few packets say nothing about a rate. */
#define DBLP_MIN_BW_BUCKET	(2 * 1000 * 1000ULL)

struct dblp_sample {
	__u64	now;
	__u64	bytes, interval_ns;	/* delivered in that time; interval 0: no rate */
	__u64	rtt_ns;			/* 0: none */
	__u64	acked, lost, ce;	/* bytes since the last sample */
	__u8	app_limited;
};

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

static __always_inline __u64 dblp_window_best(const struct dblp_window *w, int smallest)
{
	__u64 best = 0;
	int i;

#pragma GCC unroll 8
	for (i = 0; i < DBLP_FLOWS_BUCKETS; i++) {
		__u64 v = w->best[i];

		if (v && (!best || (smallest ? v < best : v > best)))
			best = v;
	}
	return best;
}

static __always_inline void dblp_window_next(struct dblp_window *w)
{
	w->at = (w->at + 1) % DBLP_FLOWS_BUCKETS;
	w->best[w->at % DBLP_FLOWS_BUCKETS] = 0;
}

static __always_inline void dblp_window_put(struct dblp_window *w, __u64 v, int smallest)
{
	__u64 *best = &w->best[w->at % DBLP_FLOWS_BUCKETS];

	if (!*best || (smallest ? v < *best : v > *best))
		*best = v;
}

/*
 * The time a flow is silent is no round trip: the window moves by one bucket at most for
 * each sample, and not at all for those that are limited by the application.
 */
static __always_inline void dblp_btlbw_add(struct dblp_flow *f, const struct dblp_sample *s)
{
	__u64 width = f->rtprop_ns * DBLP_FLOWS_ROUNDS / DBLP_FLOWS_BUCKETS;

	if (!s->interval_ns || !s->bytes)
		return;
	/* 64 bits last for 18 GB in one sample. */
	f->rate = s->bytes * DBLP_NSEC_PER_SEC / s->interval_ns;
	f->app_limited = s->app_limited;
	if (s->app_limited && f->rate < f->btlbw)
		return;
	if (width < DBLP_MIN_BW_BUCKET)
		width = DBLP_MIN_BW_BUCKET;
	if (!f->bw_window.start) {
		f->bw_window.start = s->now;
	} else if (!s->app_limited && s->now - f->bw_window.start >= width) {
		f->bw_window.start = s->now;
		dblp_window_next(&f->bw_window);
	}
	dblp_window_put(&f->bw_window, f->rate, 0);
	f->btlbw = dblp_window_best(&f->bw_window, 0);
}

static __always_inline void dblp_rtprop_add(struct dblp_flow *f, const struct dblp_sample *s,
					    __u64 window_ns)
{
	__u64 width = window_ns / DBLP_FLOWS_BUCKETS;
	__u64 past;
	__u32 i;

	if (!s->rtt_ns)
		return;
	f->rtt_ns = s->rtt_ns;
	if (!width)
		width = 1;
	past = s->now > f->rtt_window.start ? (s->now - f->rtt_window.start) / width : 0;
	if (past) {
#pragma GCC unroll 8
		for (i = 0; i < DBLP_FLOWS_BUCKETS; i++)
			if (i < past)
				dblp_window_next(&f->rtt_window);
		f->rtt_window.start += past * width;
	}
	dblp_window_put(&f->rtt_window, s->rtt_ns, 1);
	f->rtprop_ns = dblp_window_best(&f->rtt_window, 1);
}

/* Shares are those of this second and the one before it. */
static __always_inline void dblp_share_add(struct dblp_flow *f, const struct dblp_sample *s)
{
	__u64 age = s->now - f->share_start, all;

	if (age >= DBLP_NSEC_PER_SEC) {
		if (age < 2 * DBLP_NSEC_PER_SEC) {
			f->share[1] = f->share[0];
		} else {
			f->share[1].acked = 0;
			f->share[1].lost = 0;
			f->share[1].ce = 0;
		}
		f->share[0].acked = 0;
		f->share[0].lost = 0;
		f->share[0].ce = 0;
		f->share_start = s->now;
	}
	f->share[0].acked += s->acked;
	f->share[0].lost += s->lost;
	f->share[0].ce += s->ce;

	all = f->share[0].acked + f->share[1].acked;
	f->ecn_ppm = all ? (f->share[0].ce + f->share[1].ce) * 1000000 / all : 0;
	if (f->ecn_ppm > 1000000)
		f->ecn_ppm = 1000000;
	all += f->share[0].lost + f->share[1].lost;
	f->loss_ppm = all ? (f->share[0].lost + f->share[1].lost) * 1000000 / all : 0;
}

static __always_inline void dblp_estimate(struct dblp_flow *f, const struct dblp_sample *s,
					  __u64 window_ns)
{
	/* The round trip first: it is the unit of the other window. */
	dblp_rtprop_add(f, s, window_ns);
	dblp_btlbw_add(f, s);
	dblp_share_add(f, s);
	/* In microseconds, so that 100 Gb/s and 10 s do not overflow. */
	f->bdp = f->btlbw * (f->rtprop_ns / 1000) / 1000000;
	f->samples++;
	f->last_ns = s->now;
}

/* Has @v gone away from what was told by more than @percent? */
static __always_inline int dblp_changed(__u64 told, __u64 v, __u32 percent)
{
	__u64 diff = v > told ? v - told : told - v;

	return diff * 100 > told * percent;
}

#endif /* DBLP_BPF_ESTIMATE_H */

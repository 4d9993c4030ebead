/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The bound: how much of a message may be missing, who shares it, when the receiver
 * judges, how much to repair.  dblp-wire.rst §5 and §7.
 */
#ifndef DBLP_BOUND_H
#define DBLP_BOUND_H

#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* floor(ppm / 1e6 * bytes), exact. */
u64 dblp_allowance(u32 ppm, u64 bytes);

/**
 * struct dblp_group - tolerance shared by small messages (dblp-wire.rst §7)
 * @id: the application's number, not 0
 * @ppm: tolerance of the first message; a message with another one starts anew
 * @bytes: sum of L over the messages so far
 * @used: bytes missing of finished ones plus A of unfinished ones
 * @gen: which start of it this is: settles of earlier ones do not count
 */
struct dblp_group {
	u32 id, ppm, gen;
	u64 bytes, used;
};

/* A of the group's next message; it is added to the group. */
u32 dblp_group_admit(struct dblp_group *g, u32 ppm, u32 msg_len, u32 seg_size);
/*
 * The message that was given @allow by this group, which has not started anew since,
 * ended with @missing bytes missing.
 */
void dblp_group_settle(struct dblp_group *g, u32 allow, u32 missing);

/* What the receiver knows of a message when it may judge it. */
struct dblp_judge_in {
	u32 missing;		/* bytes */
	u32 prot_missing;	/* protected segments missing */
	u32 allow;		/* A, bytes */
	u8  mode;		/* enum dblp_wire_mode */
	bool desc;		/* DESC known */
	bool mark;		/* MARK of the current pass seen */
	bool close;		/* CLOSE seen */
	bool reo_over;		/* reordering window over since MARK or CLOSE */
	bool hold_over;		/* hold timer expired */
};

enum dblp_judgement { DBLP_JUDGE_WAIT, DBLP_JUDGE_OK, DBLP_JUDGE_BELOW, DBLP_JUDGE_NEED };

/**
 * dblp_judge() - the receiver's decision, dblp-wire.rst "Judgement"
 * @in: what it knows
 *
 * Return: WAIT, a final OK or BELOW, or NEED: not judged, but the sender must be
 * told what is missing.
 */
enum dblp_judgement dblp_judge(const struct dblp_judge_in *in);

/* Is the bound met? */
static inline bool dblp_bound_met(const struct dblp_judge_in *in)
{
	return in->missing <= in->allow && !in->prot_missing;
}

/**
 * dblp_repair_bytes() - how much to send again for what is needed
 * @need: bytes that must arrive
 * @missing: bytes missing in all
 * @loss_ppm: measured loss rate of the flow
 * @seg_size: bytes of a segment: the variance is counted in segments
 *
 * min(missing, need/(1-p) + 3 sqrt(need p)/(1-p)) with need in segments; p is
 * clamped to 0.95.
 *
 * Return: bytes, at least min(need, missing).
 */
u64 dblp_repair_bytes(u64 need, u64 missing, u32 loss_ppm, u32 seg_size);

/* Integer square root, rounded down. */
u32 dblp_isqrt(u64 v);

/**
 * struct dblp_perm - the order in which segments are sent first: a*i + b mod n
 * @a: coprime to @n
 * @b: offset
 * @n: segments
 */
struct dblp_perm {
	u32 a, b, n;
};

/* Keyed by @key; identity if @ordered or n < 3. */
void dblp_perm_init(struct dblp_perm *p, u32 n, u64 key, bool ordered);
/* Segment sent at position @i < n. */
u32 dblp_perm_at(const struct dblp_perm *p, u32 i);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_BOUND_H */

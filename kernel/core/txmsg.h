/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Segments of a message at its sender: which one to send next, what is lost, what is to
 * be repaired.  Knows nothing of packets and timers; private to the core.
 */
#ifndef DBLP_TXMSG_H
#define DBLP_TXMSG_H

#include "tx.h"

#define DBLP_NO_SEG U32_MAX

static inline u32 dblp_txmsg_seg_len(const struct dblp_txmsg *m, u32 s)
{
	return dblp_seg_len(m->len, m->seg_size, s);
}

/* Prepares the segment states; owner's fields and id are set. */
void dblp_txmsg_start(struct dblp_txmsg *m, u64 seed);
/* Nothing of it has arrived (BUSY): all segments unsent again. */
void dblp_txmsg_restart(struct dblp_txmsg *m);

/* The first pass has been sent, every repair too. */
bool dblp_txmsg_pass_over(const struct dblp_txmsg *m);
/* Losses exceed what may be lost: repair inside the pass. */
bool dblp_txmsg_excess(const struct dblp_txmsg *m);

/**
 * dblp_txmsg_next() - the segment to send now
 * @m: the message
 * @repair: set if it was sent before
 *
 * Repairs asked for, then excess losses, then the first pass.
 *
 * Return: the segment, DBLP_NO_SEG if there is none.
 */
u32 dblp_txmsg_next(struct dblp_txmsg *m, bool *repair);

/* Segment @s, from dblp_txmsg_next(), goes out in packet @pn. */
void dblp_txmsg_sent(struct dblp_txmsg *m, u32 s, u64 pn);
/* The packet @pn that carried it was acknowledged / declared lost. */
void dblp_txmsg_acked(struct dblp_txmsg *m, u32 s);
void dblp_txmsg_lost(struct dblp_txmsg *m, u32 s, u64 pn);

/**
 * dblp_txmsg_need() - take in a NEED that is obeyed
 * @m: the message
 * @f: the frame, its list checked
 * @loss_ppm: measured loss of the flow
 *
 * Marks what it lists as lost, unless it is in flight, and queues the repair.
 */
void dblp_txmsg_need(struct dblp_txmsg *m, const struct dblp_f_need *f, u32 loss_ppm);

#endif /* DBLP_TXMSG_H */

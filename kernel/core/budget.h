/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Room for whole messages at a receiving socket, shared by all its flows.  A message
 * that was admitted can always finish; the rest wait in FIFO order.  The caller
 * serialises access.
 */
#ifndef DBLP_BUDGET_H
#define DBLP_BUDGET_H

#include "dblp_deps.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dblp_budget {
	u64 limit, used;
	struct list_head waiters;
	u32 nwaiters;
};

/**
 * struct dblp_claim - one message's place in the budget
 * @node: in the list of waiters
 * @bytes: room it needs
 * @held: the room is reserved
 */
struct dblp_claim {
	struct list_head node;
	u64 bytes;
	bool held;
};

void dblp_budget_init(struct dblp_budget *b, u64 limit);
void dblp_claim_init(struct dblp_claim *c);
/**
 * dblp_budget_claim() - reserve room or wait for it
 * @b: the budget
 * @c: the claim
 * @bytes: room that it needs
 *
 * FIFO: fails while others wait, even if there would be room.  A claim larger than
 * the limit is granted when nothing else is held, so that it cannot wait for ever.
 *
 * Return: true if held now; else it is queued (idempotent).
 */
bool dblp_budget_claim(struct dblp_budget *b, struct dblp_claim *c, u64 bytes);
/* Gives room back or leaves the queue; idempotent. */
void dblp_budget_release(struct dblp_budget *b, struct dblp_claim *c);
/* The next waiter that fits, its room reserved; NULL if none. */
struct dblp_claim *dblp_budget_grant(struct dblp_budget *b);
/* Free bytes, 0 if over. */
u64 dblp_budget_free(const struct dblp_budget *b);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_BUDGET_H */

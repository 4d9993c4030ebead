// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "budget.h"

static bool fits(const struct dblp_budget *b, u64 bytes)
{
	/* The first test lets through what is larger than the limit. */
	return !b->used || bytes <= dblp_budget_free(b);
}

static void hold(struct dblp_budget *b, struct dblp_claim *c)
{
	b->used += c->bytes;
	c->held = true;
}

static void leave_queue(struct dblp_budget *b, struct dblp_claim *c)
{
	list_del_init(&c->node);
	b->nwaiters--;
}

void dblp_budget_init(struct dblp_budget *b, u64 limit)
{
	b->limit = limit;
	b->used = 0;
	b->nwaiters = 0;
	INIT_LIST_HEAD(&b->waiters);
}

void dblp_claim_init(struct dblp_claim *c)
{
	INIT_LIST_HEAD(&c->node);
	c->bytes = 0;
	c->held = false;
}

bool dblp_budget_claim(struct dblp_budget *b, struct dblp_claim *c, u64 bytes)
{
	if (c->held)
		return true;
	if (!list_empty(&c->node))
		return false;

	c->bytes = bytes;
	if (list_empty(&b->waiters) && fits(b, bytes)) {
		hold(b, c);
		return true;
	}
	list_add_tail(&c->node, &b->waiters);
	b->nwaiters++;
	return false;
}

void dblp_budget_release(struct dblp_budget *b, struct dblp_claim *c)
{
	if (c->held) {
		b->used -= c->bytes;
		c->held = false;
	} else if (!list_empty(&c->node)) {
		leave_queue(b, c);
	}
}

struct dblp_claim *dblp_budget_grant(struct dblp_budget *b)
{
	struct dblp_claim *c;

	c = list_first_entry_or_null(&b->waiters, struct dblp_claim, node);
	if (!c || !fits(b, c->bytes))
		return NULL;
	leave_queue(b, c);
	hold(b, c);
	return c;
}

u64 dblp_budget_free(const struct dblp_budget *b)
{
	return b->used < b->limit ? b->limit - b->used : 0;
}

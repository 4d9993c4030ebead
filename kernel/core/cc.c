// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The congestion controls by name.
 */
#include "cc.h"

static const struct dblp_cc_ops * const controls[] = {
	&dblp_cc_bdp,
	&dblp_cc_fixed,
};

const struct dblp_cc_ops *dblp_cc_find(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(controls); i++)
		if (!strcmp(controls[i]->name, name))
			return controls[i];
	return NULL;
}

void dblp_cc_init(struct dblp_cc *cc, const struct dblp_cc_ops *ops, u32 mss, u64 now)
{
	memset(cc, 0, sizeof(*cc));
	cc->ops = ops;
	cc->mss = mss;
	ops->init(cc, mss, now);
}

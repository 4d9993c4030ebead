// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "dblp_deps.h"
#include "reject.h"

static const char *const names[DBLP_REJECT_COUNT] = {
	[DBLP_REJECT_NONE] = "none",
#define X(name, str, what) \
	[DBLP_REJECT_##name] = str,
	DBLP_REJECTS(X)
#undef X
};

const char *dblp_reject_name(enum dblp_reject r)
{
	return (unsigned int)r < DBLP_REJECT_COUNT ? names[r] : "?";
}

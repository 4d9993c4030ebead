/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DBLP_SAMPLE_H
#define DBLP_SAMPLE_H

#include "flow.h"
#include "trace.h"

void __dblp_sample_trace(struct dblp_txflow *t);

/**
 * dblp_sample_trace() - tell who listens what the last packet said about the path
 * @t: the flow, locked
 * @before: its count of samples before that packet
 */
static inline void dblp_sample_trace(struct dblp_txflow *t, u32 before)
{
	if (trace_dblp_rate_sample_enabled() && t->tx.samples != before)
		__dblp_sample_trace(t);
}

#endif /* DBLP_SAMPLE_H */

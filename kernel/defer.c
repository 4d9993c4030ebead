// SPDX-License-Identifier: GPL-2.0
/*
 * Flows that packets have come for, each to be run once when this round of receiving is
 * over: so a burst of packets is answered by one ACK, and a burst of ACKs by one batch.
 *
 * Each CPU has a list, which only its softirqs touch: no lock.  A flow is on one list at
 * most (flow->deferred, under its lock), and is held while it is there.
 */
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include "flow.h"

/**
 * struct dblp_defer - flows deferred on one CPU
 * @flows: by flow->defer_node
 * @tasklet: runs them
 */
struct dblp_defer {
	struct list_head flows;
	struct tasklet_struct tasklet;
};

static DEFINE_PER_CPU(struct dblp_defer, dblp_defer);

static void dblp_defer_run(struct tasklet_struct *t)
{
	struct dblp_defer *d = from_tasklet(d, t, tasklet);
	struct dblp_flow *f, *n;
	LIST_HEAD(flows);

	/* What is deferred meanwhile waits for the next time. */
	list_splice_init(&d->flows, &flows);
	list_for_each_entry_safe(f, n, &flows, defer_node) {
		dblp_flow_lock(f, ktime_get_ns());
		list_del(&f->defer_node);
		f->deferred = false;
		dblp_flow_run(f);
		dblp_flow_put(f);
	}
}

/**
 * dblp_flow_run_later() - as dblp_flow_run(), when the packets that have arrived are read
 * @f: the flow
 *
 * Softirq; called with flow->lock held, gives it back.
 */
void dblp_flow_run_later(struct dblp_flow *f)
	__releases(&f->lock)
{
	struct dblp_defer *d = this_cpu_ptr(&dblp_defer);

	lockdep_assert_held(&f->lock);
	/* Dead now, it has lost the reference that we would hold it by. */
	if (f->dead) {
		dblp_flow_run(f);
		return;
	}
	if (!f->deferred) {
		f->deferred = true;
		refcount_inc(&f->refs);
		list_add_tail(&f->defer_node, &d->flows);
		tasklet_schedule(&d->tasklet);
	}
	spin_unlock(&f->lock);
}

void __init dblp_defer_init(void)
{
	struct dblp_defer *d;
	int cpu;

	for_each_possible_cpu(cpu) {
		d = per_cpu_ptr(&dblp_defer, cpu);
		INIT_LIST_HEAD(&d->flows);
		tasklet_setup(&d->tasklet, dblp_defer_run);
	}
}

/* No flow is left; the last tasklet may still be about to return. */
void dblp_defer_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		tasklet_kill(&per_cpu_ptr(&dblp_defer, cpu)->tasklet);
}

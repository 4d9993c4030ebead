// SPDX-License-Identifier: GPL-2.0
/* Counters: see mib.h. */
#include <linux/percpu.h>
#include "dblp.h"
#include "mib.h"

static const char *const dblp_mib_names[DBLP_MIB_REJECT] = {
#define X(name, str, what) [DBLP_MIB_##name] = #str,
	DBLP_MIBS(X)
#undef X
};

void dblp_mib_add(struct dblp_net *dn, enum dblp_mib i, u64 n)
{
	this_cpu_add(dn->mib->v[i], n);
}

u64 dblp_mib_sum(struct dblp_net *dn, unsigned int i)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dn->mib, cpu)->v[i]);
	return sum;
}

const char *dblp_mib_name(unsigned int i)
{
	return i < DBLP_MIB_REJECT ? dblp_mib_names[i] :
				     dblp_reject_name(i - DBLP_MIB_REJECT + 1);
}

int dblp_mib_init(struct dblp_net *dn)
{
	dn->mib = alloc_percpu(struct dblp_mibs);
	return dn->mib ? 0 : -ENOMEM;
}

void dblp_mib_exit(struct dblp_net *dn)
{
	free_percpu(dn->mib);
}

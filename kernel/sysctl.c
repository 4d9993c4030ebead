// SPDX-License-Identifier: GPL-2.0
/*
 * net.dblp.*.  Memory limits are those of the machine: to be set in the first network
 * namespace, to be read in all of them.
 */
#include <linux/swap.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include "dblp.h"

#define DBLP_BUF_MIN	4096
/* Twice that still fits into the 31 bits of a socket's accounts. */
#define DBLP_BUF_MAX	((1 << 30) - (1 << 20))

long dblp_sysctl_mem[3] __read_mostly;
/* A message of 64 MiB and what keeping it costs fit without any setting. */
int dblp_sysctl_wmem[3] __read_mostly = { 1 << 16, 1 << 27, DBLP_BUF_MAX };
int dblp_sysctl_rmem[3] __read_mostly = { 1 << 16, 1 << 27, DBLP_BUF_MAX };

static int dblp_buf_min = DBLP_BUF_MIN;
static int dblp_buf_max = DBLP_BUF_MAX;
static unsigned int dblp_message_min = 1;
static unsigned int dblp_message_max = DBLP_MAX_MESSAGE;

enum { DBLP_CTL_MEM, DBLP_CTL_WMEM, DBLP_CTL_RMEM, DBLP_CTL_MAX_MESSAGE, DBLP_CTL_COUNT };

static const struct ctl_table dblp_ctl_table[DBLP_CTL_COUNT + 1] = {
	[DBLP_CTL_MEM] = {
		.procname	= "mem",
		.data		= dblp_sysctl_mem,
		.maxlen		= sizeof(dblp_sysctl_mem),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
	},
	[DBLP_CTL_WMEM] = {
		.procname	= "wmem",
		.data		= dblp_sysctl_wmem,
		.maxlen		= sizeof(dblp_sysctl_wmem),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= &dblp_buf_min,
		.extra2		= &dblp_buf_max,
	},
	[DBLP_CTL_RMEM] = {
		.procname	= "rmem",
		.data		= dblp_sysctl_rmem,
		.maxlen		= sizeof(dblp_sysctl_rmem),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= &dblp_buf_min,
		.extra2		= &dblp_buf_max,
	},
	[DBLP_CTL_MAX_MESSAGE] = {
		.procname	= "max_message",
		.maxlen		= sizeof(unsigned int),
		.mode		= 0644,
		.proc_handler	= proc_douintvec_minmax,
		.extra1		= &dblp_message_min,
		.extra2		= &dblp_message_max,
	},
	{ }
};

void __init dblp_sysctl_mem_init(void)
{
	long pages = max_t(long, nr_free_buffer_pages() / 4, 128);

	dblp_sysctl_mem[0] = pages / 4 * 3;
	dblp_sysctl_mem[1] = pages;
	dblp_sysctl_mem[2] = pages / 4 * 3 * 2;
}

int __net_init dblp_sysctl_init(struct net *net)
{
	struct dblp_net *dn = dblp_pernet(net);
	struct ctl_table *t;

	t = kmemdup(dblp_ctl_table, sizeof(dblp_ctl_table), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	t[DBLP_CTL_MAX_MESSAGE].data = &dn->max_message;
	if (!net_eq(net, &init_net)) {
		t[DBLP_CTL_MEM].mode = 0444;
		t[DBLP_CTL_WMEM].mode = 0444;
		t[DBLP_CTL_RMEM].mode = 0444;
	}
	dn->ctl = dblp_sysctl_register(net, "net/dblp", t, DBLP_CTL_COUNT);
	if (!dn->ctl) {
		kfree(t);
		return -ENOMEM;
	}
	dn->ctl_table = t;
	return 0;
}

void dblp_sysctl_exit(struct net *net)
{
	struct dblp_net *dn = dblp_pernet(net);

	unregister_net_sysctl_table(dn->ctl);
	kfree(dn->ctl_table);
}

// SPDX-License-Identifier: GPL-2.0
/* DBLP: the module. */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/net.h>
#include "dblp.h"
#include "flow.h"

int dblp_family __read_mostly = AF_DBLP;
module_param_named(family, dblp_family, int, 0444);
MODULE_PARM_DESC(family, "address family number (default 18)");

static int __init dblp_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct dblp_send_params) != 32);
	BUILD_BUG_ON(sizeof(struct dblp_range) != 16);
	BUILD_BUG_ON(sizeof(struct dblp_recv_info) != 72);
	BUILD_BUG_ON(sizeof(struct dblp_map) != 8);
	BUILD_BUG_ON(sizeof(struct dblp_completion) != 96);
	BUILD_BUG_ON(sizeof(struct dblp_addr) != 24);
	BUILD_BUG_ON(sizeof(struct dblp_peer_key) != 32);

	if (dblp_family <= 0 || dblp_family >= AF_MAX)
		return -EINVAL;
	dblp_defer_init();
	err = dblp_out_init();
	if (err)
		return err;
	err = dblp_netns_init();
	if (err)
		goto err_netns;
	err = dblp_mem_init();
	if (err)
		goto err_mem;
	err = dblp_af_init();
	if (err)
		goto err_af;
	return 0;

err_af:
	dblp_mem_exit();
err_mem:
	dblp_netns_exit();
err_netns:
	dblp_out_exit();
	return err;
}

static void __exit dblp_exit(void)
{
	dblp_af_exit();
	dblp_mem_exit();
	dblp_netns_exit();
	dblp_defer_exit();
	/* Flows are freed by RCU callbacks of this module. */
	rcu_barrier();
	dblp_out_exit();
}

module_init(dblp_init);
module_exit(dblp_exit);

MODULE_DESCRIPTION("Bounded-loss message transport over UDP");
MODULE_LICENSE("GPL");
MODULE_ALIAS_NETPROTO(AF_DBLP);

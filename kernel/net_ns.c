// SPDX-License-Identifier: GPL-2.0
/*
 * Network namespaces.  Sockets of user space hold their namespace, and close() leaves
 * nothing behind that refers to it, so there is nothing to wait for at the exit of one.
 */
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "dblp.h"

unsigned int dblp_net_id __read_mostly;

struct dblp_net *dblp_pernet(const struct net *net)
{
	return net_generic(net, dblp_net_id);
}

static int __net_init dblp_net_init(struct net *net)
{
	struct dblp_net *dn = dblp_pernet(net);
	int err;

	INIT_HLIST_HEAD(&dn->socks);
	spin_lock_init(&dn->lock);
	dn->max_message = DBLP_MAX_MESSAGE;

	err = dblp_mib_init(dn);
	if (err)
		return err;
	err = dblp_proc_init(net);
	if (err)
		goto err_proc;
	err = dblp_sysctl_init(net);
	if (err)
		goto err_sysctl;
	return 0;

err_sysctl:
	dblp_proc_exit(net);
err_proc:
	dblp_mib_exit(dn);
	return err;
}

static void __net_exit dblp_net_exit(struct net *net)
{
	struct dblp_net *dn = dblp_pernet(net);

	dblp_sysctl_exit(net);
	dblp_proc_exit(net);
	WARN_ON_ONCE(!hlist_empty(&dn->socks));
	dblp_mib_exit(dn);
}

static struct pernet_operations dblp_net_ops = {
	.init = dblp_net_init,
	.exit = dblp_net_exit,
	.id   = &dblp_net_id,
	.size = sizeof(struct dblp_net),
};

int dblp_netns_init(void)
{
	return register_pernet_subsys(&dblp_net_ops);
}

void dblp_netns_exit(void)
{
	unregister_pernet_subsys(&dblp_net_ops);
}

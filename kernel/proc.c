// SPDX-License-Identifier: GPL-2.0
/* /proc/net/dblp/snmp: counters.  /proc/net/dblp/flows: one line for each flow. */
#include <linux/proc_fs.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>
#include "dblp.h"
#include "flow.h"

static int dblp_snmp_show(struct seq_file *seq, void *v)
{
	struct dblp_net *dn = dblp_pernet(seq_file_single_net(seq));
	unsigned int i;

	for (i = 0; i < DBLP_MIB_MAX; i++)
		seq_printf(seq, "%s%s %llu\n", i < DBLP_MIB_REJECT ? "" : "reject_",
			   dblp_mib_name(i), dblp_mib_sum(dn, i));
	return 0;
}

struct dblp_flows_iter {
	struct seq_net_private p;
	struct dblp_sock *dsk;
};

/* The flow after @f, or the first one of the next socket that has any. */
static struct dblp_flow *dblp_flows_step(struct seq_file *seq, struct dblp_flow *f)
{
	struct dblp_flows_iter *it = seq->private;
	struct list_head *next;
	struct hlist_node *n;

	next = rcu_dereference(list_next_rcu(f ? &f->node : &it->dsk->flows));
	while (next == &it->dsk->flows) {
		n = rcu_dereference(hlist_next_rcu(&it->dsk->node));
		if (!n)
			return NULL;
		it->dsk = hlist_entry(n, struct dblp_sock, node);
		next = rcu_dereference(list_next_rcu(&it->dsk->flows));
	}
	return list_entry(next, struct dblp_flow, node);
}

static void *dblp_flows_start(struct seq_file *seq, loff_t *pos)
	__acquires(RCU)
{
	struct dblp_net *dn = dblp_pernet(seq_file_net(seq));
	struct dblp_flows_iter *it = seq->private;
	struct dblp_flow *f = NULL;
	struct hlist_node *n;
	loff_t left = *pos;

	rcu_read_lock();
	if (!left)
		return SEQ_START_TOKEN;
	n = rcu_dereference(hlist_first_rcu(&dn->socks));
	if (!n)
		return NULL;
	it->dsk = hlist_entry(n, struct dblp_sock, node);
	do {
		f = dblp_flows_step(seq, f);
	} while (f && --left);
	return f;
}

static void *dblp_flows_next(struct seq_file *seq, void *v, loff_t *pos)
{
	++*pos;
	if (v == SEQ_START_TOKEN) {
		rcu_read_unlock();
		return dblp_flows_start(seq, pos);
	}
	return dblp_flows_step(seq, v);
}

static void dblp_flows_stop(struct seq_file *seq, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static void dblp_show_addr(struct seq_file *seq, const struct in6_addr *ip, __be16 port)
{
	if (ipv6_addr_v4mapped(ip))
		seq_printf(seq, " %pI4:%u", &ip->s6_addr32[3], ntohs(port));
	else
		seq_printf(seq, " [%pI6c]:%u", ip, ntohs(port));
}

static const char *dblp_tx_state_name(enum dblp_tx_state s)
{
	static const char *const names[] = {
		[DBLP_TX_IDLE] = "idle", [DBLP_TX_INIT_SENT] = "init",
		[DBLP_TX_ECHO_SENT] = "echo", [DBLP_TX_OPEN] = "open",
		[DBLP_TX_DEAD] = "dead",
	};

	return s < ARRAY_SIZE(names) ? names[s] : "?";
}

static int dblp_flows_show(struct seq_file *seq, void *v)
{
	struct dblp_flow *f = v;

	if (v == SEQ_START_TOKEN) {
		seq_puts(seq, "dir id peer_id local peer state room rtt_us min_rtt_us rate inflight cap loss_ppm msgs segs bytes again_segs again_bytes\n");
		return 0;
	}
	spin_lock_bh(&f->lock);
	if (f->sender) {
		struct dblp_tx *tx = &dblp_txflow(f)->tx;

		seq_printf(seq, "tx %016llx %016llx", f->id, tx->peer_flow);
		dblp_show_addr(seq, &f->path.saddr, f->dsk->ep.local.port);
		dblp_show_addr(seq, &f->key.addr.ip, f->key.addr.port);
		seq_printf(seq, " %s %u %llu %llu %llu %llu %llu %u %llu %llu %llu %llu %llu\n",
			   dblp_tx_state_name(tx->state), tx->cfg.room,
			   div_u64(tx->rtt.srtt, NSEC_PER_USEC),
			   tx->rtt.min_rtt == DBLP_NEVER ? 0 :
			   div_u64(tx->rtt.min_rtt, NSEC_PER_USEC),
			   tx->cc.pacing_rate, tx->log.inflight, tx->cc.inflight_cap,
			   tx->log.loss_ppm, tx->stats.msgs, tx->stats.segs,
			   tx->stats.seg_bytes, tx->stats.resent_segs,
			   tx->stats.resent_bytes);
	} else {
		struct dblp_rx *rx = &dblp_rxflow(f)->rx;

		seq_printf(seq, "rx %016llx %016llx", f->id, f->key.id);
		dblp_show_addr(seq, &f->path.saddr, f->dsk->ep.local.port);
		dblp_show_addr(seq, &f->key.addr.ip, f->key.addr.port);
		seq_printf(seq, " %s %u %llu 0 0 0 0 0 %llu %llu %llu %llu 0\n",
			   rx->dead ? "dead" : "open", rx->cfg.room,
			   div_u64(rx->rtt_ns, NSEC_PER_USEC),
			   rx->stats.msgs_ok + rx->stats.msgs_below, rx->stats.segs,
			   rx->stats.seg_bytes, rx->stats.late + rx->stats.dup_segs);
	}
	spin_unlock_bh(&f->lock);
	return 0;
}

static const struct seq_operations dblp_flows_ops = {
	.start	= dblp_flows_start,
	.next	= dblp_flows_next,
	.stop	= dblp_flows_stop,
	.show	= dblp_flows_show,
};

int __net_init dblp_proc_init(struct net *net)
{
	struct proc_dir_entry *dir;

	dir = proc_net_mkdir(net, "dblp", net->proc_net);
	if (!dir)
		return -ENOMEM;
	if (!proc_create_net_single("snmp", 0444, dir, dblp_snmp_show, NULL))
		goto err;
	/* Ids of flows are what keeps strangers from speaking in them. */
	if (!proc_create_net("flows", 0400, dir, &dblp_flows_ops,
			     sizeof(struct dblp_flows_iter)))
		goto err;
	return 0;

err:
	remove_proc_subtree("dblp", net->proc_net);
	return -ENOMEM;
}

void dblp_proc_exit(struct net *net)
{
	remove_proc_subtree("dblp", net->proc_net);
}

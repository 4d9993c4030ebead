// SPDX-License-Identifier: GPL-2.0
/*
 * A link and the port in front of it, for experiments in virtual time.
 *
 *   packets -> queue -> wire (rate) -> loss, duplicates, wrong bits -> delay ->
 *
 * A packet takes its time on the wire whether it is lost afterwards or not, as on
 * a real link. Bursts are cut into packets first: chance falls on packets.
 *
 * Everything that will happen to a packet is settled when it is queued, because a
 * FIFO in front of a wire of known rate has no secrets: it starts when the one
 * before has left. So nothing depends on when a timer runs; timers only hand on
 * what is due.
 *
 * Chance is a hash of (seed, port, number of the packet, purpose) and no stream of
 * random numbers: the fate of packet n does not depend on what happened before,
 * and whoever reads the counters can compute what they must be.
 *
 * All runs under the root lock of the qdisc.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rbtree.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "lablink.h"

enum lablink_purpose {
	LABLINK_LOSE,
	LABLINK_DUPLICATE,
	LABLINK_CORRUPT,
	LABLINK_WHICH_BIT,
	LABLINK_REORDER,
	LABLINK_GE_CHANGE,
	LABLINK_GE_LOSE,
};

/**
 * struct lablink - private data of the qdisc
 * @watchdog: runs when the next packet leaves the wire or arrives
 * @params: see there
 * @steps: what the link is like, in the order of time
 * @nr_steps: number of them
 * @ge_is_bad: state of the Gilbert-Elliott chain
 * @free_at: the wire has nothing to do from then on, ns
 * @index: number of the next packet, from the epoch on
 * @waiting: packets not yet off the wire, in order
 * @waiting_packets: number of them
 * @waiting_bytes: bytes of them
 * @travelling: packets that are off the wire, by the time they arrive
 * @stats: see there
 */
struct lablink {
	struct qdisc_watchdog watchdog;
	struct lablink_params params;
	struct lablink_step steps[LABLINK_MAX_STEPS];
	unsigned int nr_steps;
	bool ge_is_bad;
	u64 free_at;
	u64 index;
	struct sk_buff_head waiting;
	u32 waiting_packets;
	u32 waiting_bytes;
	struct rb_root travelling;
	struct lablink_stats stats;
};

/**
 * struct lablink_cb - what is settled about a packet
 * @when: it is off the wire, or, when it travels, arrives, ns
 * @delay: between the two, ns
 * @lost: it does not arrive
 * @twice: it arrives twice
 */
struct lablink_cb {
	u64 when;
	u32 delay;
	bool lost;
	bool twice;
};

static struct lablink_cb *lablink_cb(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct lablink_cb));
	return (struct lablink_cb *)qdisc_skb_cb(skb)->data;
}

static u64 lablink_mix(u64 z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u64 lablink_chance(const struct lablink *q, u64 index, enum lablink_purpose purpose)
{
	u64 key = lablink_mix(lablink_mix(q->params.seed) ^ q->params.port);

	return lablink_mix(lablink_mix(key ^ index) ^ purpose);
}

static bool lablink_happens(const struct lablink *q, u64 index, enum lablink_purpose purpose,
			    u32 probability)
{
	if (!probability)
		return false;
	if (probability == LABLINK_ALWAYS)
		return true;
	return (u32)(lablink_chance(q, index, purpose) >> 32) < probability;
}

/* The step in force at an instant; before the epoch it is the first. */
static unsigned int lablink_step_at(const struct lablink *q, u64 now)
{
	unsigned int i = 0;

	if (now < q->params.epoch)
		return 0;
	while (i + 1 < q->nr_steps && q->steps[i + 1].at <= now - q->params.epoch)
		i++;
	return i;
}

/* Time on the wire, which a standstill prolongs; U64_MAX if it never ends. */
static u64 lablink_off_wire(const struct lablink *q, u64 start, u32 bytes, u64 *busy)
{
	unsigned int i = lablink_step_at(q, start);

	while (!q->steps[i].rate) {
		if (++i == q->nr_steps)
			return U64_MAX;
		start = max(start, q->params.epoch + q->steps[i].at);
	}
	*busy = div64_u64((u64)bytes * BITS_PER_BYTE * NSEC_PER_SEC, q->steps[i].rate);
	return start + *busy;
}

static bool lablink_ge_loses(struct lablink *q, u64 index)
{
	const struct lablink_params *p = &q->params;

	if (lablink_happens(q, index, LABLINK_GE_CHANGE,
			    q->ge_is_bad ? p->ge_leave : p->ge_enter))
		q->ge_is_bad = !q->ge_is_bad;
	return lablink_happens(q, index, LABLINK_GE_LOSE,
			       q->ge_is_bad ? p->ge_bad : p->ge_good);
}

/* Flips one bit behind the Ethernet header; checksums are filled in before. */
static bool lablink_corrupt(const struct lablink *q, struct sk_buff *skb, u64 index)
{
	u64 bit;

	if (skb->len <= ETH_HLEN || skb_linearize_cow(skb) ||
	    skb_csum_hwoffload_help(skb, 0))
		return false;
	bit = reciprocal_scale(lablink_chance(q, index, LABLINK_WHICH_BIT) >> 32,
			       (skb->len - ETH_HLEN) * BITS_PER_BYTE);
	skb->data[ETH_HLEN + bit / BITS_PER_BYTE] ^= BIT(bit % BITS_PER_BYTE);
	skb->ip_summed = CHECKSUM_NONE;
	return true;
}

static void lablink_hold(struct Qdisc *sch, struct sk_buff *skb)
{
	qdisc_skb_cb(skb)->pkt_len = skb->len;
	sch->q.qlen++;
	qdisc_qstats_backlog_inc(sch, skb);
}

static void lablink_forget(struct Qdisc *sch, struct sk_buff *skb)
{
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
}

static void lablink_append(struct Qdisc *sch, struct sk_buff *skb)
{
	struct lablink *q = qdisc_priv(sch);

	lablink_hold(sch, skb);
	__skb_queue_tail(&q->waiting, skb);
	q->waiting_packets++;
	q->waiting_bytes += skb->len;
	q->stats.largest = max_t(u64, q->stats.largest, skb->len);
	q->stats.peak_packets = max(q->stats.peak_packets, q->waiting_packets);
	q->stats.peak_bytes = max(q->stats.peak_bytes, q->waiting_bytes);
}

static void lablink_settle(struct lablink *q, struct sk_buff *skb, u64 off, u64 busy)
{
	struct lablink_cb *cb = lablink_cb(skb);
	const struct lablink_step *step;
	struct lablink_count *count;
	unsigned int i;
	u64 index;

	i = lablink_step_at(q, off);
	step = &q->steps[i];
	cb->when = off;
	cb->delay = step->delay;
	cb->lost = false;
	cb->twice = false;
	if (off < q->params.epoch) {
		q->stats.before++;
		return;
	}

	index = q->index++;
	count = &q->stats.step[i];
	count->packets++;
	count->bytes += skb->len;
	count->busy += busy;
	q->stats.last = off;
	if (lablink_ge_loses(q, index) || lablink_happens(q, index, LABLINK_LOSE, step->lose)) {
		count->lost++;
		cb->lost = true;
		return;
	}
	if (lablink_happens(q, index, LABLINK_CORRUPT, step->corrupt) &&
	    lablink_corrupt(q, skb, index))
		count->corrupted++;
	if (lablink_happens(q, index, LABLINK_REORDER, step->reorder)) {
		count->reordered++;
		cb->delay += step->held;
	}
	if (lablink_happens(q, index, LABLINK_DUPLICATE, step->duplicate)) {
		count->duplicated++;
		cb->twice = true;
	}
}

static bool lablink_is_full(const struct lablink *q, const struct sk_buff *skb)
{
	const struct lablink_params *p = &q->params;

	return (p->queue_packets && q->waiting_packets >= p->queue_packets) ||
	       (p->queue_bytes && q->waiting_bytes + skb->len > p->queue_bytes);
}

static void lablink_mark(struct lablink *q, struct sk_buff *skb)
{
	const struct lablink_params *p = &q->params;

	if ((p->mark_packets && q->waiting_packets >= p->mark_packets) ||
	    (p->mark_bytes && q->waiting_bytes >= p->mark_bytes))
		q->stats.marked += !!INET_ECN_set_ce(skb);
}

static u64 lablink_arrives(struct sk_buff *skb)
{
	return lablink_cb(skb)->when;
}

/* Those that arrive together do so in the order in which they were sent. */
static void lablink_travel(struct lablink *q, struct sk_buff *skb)
{
	struct rb_node **link = &q->travelling.rb_node, *parent = NULL;

	lablink_cb(skb)->when += lablink_cb(skb)->delay;
	while (*link) {
		parent = *link;
		if (lablink_arrives(skb) < lablink_arrives(rb_to_skb(parent)))
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&skb->rbnode, parent, link);
	rb_insert_color(&skb->rbnode, &q->travelling);
}

/* The copy takes no time on the wire: a fault of the network makes it, not a host. */
static void lablink_duplicate(struct Qdisc *sch, struct sk_buff *skb)
{
	struct sk_buff *copy = skb_copy(skb, GFP_ATOMIC);

	if (!copy)
		return;
	lablink_hold(sch, copy);
	lablink_travel(qdisc_priv(sch), copy);
}

/* What is off the wire no longer belongs to the sender, as with a real card. */
static void lablink_advance(struct Qdisc *sch, u64 now)
{
	struct lablink *q = qdisc_priv(sch);
	struct sk_buff *skb;

	while ((skb = skb_peek(&q->waiting)) && lablink_cb(skb)->when <= now) {
		__skb_unlink(skb, &q->waiting);
		q->waiting_packets--;
		q->waiting_bytes -= skb->len;
		skb_orphan(skb);
		if (lablink_cb(skb)->lost) {
			lablink_forget(sch, skb);
			qdisc_tree_reduce_backlog(sch, 1, qdisc_pkt_len(skb));
			kfree_skb(skb);
			continue;
		}
		if (lablink_cb(skb)->twice)
			lablink_duplicate(sch, skb);
		lablink_travel(q, skb);
	}
}

static int lablink_enqueue_one(struct Qdisc *sch, struct sk_buff *skb, struct sk_buff **to_free)
{
	struct lablink *q = qdisc_priv(sch);
	u64 now = ktime_get_ns();
	u64 off, busy;

	lablink_advance(sch, now);
	if (lablink_is_full(q, skb)) {
		q->stats.dropped++;
		return qdisc_drop(skb, sch, to_free);
	}
	off = lablink_off_wire(q, max(now, q->free_at), skb->len + q->params.overhead, &busy);
	if (off == U64_MAX) {
		q->stats.dropped++;
		return qdisc_drop(skb, sch, to_free);
	}
	q->free_at = off;
	lablink_mark(q, skb);
	lablink_settle(q, skb, off, busy);
	lablink_append(sch, skb);
	return NET_XMIT_SUCCESS;
}

static int lablink_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct sk_buff *segs, *next;
	int queued = 0;

	/* Chance and the queue may change it, and others may hold it too. */
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return NET_XMIT_DROP;
	if (!skb_is_gso(skb))
		return lablink_enqueue_one(sch, skb, to_free);

	segs = skb_gso_segment(skb, netif_skb_features(skb) & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return qdisc_drop(skb, sch, to_free);
	skb_list_walk_safe(segs, segs, next) {
		skb_mark_not_on_list(segs);
		queued += lablink_enqueue_one(sch, segs, to_free) == NET_XMIT_SUCCESS;
	}
	consume_skb(skb);
	return queued ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

static struct sk_buff *lablink_dequeue(struct Qdisc *sch)
{
	struct lablink *q = qdisc_priv(sch);
	u64 now = ktime_get_ns(), next = U64_MAX;
	struct rb_node *first;
	struct sk_buff *skb;

	lablink_advance(sch, now);
	first = rb_first(&q->travelling);
	skb = rb_to_skb(first);
	if (first && lablink_arrives(skb) <= now) {
		rb_erase(first, &q->travelling);
		/* rbnode shares its place with these. */
		skb->next = NULL;
		skb->prev = NULL;
		skb->dev = qdisc_dev(sch);
		lablink_forget(sch, skb);
		qdisc_bstats_update(sch, skb);
		return skb;
	}
	if (first)
		next = lablink_arrives(skb);
	skb = skb_peek(&q->waiting);
	if (skb)
		next = min(next, lablink_cb(skb)->when);
	if (next != U64_MAX)
		qdisc_watchdog_schedule_ns(&q->watchdog, next);
	return NULL;
}

static void lablink_reset(struct Qdisc *sch)
{
	struct lablink *q = qdisc_priv(sch);
	struct rb_node *node;

	qdisc_watchdog_cancel(&q->watchdog);
	__skb_queue_purge(&q->waiting);
	while ((node = rb_first(&q->travelling))) {
		rb_erase(node, &q->travelling);
		rtnl_kfree_skbs(rb_to_skb(node), rb_to_skb(node));
	}
	q->waiting_packets = 0;
	q->waiting_bytes = 0;
	q->free_at = 0;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

static const struct nla_policy lablink_policy[LABLINK_MAX + 1] = {
	[LABLINK_PARAMS] = NLA_POLICY_EXACT_LEN(sizeof(struct lablink_params)),
	[LABLINK_STEPS] = { .type = NLA_BINARY,
			    .len = LABLINK_MAX_STEPS * sizeof(struct lablink_step) },
};

static int lablink_check_steps(const struct lablink_step *steps, unsigned int nr,
			       struct netlink_ext_ack *extack)
{
	unsigned int i;

	if (!nr || steps[0].at || !steps[0].rate) {
		NL_SET_ERR_MSG(extack, "the first step must be at 0 and have a rate");
		return -EINVAL;
	}
	for (i = 0; i < nr; i++) {
		if (i && steps[i].at <= steps[i - 1].at) {
			NL_SET_ERR_MSG(extack, "the steps are not in order");
			return -EINVAL;
		}
		if ((u64)steps[i].delay + steps[i].held > U32_MAX) {
			NL_SET_ERR_MSG(extack, "a delay of more than 4.2 s");
			return -EINVAL;
		}
	}
	return 0;
}

/* Starts anew: counters, chance and the state of the chain; packets stay. */
static int lablink_change(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[LABLINK_MAX + 1];
	struct lablink *q = qdisc_priv(sch);
	unsigned int nr;
	int err;

	err = nla_parse_nested(tb, LABLINK_MAX, opt, lablink_policy, extack);
	if (err)
		return err;
	if (!tb[LABLINK_PARAMS] || !tb[LABLINK_STEPS] ||
	    nla_len(tb[LABLINK_STEPS]) % sizeof(struct lablink_step)) {
		NL_SET_ERR_MSG(extack, "parameters or steps are missing");
		return -EINVAL;
	}
	nr = nla_len(tb[LABLINK_STEPS]) / sizeof(struct lablink_step);
	err = lablink_check_steps(nla_data(tb[LABLINK_STEPS]), nr, extack);
	if (err)
		return err;

	sch_tree_lock(sch);
	memcpy(&q->params, nla_data(tb[LABLINK_PARAMS]), sizeof(q->params));
	memcpy(q->steps, nla_data(tb[LABLINK_STEPS]), nr * sizeof(*q->steps));
	q->nr_steps = nr;
	q->ge_is_bad = false;
	q->index = 0;
	memset(&q->stats, 0, sizeof(q->stats));
	q->stats.steps = nr;
	sch_tree_unlock(sch);
	return 0;
}

static int lablink_init(struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct lablink *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	__skb_queue_head_init(&q->waiting);
	q->travelling = RB_ROOT;
	if (!opt) {
		NL_SET_ERR_MSG(extack, "no options");
		return -EINVAL;
	}
	return lablink_change(sch, opt, extack);
}

static void lablink_destroy(struct Qdisc *sch)
{
	struct lablink *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
}

static int lablink_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct lablink *q = qdisc_priv(sch);
	struct nlattr *nest;

	nest = nla_nest_start(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	if (nla_put(skb, LABLINK_PARAMS, sizeof(q->params), &q->params) ||
	    nla_put(skb, LABLINK_STEPS, q->nr_steps * sizeof(*q->steps), q->steps)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

/* Only the steps there are. */
static int lablink_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct lablink *q = qdisc_priv(sch);

	return gnet_stats_copy_app(d, &q->stats,
				   offsetof(struct lablink_stats, step[q->nr_steps]));
}

static struct Qdisc_ops lablink_ops __read_mostly = {
	.id		= "lablink",
	.priv_size	= sizeof(struct lablink),
	.enqueue	= lablink_enqueue,
	.dequeue	= lablink_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= lablink_init,
	.reset		= lablink_reset,
	.destroy	= lablink_destroy,
	.change		= lablink_change,
	.dump		= lablink_dump,
	.dump_stats	= lablink_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init lablink_module_init(void)
{
	return register_qdisc(&lablink_ops);
}

static void __exit lablink_module_exit(void)
{
	unregister_qdisc(&lablink_ops);
}

module_init(lablink_module_init);
module_exit(lablink_module_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A link for experiments in virtual time");

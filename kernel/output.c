// SPDX-License-Identifier: GPL-2.0
/*
 * Packets on their way out.
 *
 * The core builds packets under flow->lock, one behind the other in a page of this CPU;
 * those of one size that follow each other become one GSO skb, so that the stack below
 * is walked once for all of them.  Finished skbs wait in flow->out.queue.  Whoever finds
 * nobody draining it becomes the drainer and transmits without the lock, so packets of a
 * flow keep their order and the lock is never held below.  The route belongs to the
 * drainer too.
 */
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include "flow.h"

#define DBLP_BATCH_SEGS	64	/* what devices take; the IP layer wants < 64 KiB too */
#define DBLP_BATCH_BYTES (65535 - sizeof(struct ipv6hdr) - sizeof(struct udphdr))
#define DBLP_HEADROOM	(LL_MAX_HEADER + 64 + sizeof(struct ipv6hdr) + sizeof(struct udphdr))
#define DBLP_TAILROOM	128	/* what a receiver on this machine pulls up */
#define DBLP_ECT_0	2

/* In the cb of an skb that waits. */
struct dblp_out_cb {
	u16 size;	/* of its first packet */
	u16 last;	/* of its last one */
	u16 packets;
	bool ect;
};

static struct dblp_out_cb *dblp_out_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct dblp_out_cb) > sizeof(skb->cb));
	return (struct dblp_out_cb *)skb->cb;
}

/*
 * Where packets are built, while bottom halves are off.
 * @frag: pages; what is built there is not copied again
 * @spare: for a packet that does not fit into the page that is to be had, when memory is
 *	too fragmented for larger ones
 * @use_spare: it is there
 */
struct dblp_workbench {
	struct page_frag frag;
	bool use_spare;
	u8 spare[DBLP_ROOM_MAX];
};

static struct dblp_workbench __percpu *dblp_bench;

/* ---- routes --------------------------------------------------------------------- */

void dblp_path_put(struct dblp_path *path)
{
	dst_release(path->dst);
	path->dst = NULL;
}

static int dblp_path_find4(struct dblp_sock *dsk, const struct dblp_addr *peer,
			   struct dblp_path *path)
{
	struct sock *sk = &dsk->sk;
	struct flowi4 fl4 = {
		.flowi4_oif	= READ_ONCE(sk->sk_bound_dev_if),
		.flowi4_mark	= READ_ONCE(sk->sk_mark),
		.flowi4_uid	= sk->sk_uid,
		.flowi4_proto	= IPPROTO_UDP,
		.daddr		= peer->ip.s6_addr32[3],
		.saddr		= ipv6_addr_v4mapped(&path->saddr) ?
				  path->saddr.s6_addr32[3] : 0,
		.fl4_dport	= peer->port,
		.fl4_sport	= dsk->ep.local.port,
	};
	struct rtable *rt;

	rt = ip_route_output_flow(sock_net(sk), &fl4, dsk->ep.sock->sk);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	if (rt->rt_flags & (RTCF_MULTICAST | RTCF_BROADCAST)) {
		ip_rt_put(rt);
		return -ENETUNREACH;
	}
	path->dst = &rt->dst;
	path->cookie = 0;
	ipv6_addr_set_v4mapped(fl4.saddr, &path->saddr);
	return 0;
}

static int dblp_path_find6(struct dblp_sock *dsk, const struct dblp_addr *peer,
			   struct dblp_path *path)
{
	struct sock *sk = &dsk->sk;
	struct flowi6 fl6 = {
		.flowi6_oif	= peer->scope ? peer->scope : READ_ONCE(sk->sk_bound_dev_if),
		.flowi6_mark	= READ_ONCE(sk->sk_mark),
		.flowi6_uid	= sk->sk_uid,
		.flowi6_proto	= IPPROTO_UDP,
		.daddr		= peer->ip,
		.saddr		= path->saddr,
		.fl6_dport	= peer->port,
		.fl6_sport	= dsk->ep.local.port,
	};
	struct dst_entry *dst;

	dst = ip6_dst_lookup_flow(sock_net(sk), dsk->ep.sock->sk, &fl6, NULL);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	path->dst = dst;
	path->cookie = rt6_get_cookie((struct rt6_info *)dst);
	path->saddr = fl6.saddr;
	return 0;
}

/* Fills in a route to @peer.  path->saddr is kept if it is set, else chosen. */
int dblp_path_find(struct dblp_sock *dsk, const struct dblp_addr *peer,
		   struct dblp_path *path)
{
	u32 headers = sizeof(struct udphdr);
	int err;

	/* Another thread may have bound the socket since the address was looked at. */
	if (!(dblp_addr_is_v4(peer) ? dsk->ep.v4 : dsk->ep.v6))
		return -EAFNOSUPPORT;
	if (dblp_addr_is_v4(peer)) {
		err = dblp_path_find4(dsk, peer, path);
		headers += sizeof(struct iphdr);
	} else {
		err = dblp_path_find6(dsk, peer, path);
		headers += sizeof(struct ipv6hdr);
	}
	if (err)
		return err;
	path->mtu = dst_mtu(path->dst);
	path->room = clamp_t(u32, path->mtu > headers ? path->mtu - headers : 0,
			     DBLP_ROOM_MIN, DBLP_ROOM_MAX);
	return 0;
}

/* The route of a flow, looked up again if it changed; drainer only. */
static struct dst_entry *dblp_path_dst(struct dblp_flow *f)
{
	struct dblp_path *path = &f->path;

	if (path->dst && dst_check(path->dst, path->cookie) &&
	    dst_mtu(path->dst) == path->mtu)
		return path->dst;
	dblp_path_put(path);
	if (dblp_path_find(f->dsk, &f->key.addr, path))
		return NULL;
	spin_lock_bh(&f->lock);
	if (f->sender) {
		dblp_tx_set_room(&dblp_txflow(f)->tx, path->room);
		dblp_txflow(f)->room = max(dblp_txflow(f)->room, path->room);
	} else {
		dblp_rxflow(f)->rx.cfg.room = path->room;
	}
	spin_unlock_bh(&f->lock);
	return path->dst;
}

/* ---- transmission --------------------------------------------------------------- */

static void dblp_out_gso(struct sk_buff *skb)
{
	const struct dblp_out_cb *cb = dblp_out_cb(skb);

	if (cb->packets < 2)
		return;
	skb_shinfo(skb)->gso_size = cb->size;
	skb_shinfo(skb)->gso_segs = cb->packets;
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_headroom(skb) - sizeof(struct udphdr);
	skb->csum_offset = offsetof(struct udphdr, check);
}

/* Gives @skb, and not @dst, away. */
static void dblp_out_xmit(struct dblp_sock *dsk, struct sk_buff *skb, struct dst_entry *dst,
			  const struct in6_addr *from, const struct dblp_addr *to)
{
	u8 tos = dblp_out_cb(skb)->ect ? DBLP_ECT_0 : 0;
	u32 size = dblp_out_cb(skb)->size + sizeof(struct udphdr);
	struct sock *udp = dsk->ep.sock->sk;
	struct in6_addr saddr, daddr;
	bool fits;

	if (skb_cow_head(skb, LL_RESERVED_SPACE(dst->dev) + dst->header_len +
			 sizeof(struct ipv6hdr) + sizeof(struct udphdr))) {
		dblp_mib_inc(dblp_sk_net(dsk), DBLP_MIB_XMIT_DROPPED);
		kfree_skb(skb);
		return;
	}
	dblp_out_gso(skb);
	skb->mark = READ_ONCE(dsk->sk.sk_mark);
	skb->priority = READ_ONCE(dsk->sk.sk_priority);
	skb_set_owner_w(skb, udp);
	dst_hold(dst);
	if (dblp_addr_is_v4(to)) {
		/* Segments of a message keep their size when the path shrinks. */
		fits = size + sizeof(struct iphdr) <= dst_mtu(dst);
		dblp_xmit4((struct rtable *)dst, udp, skb, from->s6_addr32[3],
			   to->ip.s6_addr32[3], tos, ip4_dst_hoplimit(dst),
			   fits ? htons(IP_DF) : 0, dsk->ep.local.port, to->port);
	} else {
		fits = size + sizeof(struct ipv6hdr) <= dst_mtu(dst);
		skb->ignore_df = !fits;
		saddr = *from;
		daddr = to->ip;
		dblp_xmit6(dst, udp, skb, &saddr, &daddr, tos, ip6_dst_hoplimit(dst),
			   dsk->ep.local.port, to->port);
	}
}

bool dblp_out_claim(struct dblp_flow *f)
{
	lockdep_assert_held(&f->lock);
	f->out.open = NULL;
	if (f->out.draining || skb_queue_empty(&f->out.queue))
		return false;
	f->out.draining = true;
	return true;
}

void dblp_out_drain(struct dblp_flow *f)
{
	struct sk_buff_head list;
	struct dst_entry *dst;
	struct sk_buff *skb;

	__skb_queue_head_init(&list);
	for (;;) {
		spin_lock_bh(&f->lock);
		f->out.open = NULL;
		skb_queue_splice_init(&f->out.queue, &list);
		if (skb_queue_empty(&list))
			f->out.draining = false;
		spin_unlock_bh(&f->lock);
		if (skb_queue_empty(&list))
			return;

		dst = dblp_path_dst(f);
		while ((skb = __skb_dequeue(&list)) != NULL) {
			if (dst) {
				dblp_out_xmit(f->dsk, skb, dst, &f->path.saddr,
					      &f->key.addr);
			} else {
				dblp_mib_inc(dblp_sk_net(f->dsk), DBLP_MIB_XMIT_DROPPED);
				kfree_skb(skb);
			}
		}
	}
}

/* Like the small queues of TCP: what we send is not to pile up in the device's queue. */
bool dblp_out_full(const struct dblp_sock *dsk)
{
	return refcount_read(&dsk->ep.sock->sk->sk_wmem_alloc) > DBLP_QUEUED_MAX;
}

void dblp_out_purge(struct dblp_flow *f)
{
	__skb_queue_purge(&f->out.queue);
	f->out.open = NULL;
}

/* ---- building ------------------------------------------------------------------- */

u8 *dblp_out_room(struct dblp_flow *f, u32 room)
{
	struct dblp_workbench *w = this_cpu_ptr(dblp_bench);

	lockdep_assert_held(&f->lock);
	if (!skb_page_frag_refill(room, &w->frag, GFP_ATOMIC | __GFP_NOWARN))
		return NULL;
	w->use_spare = w->frag.size - w->frag.offset < room;
	if (!w->use_spare)
		return page_address(w->frag.page) + w->frag.offset;
	return room <= sizeof(w->spare) ? w->spare : NULL;
}

static bool dblp_out_fits(const struct dblp_flow *f, u32 len, bool ect)
{
	const struct dblp_out_cb *cb;

	if (!f->out.open)
		return false;
	cb = dblp_out_cb(f->out.open);
	return len <= cb->size && cb->last == cb->size && cb->ect == ect &&
	       cb->packets < DBLP_BATCH_SEGS &&
	       f->out.open->len + len <= DBLP_BATCH_BYTES;
}

static bool dblp_out_append(struct sk_buff *skb, struct page_frag *frag, u32 len)
{
	int i = skb_shinfo(skb)->nr_frags;

	if (skb_can_coalesce(skb, i, frag->page, frag->offset)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], len);
	} else {
		if (i >= MAX_SKB_FRAGS)
			return false;
		get_page(frag->page);
		skb_fill_page_desc(skb, i, frag->page, frag->offset, len);
	}
	frag->offset += len;
	skb->len += len;
	skb->data_len += len;
	skb->truesize += len;
	return true;
}

static struct sk_buff *dblp_out_skb(u32 tailroom)
{
	struct sk_buff *skb;

	skb = alloc_skb(DBLP_HEADROOM + tailroom, GFP_ATOMIC | __GFP_NOWARN);
	if (skb)
		skb_reserve(skb, DBLP_HEADROOM);
	return skb;
}

/* A copy of what is on the spare bench, in single pages. */
static struct sk_buff *dblp_out_skb_spare(const u8 *spare, u32 len)
{
	struct sk_buff *skb;
	int err;

	skb = alloc_skb_with_frags(DBLP_HEADROOM + DBLP_TAILROOM, len, 0, &err,
				   GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, DBLP_HEADROOM);
	skb->data_len = len;
	skb->len += len;
	if (skb_store_bits(skb, 0, spare, len)) {
		kfree_skb(skb);
		return NULL;
	}
	return skb;
}

static struct sk_buff *dblp_out_first(struct dblp_workbench *w, u32 len)
{
	struct sk_buff *skb;

	if (w->use_spare)
		return dblp_out_skb_spare(w->spare, len);
	skb = dblp_out_skb(DBLP_TAILROOM);
	if (skb)
		dblp_out_append(skb, &w->frag, len);
	return skb;
}

void dblp_out_commit(struct dblp_flow *f, u32 len, bool ect)
{
	struct dblp_workbench *w = this_cpu_ptr(dblp_bench);
	struct dblp_out_cb *cb;
	struct sk_buff *skb;

	lockdep_assert_held(&f->lock);
	dblp_mib_inc(dblp_sk_net(f->dsk), DBLP_MIB_PKTS_SENT);
	if (!w->use_spare && dblp_out_fits(f, len, ect) &&
	    dblp_out_append(f->out.open, &w->frag, len)) {
		cb = dblp_out_cb(f->out.open);
		cb->last = len;
		cb->packets++;
		return;
	}
	skb = dblp_out_first(w, len);
	if (!skb) {
		dblp_mib_inc(dblp_sk_net(f->dsk), DBLP_MIB_XMIT_DROPPED);
		return;
	}
	cb = dblp_out_cb(skb);
	cb->size = len;
	cb->last = len;
	cb->packets = 1;
	cb->ect = ect;
	__skb_queue_tail(&f->out.queue, skb);
	f->out.open = w->use_spare ? NULL : skb;
}

void dblp_out_bare(struct dblp_sock *dsk, const struct dblp_addr *peer,
		   const struct in6_addr *local, const u8 *buf, u32 len)
{
	struct dblp_path path = { .saddr = *local };
	struct sk_buff *skb;

	skb = dblp_out_skb(len);
	if (!skb)
		goto err;
	skb_put_data(skb, buf, len);
	memset(dblp_out_cb(skb), 0, sizeof(struct dblp_out_cb));
	dblp_out_cb(skb)->size = len;
	dblp_out_cb(skb)->packets = 1;
	if (dblp_path_find(dsk, peer, &path)) {
		kfree_skb(skb);
		goto err;
	}
	dblp_mib_inc(dblp_sk_net(dsk), DBLP_MIB_PKTS_SENT);
	dblp_out_xmit(dsk, skb, path.dst, &path.saddr, peer);
	dblp_path_put(&path);
	return;

err:
	dblp_mib_inc(dblp_sk_net(dsk), DBLP_MIB_XMIT_DROPPED);
}

int __init dblp_out_init(void)
{
	dblp_bench = alloc_percpu(struct dblp_workbench);
	return dblp_bench ? 0 : -ENOMEM;
}

void dblp_out_exit(void)
{
	struct page *page;
	int cpu;

	for_each_possible_cpu(cpu) {
		page = per_cpu_ptr(dblp_bench, cpu)->frag.page;
		if (page)
			put_page(page);
	}
	free_percpu(dblp_bench);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * recvmsg(): one message or one completion per call.  An item leaves the queue under its
 * lock; everything else happens without any, so a large copy holds up nobody.
 */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/wait.h>
#include "message.h"

#define DBLP_RECV_FLAGS	(MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_WAITALL |          \
			 MSG_NOSIGNAL | MSG_CMSG_CLOEXEC | MSG_CMSG_COMPAT | MSG_ERRQUEUE)

static struct dblp_rxm *dblp_item_msg(struct dblp_item *item)
{
	return container_of(item, struct dblp_rxm, item);
}

static struct dblp_txm *dblp_item_completion(struct dblp_item *item)
{
	return container_of(item, struct dblp_txm, item);
}

static u32 dblp_item_len(struct dblp_item *item)
{
	return item->kind == DBLP_ITEM_MSG ? dblp_item_msg(item)->m.len :
					     sizeof(struct dblp_completion);
}

/* ---- the queue ------------------------------------------------------------------ */

void dblp_enqueue(struct dblp_sock *dsk, struct dblp_item *item)
{
	item->users = 1;
	spin_lock_bh(&dsk->rxq_lock);
	list_add_tail(&item->node, &dsk->rxq);
	spin_unlock_bh(&dsk->rxq_lock);
	dsk->sk.sk_data_ready(&dsk->sk);
}

int dblp_next_len(struct dblp_sock *dsk)
{
	struct dblp_item *item;
	int len;

	spin_lock_bh(&dsk->rxq_lock);
	item = list_first_entry_or_null(&dsk->rxq, struct dblp_item, node);
	len = item ? dblp_item_len(item) : 0;
	spin_unlock_bh(&dsk->rxq_lock);
	return len;
}

static struct dblp_item *dblp_dequeue(struct dblp_sock *dsk, bool peek)
{
	struct dblp_item *item;

	spin_lock_bh(&dsk->rxq_lock);
	item = list_first_entry_or_null(&dsk->rxq, struct dblp_item, node);
	if (item && peek)
		item->users++;
	else if (item)
		list_del_init(&item->node);
	spin_unlock_bh(&dsk->rxq_lock);
	return item;
}

/* A reader is done with an item, or the queue with all of them. */
static void dblp_item_done(struct dblp_sock *dsk, struct dblp_item *item)
{
	bool last;

	spin_lock_bh(&dsk->rxq_lock);
	last = !--item->users;
	spin_unlock_bh(&dsk->rxq_lock);
	if (!last)
		return;
	if (item->kind == DBLP_ITEM_MSG)
		dblp_rxm_drop(dblp_item_msg(item));
	dblp_item_put(item);
}

static void dblp_requeue(struct dblp_sock *dsk, struct dblp_item *item)
{
	spin_lock_bh(&dsk->rxq_lock);
	list_add(&item->node, &dsk->rxq);
	spin_unlock_bh(&dsk->rxq_lock);
	dsk->sk.sk_data_ready(&dsk->sk);
}

void dblp_queue_purge(struct dblp_sock *dsk)
{
	struct dblp_item *item;

	while ((item = dblp_dequeue(dsk, false)) != NULL)
		dblp_item_done(dsk, item);
}

static struct dblp_item *dblp_recv_wait(struct dblp_sock *dsk, int flags)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	bool peek = flags & MSG_PEEK;
	struct sock *sk = &dsk->sk;
	struct dblp_item *item;
	long timeo;
	int err;

	item = dblp_dequeue(dsk, peek);
	if (item)
		return item;
	timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	add_wait_queue(sk_sleep(sk), &wait);
	for (;;) {
		item = dblp_dequeue(dsk, peek);
		if (item)
			break;
		err = sock_error(sk);
		if (!err && READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
			break;
		if (!err && !timeo)
			err = -EAGAIN;
		if (!err && signal_pending(current))
			err = sock_intr_errno(timeo);
		if (err) {
			item = ERR_PTR(err);
			break;
		}
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return item;
}

/* ---- copying -------------------------------------------------------------------- */

static int dblp_copy_payload(struct dblp_rxm *r, struct iov_iter *to, u32 len, bool keep)
{
	const struct dblp_rxmsg *m = &r->m;
	struct sk_buff *skb;
	u32 seg, n;

	for (seg = 0; len; seg++, len -= n) {
		n = min(len, dblp_seg_len(m->len, m->seg_size, seg));
		skb = dblp_rxm_seg(r, seg);
		if (skb) {
			if (skb_copy_datagram_iter(skb, dblp_rx_cb(skb)->off, to, n))
				return -EFAULT;
		} else if (keep) {
			iov_iter_advance(to, n);
		} else if (iov_iter_zero(n, to) != n) {
			return -EFAULT;
		}
		if (seg % 64 == 0)
			cond_resched();
	}
	return 0;
}

static void dblp_put_map(struct msghdr *msg, const struct dblp_segmap *map, u32 seg_size)
{
	u32 words = DIV_ROUND_UP(map->nbits, 64), i;
	struct dblp_map *out;

	out = kvmalloc(struct_size(out, bits, words), GFP_KERNEL);
	if (!out) {
		msg->msg_flags |= MSG_CTRUNC;
		return;
	}
	out->nr_segs = map->nbits;
	out->seg_size = seg_size;
	for (i = 0; i < words; i++)
		out->bits[i] = dblp_segmap_word(map, i);
	put_cmsg(msg, SOL_DBLP, DBLP_CMSG_MAP, struct_size(out, bits, words), out);
	kvfree(out);
}

static void dblp_put_info(struct msghdr *msg, const struct dblp_rxmsg *m, bool keep)
{
	struct dblp_recv_info info = {
		.msg_id		= m->id,
		.len		= m->len,
		.missing_bytes	= m->missing,
		.allowed_bytes	= m->desc.allow,
		.tag		= m->desc.tag,
		.nr_segs	= m->nsegs,
		.seg_size	= m->seg_size,
		.missing_segs	= m->miss.set,
		.tolerance_ppm	= m->desc.ppm,
		.duration_us	= min_t(u64, U32_MAX, div_u64(m->judged_at - m->opened_at,
							      NSEC_PER_USEC)),
		.group		= m->desc.group,
		.mode		= m->desc.mode,
		.phase		= m->desc.phase,
		.priority	= m->desc.priority,
	};

	if (m->verdict != DBLP_VERDICT_OK)
		info.flags |= DBLP_RECV_PARTIAL;
	if (keep && m->miss.set)
		info.flags |= DBLP_RECV_UNTOUCHED;
	put_cmsg(msg, SOL_DBLP, DBLP_CMSG_RECV, sizeof(info), &info);
}

static int dblp_recv_msg(struct dblp_sock *dsk, struct dblp_rxm *r, struct msghdr *msg,
			 u32 len)
{
	bool keep = READ_ONCE(dsk->holes) == DBLP_HOLES_KEEP;
	int err;

	err = dblp_copy_payload(r, &msg->msg_iter, len, keep);
	if (err || !msg->msg_controllen)
		return err;
	dblp_put_info(msg, &r->m, keep);
	if (r->m.miss.set)
		dblp_put_map(msg, &r->m.miss, r->m.seg_size);
	return 0;
}

static int dblp_recv_completion(struct dblp_txm *t, struct msghdr *msg, u32 len)
{
	if (copy_to_iter(&t->c, len, &msg->msg_iter) != len)
		return -EFAULT;
	msg->msg_flags |= DBLP_MSG_NOTIFICATION;
	if (t->c.missing_segs && t->c.outcome <= DBLP_OUTCOME_BELOW && msg->msg_controllen)
		dblp_put_map(msg, &t->m.map, t->c.seg_size);
	return 0;
}

int dblp_recvmsg(struct socket *sock, struct msghdr *msg, size_t size, int flags)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct dblp_item *item;
	u32 len, copy;
	int err;

	if (flags & ~DBLP_RECV_FLAGS)
		return -EOPNOTSUPP;
	if (flags & MSG_ERRQUEUE)
		return -EAGAIN;
	item = dblp_recv_wait(dsk, flags);
	if (IS_ERR_OR_NULL(item))
		return PTR_ERR_OR_ZERO(item);

	len = dblp_item_len(item);
	copy = min_t(size_t, len, size);
	if (item->kind == DBLP_ITEM_MSG)
		err = dblp_recv_msg(dsk, dblp_item_msg(item), msg, copy);
	else
		err = dblp_recv_completion(dblp_item_completion(item), msg, copy);
	if (err) {
		if (flags & MSG_PEEK)
			dblp_item_done(dsk, item);
		else
			dblp_requeue(dsk, item);
		return err;
	}
	if (copy < len)
		msg->msg_flags |= MSG_TRUNC;
	if (msg->msg_name)
		msg->msg_namelen = dblp_addr_put(dsk, item->kind == DBLP_ITEM_MSG ?
						 &dblp_item_msg(item)->peer :
						 &dblp_item_completion(item)->peer,
						 msg->msg_name);
	dblp_item_done(dsk, item);
	if (msg->msg_get_inq)
		msg->msg_inq = dblp_next_len(dsk);
	return flags & MSG_TRUNC ? len : copy;
}

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages: memory around the core's struct dblp_txmsg and struct dblp_rxmsg.
 */
#ifndef DBLP_MESSAGE_H
#define DBLP_MESSAGE_H

#include <linux/refcount.h>
#include "dblp.h"
#include "rx.h"
#include "tx.h"

enum dblp_item_kind { DBLP_ITEM_MSG, DBLP_ITEM_COMPLETION };

/**
 * struct dblp_item - what can be in a socket's receive queue
 * @node: in dsk->rxq
 * @refs: of the queue or whoever took it from there, for a received message also its flow
 * @users: readers and the queue; dsk->rxq_lock
 * @kind: what it is embedded in
 */
struct dblp_item {
	struct list_head node;
	refcount_t refs;
	u32 users;
	enum dblp_item_kind kind;
};

#define DBLP_SMALL_MAP 4	/* words of a map that need no memory of their own */

/**
 * struct dblp_txm - a message that is sent, later its completion
 * @m: the core's
 * @item: for the queue
 * @dsk: its socket, alive as long as the item
 * @peer: where it goes
 * @notify: a completion is wanted
 * @charge: bytes charged to the socket
 * @small: payload of a short message, from kmalloc()
 * @pages: payload of a longer one; each entry is one page, those of a compound page
 *	follow each other
 * @nr_pages: entries of @pages
 * @map: memory of a short map
 * @c: the completion, once it is one
 */
struct dblp_txm {
	struct dblp_txmsg m;
	struct dblp_item item;
	struct dblp_sock *dsk;
	struct dblp_addr peer;
	bool notify;
	u32 charge;
	u8 *small;
	struct page **pages;
	u32 nr_pages;
	u64 map[DBLP_SMALL_MAP];
	struct dblp_completion c;
};

#define DBLP_SLOTS 512		/* segments in one leaf of the table */

/**
 * struct dblp_rxm - a message that is received
 * @m: the core's
 * @item: for the queue
 * @dsk: its socket, alive as long as the item
 * @peer: where it comes from
 * @flow: its flow, while that knows it
 * @grant: in flow->grants: the budget has room for it
 * @charge: bytes of bookkeeping charged to the socket
 * @stored: bytes of payload charged to the socket
 * @queued: payload belongs to the receive queue
 * @one: leaf of a message of one segment
 * @leaf: leaves of DBLP_SLOTS skbs each, NULL where nothing has come yet; the skb's cb
 *	tells where its payload starts
 * @map: memory of a short map
 */
struct dblp_rxm {
	struct dblp_rxmsg m;
	struct dblp_item item;
	struct dblp_sock *dsk;
	struct dblp_addr peer;
	struct dblp_flow *flow;
	struct list_head grant;
	u32 charge;
	u32 stored;
	bool queued;
	struct sk_buff *one;
	struct sk_buff ***leaf;
	u64 map[DBLP_SMALL_MAP];
};

struct dblp_rx_cb {
	u32 off;
};

static inline struct dblp_rx_cb *dblp_rx_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct dblp_rx_cb) > sizeof(skb->cb));
	return (struct dblp_rx_cb *)skb->cb;
}

static inline struct dblp_txm *dblp_txm(struct dblp_txmsg *m)
{
	return container_of(m, struct dblp_txm, m);
}

static inline struct dblp_rxm *dblp_rxm(struct dblp_rxmsg *m)
{
	return container_of(m, struct dblp_rxm, m);
}

void dblp_item_put(struct dblp_item *item);

/* What a message of @len bytes in segments of @seg_size is charged with. */
u64 dblp_txm_cost(u32 len, u32 seg_size);
/**
 * dblp_txm_new() - memory for a message and a copy of the user's payload
 * @dsk: its socket, charged already with dblp_txm_cost()
 * @len: bytes
 * @seg_size: bytes of a segment
 * @from: the payload
 *
 * Return: the message, which owns the charge; -ENOMEM or -EFAULT, the charge is the
 * caller's.
 */
struct dblp_txm *dblp_txm_new(struct dblp_sock *dsk, u32 len, u16 seg_size,
			      struct iov_iter *from);
void dblp_txm_copy(const struct dblp_txm *t, u32 off, u32 len, u8 *to);
/* The core is done with it: becomes a completion or goes away.  Any context. */
void dblp_txm_done(struct dblp_txm *t, u64 flow);

/* Softirq, flow->lock held. */
struct dblp_rxm *dblp_rxm_new(struct dblp_sock *dsk, u32 nsegs);
/* Keeps @len bytes at @off of @skb as the payload of segment @seg. */
int dblp_rxm_store(struct dblp_rxm *r, u32 seg, struct sk_buff *skb, u32 off, u32 len);
/* The skb of a segment, NULL if it is missing. */
struct sk_buff *dblp_rxm_seg(const struct dblp_rxm *r, u32 seg);
/* It is judged: if it still waits for room, it needs none any more. */
void dblp_rxm_unwait(struct dblp_rxm *r);
/* Frees the payload and gives the room in the budget to others. */
void dblp_rxm_drop(struct dblp_rxm *r);

#endif /* DBLP_MESSAGE_H */

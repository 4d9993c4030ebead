/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Flows: the core's struct dblp_tx and struct dblp_rx with what they need of Linux.
 */
#ifndef DBLP_FLOW_H
#define DBLP_FLOW_H

#include <linux/hrtimer.h>
#include <linux/rhashtable.h>
#include <linux/skbuff.h>
#include "dblp.h"
#include "rx.h"
#include "tx.h"

/**
 * struct dblp_peer_key - what a flow is found by where its id is not known
 * @addr: the peer
 * @id: the sender's id of a flow that we receive, 0 of one that we send
 */
struct dblp_peer_key {
	struct dblp_addr addr;
	u64 id;
};

/**
 * struct dblp_path - how to reach a peer; belongs to the flow's drainer
 * @dst: cached route, NULL none
 * @cookie: for dst_check()
 * @saddr: our address on it, v4-mapped for IPv4
 * @mtu: of the route
 * @room: UDP payload of a packet
 */
struct dblp_path {
	struct dst_entry *dst;
	u32 cookie;
	struct in6_addr saddr;
	u32 mtu;
	u32 room;
};

/**
 * struct dblp_out - packets of a flow on their way out
 * @queue: in order, each skb one packet or a GSO batch of them
 * @open: the last one, to which packets may still be added
 * @draining: somebody transmits the queue
 */
struct dblp_out {
	struct sk_buff_head queue;
	struct sk_buff *open;
	bool draining;
};

/**
 * struct dblp_flow - one direction between two sockets
 * @id_node: in ep->by_id
 * @peer_node: in ep->by_peer
 * @id: our id
 * @key: for by_peer
 * @dsk: its socket, held
 * @node: in dsk->flows
 * @refs: one of the tables, others of sendmsg() and close()
 * @sender: it is a struct dblp_txflow, else a struct dblp_rxflow
 * @lock: see "DBLP locking"
 * @dead: out of the tables
 * @now: latest time that the core was told
 * @timer: the only one
 * @timer_at: no later than when it fires, DBLP_NEVER if it may be off
 * @retry_at: something of ours wants to run then, DBLP_NEVER nothing
 * @deferred: it will be run when the packets that have arrived are read
 * @defer_node: for that; the CPU's that will
 * @out: packets to be sent
 * @path: the route
 * @rcu: for freeing
 */
struct dblp_flow {
	struct rhash_head id_node;
	struct rhash_head peer_node;
	u64 id;
	struct dblp_peer_key key;
	struct dblp_sock *dsk;
	struct list_head node;
	refcount_t refs;
	bool sender;

	spinlock_t lock;	/* all below but the path, and what the core has */
	bool dead;
	u64 now;
	struct hrtimer timer;
	u64 timer_at;
	u64 retry_at;
	bool deferred;
	struct list_head defer_node;
	struct dblp_out out;
	struct dblp_path path;
	struct rcu_head rcu;
};

/**
 * struct dblp_txflow - a flow that we send
 * @f: first
 * @tx: the core's
 * @seen: counters of @tx that are in the namespace's already
 * @room: largest packet so far: segments keep their size when the path shrinks
 * @icmp: last ICMP error while the peer had not answered
 * @ppm: tolerance of the message sent last
 * @phase: its phase
 */
struct dblp_txflow {
	struct dblp_flow f;
	struct dblp_tx tx;
	struct dblp_tx_stats seen;
	u32 room;
	int icmp;
	u32 ppm;
	u8 phase;
};

/**
 * struct dblp_rxflow - a flow that we receive
 * @f: first
 * @rx: the core's
 * @seen: counters of @rx that are in the namespace's already
 * @grants: messages that the budget has given room; dsk->budget_lock
 */
struct dblp_rxflow {
	struct dblp_flow f;
	struct dblp_rx rx;
	struct dblp_rx_stats seen;
	struct list_head grants;
};

static inline struct dblp_txflow *dblp_txflow(struct dblp_flow *f)
{
	return container_of(f, struct dblp_txflow, f);
}

static inline struct dblp_rxflow *dblp_rxflow(struct dblp_flow *f)
{
	return container_of(f, struct dblp_rxflow, f);
}

/*
 * Locks the flow; bottom halves are off.  @now may have been taken before another CPU had
 * the lock, but for the core time never runs backwards: it is told what is returned.
 */
static inline u64 dblp_flow_lock(struct dblp_flow *f, u64 now)
	__acquires(&f->lock)
{
	spin_lock(&f->lock);
	f->now = max(f->now, now);
	return f->now;
}

/* flow.c */
int dblp_flow_tables_init(struct dblp_endpoint *ep);
void dblp_flow_tables_exit(struct dblp_endpoint *ep);
/* Lookups: under RCU, valid until its end. */
struct dblp_flow *dblp_flow_by_id(struct dblp_endpoint *ep, u64 id);
struct dblp_flow *dblp_flow_by_peer(struct dblp_endpoint *ep, const struct dblp_addr *addr,
				    u64 id);
/* The flow to a peer, opened if there is none; process context, returns a reference. */
struct dblp_txflow *dblp_txflow_get(struct dblp_sock *dsk, const struct dblp_addr *peer);
/* A flow for a checked ECHO; softirq, under RCU.  NULL: rejected. */
struct dblp_rxflow *dblp_rxflow_open(struct dblp_sock *dsk, const struct dblp_addr *peer,
				     const struct in6_addr *local,
				     const struct dblp_f_hello *echo, u64 rtt, u64 now);
/* What a handshake allows to be sent before a message is admitted; softirq. */
u32 dblp_first_flight_kib(struct dblp_sock *dsk);
void dblp_flow_put(struct dblp_flow *f);
/* Takes it out of the tables; flow->lock held, not dead yet.  Then drop a reference. */
void dblp_flow_unlink(struct dblp_flow *f);
/* Calls @fn for each flow that is not dead, its lock held; process context. */
void dblp_flows_each(struct dblp_sock *dsk, void (*fn)(struct dblp_flow *f));
/* For it: the end of a flow with its socket; of receiving from all but the peer. */
void dblp_flow_end(struct dblp_flow *f);
void dblp_flow_filter(struct dblp_flow *f);
/* Is nothing to be received from @peer? */
bool dblp_is_deaf_to(struct dblp_sock *dsk, const struct dblp_addr *peer);
void dblp_reject(struct dblp_sock *dsk, u64 flow, enum dblp_reject r);

/* What dblp_rx_input() passes to dblp_rx_ops.store(): a packet @off bytes into @skb. */
struct dblp_rx_pkt {
	struct sk_buff *skb;
	u32 off;
};

/* rxflow.c: what the core's receiver asks for */
extern const struct dblp_rx_ops dblp_rx_ops;

/* output.c */
int dblp_path_find(struct dblp_sock *dsk, const struct dblp_addr *peer,
		   struct dblp_path *path);
void dblp_path_put(struct dblp_path *path);
/* Where to build the next packet, @room bytes; NULL: no memory.  flow->lock held. */
u8 *dblp_out_room(struct dblp_flow *f, u32 room);
/* @len bytes have been built there; without memory the packet is lost. */
void dblp_out_commit(struct dblp_flow *f, u32 len, bool ect);
/* flow->lock held: is there something to drain?  Then the caller must, without it. */
bool dblp_out_claim(struct dblp_flow *f);
void dblp_out_drain(struct dblp_flow *f);
bool dblp_out_full(const struct dblp_sock *dsk);
void dblp_out_purge(struct dblp_flow *f);
/* Sends @len bytes to a peer with which there is no flow; softirq. */
void dblp_out_bare(struct dblp_sock *dsk, const struct dblp_addr *peer,
		   const struct in6_addr *local, const u8 *buf, u32 len);
int dblp_out_init(void);
void dblp_out_exit(void);

/* timer.c */
enum hrtimer_restart dblp_timer_fn(struct hrtimer *t);
/* Fires at once; any lock may be held, the flow is not dead. */
void dblp_timer_kick(struct dblp_flow *f);
/*
 * After anything was done with the core: sends what is due, completes messages, sets the
 * timer.  Called with flow->lock held and bottom halves off; gives the lock back.
 */
void dblp_flow_run(struct dblp_flow *f) __releases(&f->lock);

/* defer.c */
void dblp_flow_run_later(struct dblp_flow *f) __releases(&f->lock);
void dblp_defer_init(void);
void dblp_defer_exit(void);

#endif /* DBLP_FLOW_H */

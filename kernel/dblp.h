/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the module share: sockets, addresses, namespaces.  Flows are in
 * flow.h, messages in message.h, counters in mib.h.
 *
 * DBLP locking
 * ------------
 * Outer to inner; nothing is ever taken in the other direction.
 *
 * socket lock (lock_sock)  bind, connect, shutdown, options.  Process context only:
 *	nothing that a packet or a timer starts ever takes it, so copying a large
 *	message keeps no ACK waiting.
 * flow->lock  the core's state of one flow, its output queue and timer.  Taken with
 *	bottom halves off.  Two flows are never locked at once; a packet is never
 *	transmitted under it, but by the flow's drainer (output.c).
 * dsk->rxq_lock, dsk->mem_lock, dsk->flows_lock  leaves, taken with bottom halves off
 *	in any order relative to each other but never nested.
 * dsk->budget_lock  a leaf too, but that a timer may be started under it.
 *
 * Flows are looked up under RCU.  A flow that is dead (flow->dead) is in no table and
 * its timer is not started again; memory goes after a grace period.
 */
#ifndef DBLP_H
#define DBLP_H

#include <linux/in6.h>
#include <linux/rhashtable-types.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <net/sock.h>

#include <linux/dblp.h>
#include "dblp_compat.h"
#include "budget.h"
#include "cc.h"
#include "handshake.h"
#include "mib.h"

struct dblp_flow;
struct dblp_item;

#define DBLP_FLOWS_MAX		65536	/* of one socket, both directions */
#define DBLP_ROOM_MAX		9000
#define DBLP_QUEUED_MAX		(2 << 20) /* bytes of one socket below us, then wait */
#define DBLP_FIRST_FLIGHT_KIB	256
#define DBLP_MEM_MAX		(INT_MAX / 2)	/* bytes charged, of one kind */
#define DBLP_META_MIN		(256 << 10)

extern int dblp_family;

/*
 * net.dblp.mem: pages of all sockets: normal, pressure, limit.  net.dblp.wmem and rmem,
 * bytes of one socket: guaranteed under pressure, default, largest.
 */
extern long dblp_sysctl_mem[3];
extern int dblp_sysctl_wmem[3];
extern int dblp_sysctl_rmem[3];

/**
 * struct dblp_addr - a peer or local address, IPv4 ones mapped into IPv6
 * @ip: the address
 * @scope: interface of a link-local address, else 0
 * @port: UDP port
 * @pad: 0, because the struct is hashed and compared as bytes
 */
struct dblp_addr {
	struct in6_addr ip;
	u32 scope;
	__be16 port;
	u16 pad;
};

static inline bool dblp_addr_is_v4(const struct dblp_addr *a)
{
	return ipv6_addr_v4mapped(&a->ip);
}

static inline bool dblp_addr_equal(const struct dblp_addr *a, const struct dblp_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/**
 * struct dblp_net - what a network namespace has of us
 * @mib: counters
 * @socks: sockets, for /proc; RCU
 * @lock: protects @socks
 * @max_message: net.dblp.max_message
 * @ctl: their registration
 * @ctl_table: memory of their table
 */
struct dblp_net {
	struct dblp_mibs __percpu *mib;
	struct hlist_head socks;
	spinlock_t lock;	/* socks */
	unsigned int max_message;
	struct ctl_table_header *ctl;
	struct ctl_table *ctl_table;
};

/**
 * struct dblp_endpoint - the UDP socket under a bound socket
 * @sock: the UDP socket
 * @local: what it is bound to, zero address for a wildcard
 * @v4: it takes IPv4
 * @v6: it takes IPv6
 * @hs: handshake secrets
 * @key: for @hs
 * @by_id: flows by our id
 * @by_peer: flows by peer
 * @reset_tokens: RESETs that may be sent in the current jiffy window
 * @reset_window: when that window began
 */
struct dblp_endpoint {
	struct socket *sock;
	struct dblp_addr local;
	bool v4, v6;
	struct dblp_hs hs;
	siphash_key_t key;
	struct rhashtable by_id;
	struct rhashtable by_peer;
	atomic_t reset_tokens;
	unsigned long reset_window;
};

/**
 * struct dblp_sock - a socket
 * @sk: first
 * @node: in dblp_net->socks
 * @pid: process that made it, in the initial namespace
 * @ino: inode, by which tools know it
 * @ep: the UDP socket; valid once @bound
 * @bound: ep may be used (release/acquire)
 * @v6only: IPV6_V6ONLY was set
 * @named_v4: what bound the socket was a sockaddr_in: IPv4 peers are named so
 * @connected: @peer is fixed; both under flows_lock for readers in softirq
 * @peer: that peer
 * @send_def: DBLP_SO_SEND
 * @completions: DBLP_SO_COMPLETIONS
 * @partial: DBLP_SO_PARTIAL
 * @holes: DBLP_SO_HOLES
 * @cc: DBLP_SO_CONGESTION
 * @rate: DBLP_SO_RATE
 * @dead_ms: DBLP_SO_DEAD_TIME
 * @max_message: DBLP_SO_MAX_MESSAGE, 0 not set
 * @flows_lock: protects @flows to @deaf, @connected, @peer, @send_def
 * @flows: all of them, RCU
 * @nflows: their number
 * @closing: no flow may be added
 * @deaf: SHUT_RD: nothing more is received
 * @rxq_lock: protects @rxq
 * @rxq: finished messages and completions, oldest first
 * @mem_lock: protects sk_forward_alloc and the three below
 * @wmem: bytes charged for sending, completions not read included
 * @rmem: bytes charged for payload received
 * @rmeta: bytes charged for the bookkeeping of receiving
 * @nospace: somebody waits for room to send
 * @outstanding: messages without a verdict
 * @outbytes: their payload
 * @budget_lock: protects @budget and rxflow->grants
 * @budget: room for whole messages
 */
struct dblp_sock {
	struct sock sk;
	struct hlist_node node;
	pid_t pid;
	unsigned long ino;
	struct dblp_endpoint ep;
	bool bound;
	bool v6only;
	bool named_v4;
	bool connected;
	struct dblp_addr peer;

	struct dblp_send_params send_def;
	bool completions;
	bool partial;
	u8 holes;
	const struct dblp_cc_ops *cc;
	u64 rate;
	u32 dead_ms;
	u64 max_message;

	spinlock_t flows_lock;	/* the four below, connected, peer, send_def */
	struct list_head flows;
	u32 nflows;
	bool closing;
	bool deaf;

	spinlock_t rxq_lock;	/* rxq, item->users */
	struct list_head rxq;

	spinlock_t mem_lock;	/* the three below, sk_forward_alloc */
	u32 wmem;
	u32 rmem;
	u32 rmeta;
	bool nospace;
	atomic_t outstanding;
	atomic64_t outbytes;

	spinlock_t budget_lock;	/* budget, grants of its flows */
	struct dblp_budget budget;
};

static inline struct dblp_sock *dblp_sk(const struct sock *sk)
{
	return (struct dblp_sock *)sk;
}

extern unsigned int dblp_net_id;
struct dblp_net *dblp_pernet(const struct net *net);

static inline struct dblp_net *dblp_sk_net(const struct dblp_sock *dsk)
{
	return dblp_pernet(sock_net(&dsk->sk));
}

/* Is the socket bound?  Then its endpoint may be read. */
static inline bool dblp_is_bound(const struct dblp_sock *dsk)
{
	/* Pairs with dblp_endpoint_open(): what was set before is seen. */
	return smp_load_acquire(&dsk->bound);
}

static inline u32 dblp_send_limit(const struct dblp_sock *dsk)
{
	return min(READ_ONCE(dsk->sk.sk_sndbuf), READ_ONCE(dblp_sysctl_wmem[2]));
}

/* The largest message that this socket takes. */
u32 dblp_max_message(const struct dblp_sock *dsk);

static inline u32 dblp_recv_limit(const struct dblp_sock *dsk)
{
	return min(READ_ONCE(dsk->sk.sk_rcvbuf), READ_ONCE(dblp_sysctl_rmem[2]));
}

/* af_dblp.c */
extern struct proto dblp_proto;
extern struct percpu_counter dblp_sockets_allocated;
int dblp_af_init(void);
void dblp_af_exit(void);
/* A sender waits for room: dblp_mem_writable() must be looked at after this. */
void dblp_want_space(struct dblp_sock *dsk);
/* Binds to a free port if unbound; process context, takes the socket lock. */
int dblp_autobind(struct sock *sk, const struct dblp_addr *to, bool name_v4);

/**
 * dblp_addr_get() - read a peer address given by the user
 * @dsk: the socket
 * @a: result
 * @uaddr: the address
 * @len: its length
 *
 * Return: 0, -EINVAL (short, port 0, link-local without scope), -EAFNOSUPPORT,
 * -ENETUNREACH (nothing a message can be sent to).
 */
int dblp_addr_get(struct dblp_sock *dsk, struct dblp_addr *a, const void *uaddr, int len);
/* Writes an address as this socket names it; returns its length. */
int dblp_addr_put(const struct dblp_sock *dsk, const struct dblp_addr *a, void *uaddr);

/* sendmsg.c, recvmsg.c, sockopt.c */
int dblp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int dblp_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);
int dblp_setsockopt(struct socket *sock, int level, int opt, sockptr_t val,
		    unsigned int len);
int dblp_getsockopt(struct socket *sock, int level, int opt, char __user *val,
		    int __user *len);
/* Length of the next item in the queue, 0 if there is none. */
int dblp_next_len(struct dblp_sock *dsk);
/* Adds to the queue and wakes readers; any context. */
void dblp_enqueue(struct dblp_sock *dsk, struct dblp_item *item);
void dblp_queue_purge(struct dblp_sock *dsk);

/* endpoint.c */
/**
 * dblp_endpoint_open() - create the UDP socket
 * @dsk: the socket; its lock is held
 * @local: address and port, zero port: any
 * @v6: bind in IPv6 (@local is not v4-mapped)
 *
 * Return: 0 or an error of bind().
 */
int dblp_endpoint_open(struct dblp_sock *dsk, const struct dblp_addr *local, bool v6);
/* Waits until no packet is being received; all flows are gone already. */
void dblp_endpoint_close(struct dblp_sock *dsk);
/* May one more RESET be sent? */
bool dblp_endpoint_may_reset(struct dblp_endpoint *ep);

/* input.c */
int dblp_udp_rcv(struct sock *udp, struct sk_buff *skb);
/* An ICMP error @err about @len bytes of UDP payload at @quote that we sent to @to. */
void dblp_icmp_err(struct dblp_sock *dsk, const struct dblp_addr *to, const u8 *quote,
		   u32 len, int err);

/* mem.c */
enum dblp_mem { DBLP_MEM_TX, DBLP_MEM_RX, DBLP_MEM_META };
/**
 * dblp_mem_charge() - account for memory of a socket
 * @dsk: the socket
 * @kind: which account
 * @bytes: how much
 *
 * TX succeeds if the account is below the send limit, however much is asked for;
 * META if it stays below a quarter of the receive limit; RX is bounded by the budget.
 *
 * Return: 0, -EAGAIN (limit of the socket), -ENOBUFS (net.dblp.mem, memory cgroup).
 */
int dblp_mem_charge(struct dblp_sock *dsk, enum dblp_mem kind, u32 bytes);
void dblp_mem_uncharge(struct dblp_sock *dsk, enum dblp_mem kind, u32 bytes);
bool dblp_mem_writable(struct dblp_sock *dsk);
int dblp_mem_init(void);
void dblp_mem_exit(void);

/* sysctl.c, net_ns.c, proc.c */
void dblp_sysctl_mem_init(void);
int dblp_sysctl_init(struct net *net);
void dblp_sysctl_exit(struct net *net);
int dblp_netns_init(void);
void dblp_netns_exit(void);
int dblp_proc_init(struct net *net);
void dblp_proc_exit(struct net *net);

#endif /* DBLP_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels, from 6.1 on.  No other file looks at versions or
 * features.  A changed prototype is told by its type, because stable kernels take
 * such changes over; a version is the last resort.
 */
#ifndef DBLP_COMPAT_H
#define DBLP_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/sysctl.h>
#include <linux/version.h>
#include <net/sock.h>
#include <net/udp_tunnel.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <net/proto_memory.h>
#endif

/* @a if the expression @x has the type @type, else @b; only that one must fit. */
#define DBLP_IF_TYPE(x, type, a, b)                                               \
	__builtin_choose_expr(__builtin_types_compatible_p(typeof(x), type), a, b)

/* The address type of proto_ops.bind() and connect(). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define dblp_sockaddr sockaddr_unsized
#else
#define dblp_sockaddr sockaddr
#endif

/* These two take struct socket, or struct sock in later kernels. */
typedef void (*dblp_tunnel_setup_t)(struct net *, struct socket *,
				    struct udp_tunnel_sock_cfg *);
typedef void (*dblp_tunnel_release_t)(struct socket *);

#define dblp_tunnel_setup(net, sock, cfg)                                         \
	setup_udp_tunnel_sock(net,                                                \
			      DBLP_IF_TYPE(&setup_udp_tunnel_sock,                \
					   dblp_tunnel_setup_t, sock, (sock)->sk), \
			      cfg)
#define dblp_tunnel_release(sock)                                                 \
	udp_tunnel_sock_release(DBLP_IF_TYPE(&udp_tunnel_sock_release,            \
					     dblp_tunnel_release_t, sock,         \
					     (sock)->sk))

/* How a UDP socket tells its tunnel of an ICMP error. */
typedef void (*dblp_err_rcv_t)(struct sock *, struct sk_buff *, int, __be16, u32, u8 *);

/* Later kernels take flags for the IP layer too. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define dblp_xmit4(rt, sk, skb, saddr, daddr, tos, ttl, df, sport, dport)         \
	udp_tunnel_xmit_skb(rt, sk, skb, saddr, daddr, tos, ttl, df, sport,       \
			    dport, false, false, 0)
#define dblp_xmit6(dst, sk, skb, saddr, daddr, tos, ttl, sport, dport)            \
	udp_tunnel6_xmit_skb(dst, sk, skb, NULL, saddr, daddr, tos, ttl, 0,       \
			     sport, dport, false, 0)
#else
#define dblp_xmit4(rt, sk, skb, saddr, daddr, tos, ttl, df, sport, dport)         \
	udp_tunnel_xmit_skb(rt, sk, skb, saddr, daddr, tos, ttl, df, sport,       \
			    dport, false, false)
#define dblp_xmit6(dst, sk, skb, saddr, daddr, tos, ttl, sport, dport)            \
	udp_tunnel6_xmit_skb(dst, sk, skb, NULL, saddr, daddr, tos, ttl, 0,       \
			     sport, dport, false)
#endif

static inline void dblp_hrtimer_init(struct hrtimer *t,
				     enum hrtimer_restart (*fn)(struct hrtimer *))
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(t, fn, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
#else
	hrtimer_init(t, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	t->function = fn;
#endif
}

/* @table ends with an empty entry, which only earlier kernels want to see. */
static inline struct ctl_table_header *
dblp_sysctl_register(struct net *net, const char *path, struct ctl_table *table, size_t n)
{
#ifdef register_net_sysctl
	return register_net_sysctl_sz(net, path, table, n);
#else
	return register_net_sysctl(net, path, table);
#endif
}

#endif /* DBLP_COMPAT_H */

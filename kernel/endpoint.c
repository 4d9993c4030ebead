// SPDX-License-Identifier: GPL-2.0
/* The UDP socket under a bound socket. */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/random.h>
#include <net/icmp.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>
#include "dblp.h"
#include "flow.h"

#define DBLP_RESETS_PER_SEC 1000

/* Keyed hash for the handshake; @label keeps its uses apart. */
static u64 dblp_mac(const void *key, u32 label, const u8 *data, u32 len)
{
	u8 in[sizeof(u32) + DBLP_HS_ADDR_MAX + 40] __aligned(8);

	if (WARN_ON_ONCE(len > sizeof(in) - sizeof(u32)))
		return 0;
	put_unaligned_be32(label, in);
	memcpy(in + sizeof(u32), data, len);
	return siphash(in, sizeof(u32) + len, key);
}

/* ---- ICMP ----------------------------------------------------------------------- */

/* An error is ours if the port is: dblp_icmp_err() looks at what is quoted. */
static int dblp_err_lookup(struct sock *udp, struct sk_buff *skb)
{
	return 0;
}

/* @skb starts with the IP header that is quoted, @uh_off bytes before its UDP header. */
static void dblp_err_quote(struct sock *udp, struct sk_buff *skb, u32 uh_off, int err)
{
	struct dblp_sock *dsk = rcu_dereference_sk_user_data(udp);
	struct dblp_addr to = { };
	const struct udphdr *uh;

	if (!dsk || !pskb_may_pull(skb, uh_off + sizeof(*uh)))
		return;
	uh = (const struct udphdr *)(skb->data + uh_off);
	to.port = uh->dest;
	if (skb->protocol == htons(ETH_P_IP)) {
		ipv6_addr_set_v4mapped(((const struct iphdr *)skb->data)->daddr, &to.ip);
	} else {
		to.ip = ((const struct ipv6hdr *)skb->data)->daddr;
		if (ipv6_addr_type(&to.ip) & IPV6_ADDR_LINKLOCAL)
			to.scope = inet6_iif(skb);
	}
	dblp_icmp_err(dsk, &to, (const u8 *)(uh + 1), skb_headlen(skb) - uh_off - sizeof(*uh),
		      err);
}

static void dblp_err_rcv(struct sock *udp, struct sk_buff *skb, int err, __be16 port,
			 u32 info, u8 *payload)
{
	dblp_err_quote(udp, skb, payload - skb->data - sizeof(struct udphdr), err);
}

static int dblp_icmp_errno(const struct sk_buff *skb)
{
	const struct icmphdr *h = icmp_hdr(skb);
	int err = EHOSTUNREACH;

	if (skb->protocol != htons(ETH_P_IP))
		icmpv6_err_convert(icmp6_hdr(skb)->icmp6_type, icmp6_hdr(skb)->icmp6_code,
				   &err);
	else if (h->type == ICMP_DEST_UNREACH && h->code <= NR_ICMP_UNREACH)
		err = icmp_err_convert[h->code].errno;
	return err;
}

/* The same in kernels that do not tell the error. */
static void dblp_err_rcv_plain(struct sock *udp, struct sk_buff *skb, unsigned int uh_off)
{
	dblp_err_quote(udp, skb, uh_off, dblp_icmp_errno(skb));
}

/* ---- life ----------------------------------------------------------------------- */

static int dblp_endpoint_udp(struct dblp_sock *dsk, const struct dblp_addr *local, bool v6,
			     struct socket **sock)
{
	struct udp_port_cfg cfg = {
		.family			= v6 ? AF_INET6 : AF_INET,
		.local_udp_port		= local->port,
		.bind_ifindex		= local->scope ? local->scope :
					  READ_ONCE(dsk->sk.sk_bound_dev_if),
		.use_udp_checksums	= 1,
		.use_udp6_tx_checksums	= 1,
		.use_udp6_rx_checksums	= 1,
		.ipv6_v6only		= v6 && dsk->v6only,
	};

	if (v6)
		cfg.local_ip6 = local->ip;
	else if (dblp_addr_is_v4(local))
		cfg.local_ip.s_addr = local->ip.s6_addr32[3];
	return udp_sock_create(sock_net(&dsk->sk), &cfg, sock);
}

int dblp_endpoint_open(struct dblp_sock *dsk, const struct dblp_addr *local, bool v6)
{
	struct dblp_endpoint *ep = &dsk->ep;
	struct udp_tunnel_sock_cfg cfg = {
		.sk_user_data		= dsk,
		.encap_type		= 1,
		.encap_rcv		= dblp_udp_rcv,
		.encap_err_lookup	= dblp_err_lookup,
	};
	bool any = ipv6_addr_any(&local->ip);
	struct socket *sock;
	int err;

	err = dblp_endpoint_udp(dsk, local, v6, &sock);
	if (err)
		return err;
	err = dblp_flow_tables_init(ep);
	if (err) {
		sock_release(sock);
		return err;
	}
	get_random_bytes(&ep->key, sizeof(ep->key));
	do {
		get_random_bytes(&ep->hs.incarnation, sizeof(ep->hs.incarnation));
	} while (!ep->hs.incarnation);
	ep->hs.mac = dblp_mac;
	ep->hs.key = &ep->key;
	ep->sock = sock;
	ep->local = *local;
	ep->local.port = inet_sk(sock->sk)->inet_sport;
	ep->v6 = v6;
	ep->v4 = !v6 || (any && !dsk->v6only);
	ep->reset_window = jiffies;
	atomic_set(&ep->reset_tokens, DBLP_RESETS_PER_SEC);
	/* From here on packets come in. */
	smp_store_release(&dsk->bound, true);
	cfg.encap_err_rcv = DBLP_IF_TYPE(cfg.encap_err_rcv, dblp_err_rcv_t, dblp_err_rcv,
					 dblp_err_rcv_plain);
	dblp_tunnel_setup(sock_net(&dsk->sk), sock, &cfg);
	/* Each datagram is read here once: turning its checksum into a full one costs. */
	inet_dec_convert_csum(sock->sk);
	return 0;
}

void dblp_endpoint_close(struct dblp_sock *dsk)
{
	dblp_tunnel_release(dsk->ep.sock);
	dblp_flow_tables_exit(&dsk->ep);
}

bool dblp_endpoint_may_reset(struct dblp_endpoint *ep)
{
	unsigned long window = READ_ONCE(ep->reset_window);

	if (time_after(jiffies, window + HZ) &&
	    cmpxchg(&ep->reset_window, window, jiffies) == window)
		atomic_set(&ep->reset_tokens, DBLP_RESETS_PER_SEC);
	return atomic_dec_if_positive(&ep->reset_tokens) >= 0;
}

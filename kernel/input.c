// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams from the UDP socket: softirq, no lock held, checksum verified.  A datagram
 * is one or more packets, each for a flow that is found by its id; the address is
 * compared after that.  Packets for no flow are handshakes, RESETs, or answered by one.
 */
#include <linux/udp.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include "flow.h"
#include "sample.h"

/* Frames that are read without a flow: the longest is a hello. */
#define DBLP_FIRST_FRAME	(DBLP_HDR_LEN + DBLP_HELLO_LEN)

/* struct dblp_dgram - a datagram being read */
struct dblp_dgram {
	struct dblp_sock *dsk;
	struct sk_buff *skb;
	struct dblp_addr peer;
	struct in6_addr local;
	u64 now;
	u8 ecn;
};

/* struct dblp_hs_addr - what handshake hashes cover of addresses */
struct dblp_hs_addr {
	struct in6_addr peer, local;
	__be16 peer_port, local_port;
} __packed;

static_assert(sizeof(struct dblp_hs_addr) <= DBLP_HS_ADDR_MAX);

static void dblp_dgram_addr(struct dblp_dgram *d)
{
	const struct udphdr *uh = udp_hdr(d->skb);

	d->peer.port = uh->source;
	if (d->skb->protocol == htons(ETH_P_IP)) {
		ipv6_addr_set_v4mapped(ip_hdr(d->skb)->saddr, &d->peer.ip);
		ipv6_addr_set_v4mapped(ip_hdr(d->skb)->daddr, &d->local);
		d->ecn = ip_hdr(d->skb)->tos & INET_ECN_MASK;
		return;
	}
	d->peer.ip = ipv6_hdr(d->skb)->saddr;
	d->local = ipv6_hdr(d->skb)->daddr;
	d->ecn = ipv6_get_dsfield(ipv6_hdr(d->skb)) & INET_ECN_MASK;
	if (ipv6_addr_type(&d->peer.ip) & IPV6_ADDR_LINKLOCAL)
		d->peer.scope = inet6_iif(d->skb);
}

static void dblp_hs_addr(const struct dblp_dgram *d, struct dblp_hs_addr *a)
{
	a->peer = d->peer.ip;
	a->local = d->local;
	a->peer_port = d->peer.port;
	a->local_port = d->dsk->ep.local.port;
}

static u32 dblp_dgram_linear(const struct dblp_dgram *d, u32 off, u32 len)
{
	return min(skb_headlen(d->skb) - off, len);
}

/* ---- packets of a flow ---------------------------------------------------------- */

static void dblp_input_tx(struct dblp_dgram *d, u32 off, const struct dblp_hdr *h,
			  struct dblp_txflow *t)
{
	u32 samples;
	u64 now;

	if (!pskb_may_pull(d->skb, off + h->len)) {
		dblp_reject(d->dsk, t->f.id, DBLP_REJECT_MEMORY);
		return;
	}
	now = dblp_flow_lock(&t->f, d->now);
	if (t->f.dead) {
		dblp_reject(d->dsk, t->f.id, DBLP_REJECT_CLOSED);
	} else {
		samples = t->tx.samples;
		dblp_tx_input(&t->tx, d->skb->data + off, h, now);
		dblp_sample_trace(t, samples);
	}
	dblp_flow_run_later(&t->f);
}

static void dblp_input_rx(struct dblp_dgram *d, u32 off, const struct dblp_hdr *h,
			  struct dblp_rxflow *r)
{
	struct dblp_rx_pkt pkt = { .skb = d->skb, .off = off };
	u64 now;
	int ret;

	now = dblp_flow_lock(&r->f, d->now);
	if (r->f.dead) {
		dblp_reject(d->dsk, r->f.id, DBLP_REJECT_CLOSED);
		goto out;
	}
	/* Options may have changed it. */
	r->rx.cfg.limit = dblp_max_message(d->dsk);
	ret = dblp_rx_input(&r->rx, d->skb->data + off, dblp_dgram_linear(d, off, h->len), h,
			    d->ecn, &pkt, now);
	if (ret != DBLP_READ_LINEAR)
		goto out;
	if (!pskb_may_pull(d->skb, off + h->len)) {
		dblp_reject(d->dsk, r->f.id, DBLP_REJECT_MEMORY);
		goto out;
	}
	dblp_rx_input(&r->rx, d->skb->data + off, h->len, h, d->ecn, &pkt, now);
out:
	dblp_flow_run_later(&r->f);
}

/* ---- packets without a flow ----------------------------------------------------- */

static void dblp_answer_init(struct dblp_dgram *d, const struct dblp_f_hello *init)
{
	struct dblp_sock *dsk = d->dsk;
	struct dblp_hs_addr a;
	u8 buf[DBLP_FIRST_FRAME];
	u32 len;

	if (!init->tx_flow) {
		dblp_reject(dsk, 0, DBLP_REJECT_HANDSHAKE);
		return;
	}
	dblp_hs_addr(d, &a);
	len = dblp_hs_challenge(&dsk->ep.hs, init, (const u8 *)&a, sizeof(a),
				dblp_first_flight_kib(dsk), d->now, buf, sizeof(buf));
	if (WARN_ON_ONCE(!len))
		return;
	dblp_mib_inc(dblp_sk_net(dsk), DBLP_MIB_CHALLENGES_SENT);
	dblp_out_bare(dsk, &d->peer, &d->local, buf, len);
}

static struct dblp_rxflow *dblp_accept_echo(struct dblp_dgram *d, const struct dblp_hdr *h,
					    const struct dblp_f_hello *echo)
{
	struct dblp_sock *dsk = d->dsk;
	struct dblp_hs_addr a;
	u64 rtt;
	int ret;

	if (!echo->tx_flow || echo->rx_flow != h->flow) {
		dblp_reject(dsk, h->flow, DBLP_REJECT_HANDSHAKE);
		return NULL;
	}
	dblp_hs_addr(d, &a);
	ret = dblp_hs_check(&dsk->ep.hs, echo, (const u8 *)&a, sizeof(a), d->now, &rtt);
	if (ret) {
		dblp_reject(dsk, h->flow, ret);
		return NULL;
	}
	return dblp_rxflow_open(dsk, &d->peer, &d->local, echo, rtt, d->now);
}

/* A RESET names the flow by the id that the peer was sent, so it is found by address. */
static void dblp_input_reset(struct dblp_dgram *d, const struct dblp_hdr *h, u8 reason)
{
	struct dblp_endpoint *ep = &d->dsk->ep;
	struct dblp_flow *f;
	bool ours = false;
	u64 now;

	f = dblp_flow_by_peer(ep, &d->peer, 0);
	if (f) {
		now = dblp_flow_lock(f, d->now);
		ours = !f->dead && h->flow == dblp_txflow(f)->tx.peer_flow;
		if (ours)
			dblp_tx_reset(&dblp_txflow(f)->tx, h, reason, now);
		dblp_flow_run(f);
	}
	if (ours)
		return;
	f = dblp_flow_by_peer(ep, &d->peer, h->flow);
	if (!f || !h->flow) {
		dblp_reject(d->dsk, h->flow, DBLP_REJECT_FLOW);
		return;
	}
	dblp_flow_lock(f, d->now);
	if (!f->dead && !dblp_rxflow(f)->rx.dead) {
		dblp_mib_inc(dblp_sk_net(d->dsk), DBLP_MIB_RESETS_RECEIVED);
		dblp_mib_inc(dblp_sk_net(d->dsk), DBLP_MIB_FLOWS_DIED);
		dblp_rx_kill(&dblp_rxflow(f)->rx);
	}
	dblp_flow_run(f);
}

static void dblp_answer_unknown(struct dblp_dgram *d, const struct dblp_hdr *h)
{
	u8 buf[DBLP_HDR_LEN + DBLP_RESET_LEN];
	u32 len;

	dblp_reject(d->dsk, h->flow, DBLP_REJECT_FLOW);
	if (!dblp_endpoint_may_reset(&d->dsk->ep)) {
		dblp_reject(d->dsk, h->flow, DBLP_REJECT_RESET_RATE);
		return;
	}
	len = dblp_hs_reset(h->flow, h->pn, DBLP_RESET_UNKNOWN, buf, sizeof(buf));
	dblp_mib_inc(dblp_sk_net(d->dsk), DBLP_MIB_RESETS_SENT);
	dblp_out_bare(d->dsk, &d->peer, &d->local, buf, len);
}

/* Returns the flow that the packet opened and is still to be read by. */
static struct dblp_rxflow *dblp_input_flowless(struct dblp_dgram *d, u32 off,
					       const struct dblp_hdr *h)
{
	struct dblp_reader r;
	struct dblp_frame f;
	bool init;
	int ret;

	if (!pskb_may_pull(d->skb, off + min_t(u32, h->len, DBLP_FIRST_FRAME))) {
		dblp_reject(d->dsk, h->flow, DBLP_REJECT_MEMORY);
		return NULL;
	}
	dblp_reader_init(&r, d->skb->data + off, dblp_dgram_linear(d, off, h->len), h);
	ret = dblp_frame_next(&r, &f);
	if (ret < 0) {
		dblp_reject(d->dsk, h->flow, -ret);
		return NULL;
	}
	if (ret == 1 && f.type == DBLP_F_RESET) {
		dblp_input_reset(d, h, f.u.reason.reason);
		return NULL;
	}
	init = ret == 1 && f.type == DBLP_F_INIT;
	if (init || (ret == 1 && f.type == DBLP_F_ECHO)) {
		if (h->flags & DBLP_HDR_REV || init != !h->flow) {
			dblp_reject(d->dsk, h->flow, DBLP_REJECT_HANDSHAKE);
			return NULL;
		}
		if (dblp_is_deaf_to(d->dsk, &d->peer)) {
			dblp_reject(d->dsk, h->flow, DBLP_REJECT_CLOSED);
			return NULL;
		}
		if (!init)
			return dblp_accept_echo(d, h, &f.u.hello);
		dblp_answer_init(d, &f.u.hello);
		return NULL;
	}
	/* The end of a flow that has ended here too needs no answer. */
	if (!h->flow || (ret == 1 && f.type == DBLP_F_FIN))
		dblp_reject(d->dsk, h->flow, DBLP_REJECT_FLOW);
	else
		dblp_answer_unknown(d, h);
	return NULL;
}

/* ---- datagrams ------------------------------------------------------------------ */

static void dblp_input_packet(struct dblp_dgram *d, u32 off, const struct dblp_hdr *h)
{
	struct dblp_flow *f = h->flow ? dblp_flow_by_id(&d->dsk->ep, h->flow) : NULL;
	struct dblp_rxflow *r;

	if (!f) {
		r = dblp_input_flowless(d, off, h);
		if (r)
			dblp_input_rx(d, off, h, r);
		return;
	}
	if (!dblp_addr_equal(&f->key.addr, &d->peer))
		dblp_reject(d->dsk, f->id, DBLP_REJECT_ADDR);
	else if (f->sender != !!(h->flags & DBLP_HDR_REV))
		dblp_reject(d->dsk, f->id, DBLP_REJECT_DIRECTION);
	else if (f->sender)
		dblp_input_tx(d, off, h, dblp_txflow(f));
	else
		dblp_input_rx(d, off, h, dblp_rxflow(f));
}

static void dblp_input_dgram(struct dblp_dgram *d)
{
	u32 off, len = d->skb->len;
	struct dblp_hdr h;
	int ret;

	if (!len) {
		dblp_reject(d->dsk, 0, DBLP_REJECT_TRUNCATED);
		return;
	}
	for (off = 0; off < len; off += h.len) {
		if (!pskb_may_pull(d->skb, off + min_t(u32, len - off, DBLP_HDR_LEN))) {
			dblp_reject(d->dsk, 0, DBLP_REJECT_MEMORY);
			return;
		}
		dblp_mib_inc(dblp_sk_net(d->dsk), DBLP_MIB_PKTS_RECEIVED);
		ret = dblp_hdr_get(d->skb->data + off, len - off, &h);
		switch (ret) {
		case 0:
			dblp_input_packet(d, off, &h);
			break;
		case DBLP_REJECT_TRUNCATED:
		case DBLP_REJECT_VERSION:
		case DBLP_REJECT_LENGTH:
			dblp_reject(d->dsk, 0, ret);
			return;
		default:
			dblp_reject(d->dsk, h.flow, ret);
			break;
		}
	}
}

int dblp_udp_rcv(struct sock *udp, struct sk_buff *skb)
{
	struct dblp_sock *dsk = rcu_dereference_sk_user_data(udp);
	struct dblp_dgram d = { .dsk = dsk, .skb = skb };
	u8 pkt_type = skb->pkt_type;

	if (!dsk) {
		kfree_skb(skb);
		return 0;
	}
	d.now = ktime_get_ns();
	dblp_dgram_addr(&d);
	/* Nothing of what the skb holds on to is needed while its payload is kept. */
	skb_orphan(skb);
	skb_dst_drop(skb);
	skb_ext_reset(skb);
	nf_reset_ct(skb);
	skb->dev = NULL;
	__skb_pull(skb, sizeof(struct udphdr));
	/* Nothing is for a group, and what is kept must not come from the last reserves. */
	if (pkt_type != PACKET_HOST)
		dblp_reject(dsk, 0, DBLP_REJECT_ADDR);
	else if (skb_pfmemalloc(skb))
		dblp_reject(dsk, 0, DBLP_REJECT_MEMORY);
	/* In IPv4 a sender may leave the checksum out: then nobody has verified anything. */
	else if (!udp_hdr(skb)->check)
		dblp_reject(dsk, 0, DBLP_REJECT_CHECKSUM);
	else
		dblp_input_dgram(&d);
	/* Other references are those of payload that is kept. */
	consume_skb(skb);
	return 0;
}

/* ---- ICMP ----------------------------------------------------------------------- */

/*
 * Only an error that quotes an id that nobody else knows is believed at once.  One that
 * quotes too little just replaces ETIMEDOUT if the peer never answers.
 */
void dblp_icmp_err(struct dblp_sock *dsk, const struct dblp_addr *to, const u8 *quote,
		   u32 len, int err)
{
	u64 now, id, init;
	struct dblp_flow *f;
	struct dblp_tx *tx;
	bool known;

	if (err != ECONNREFUSED && err != EHOSTUNREACH && err != ENETUNREACH)
		return;
	id = len >= 12 ? get_unaligned_be64(quote + 4) : 0;
	init = len >= DBLP_HDR_LEN + 12 ? get_unaligned_be64(quote + DBLP_HDR_LEN + 4) : 0;

	rcu_read_lock();
	f = dblp_flow_by_peer(&dsk->ep, to, 0);
	if (!f)
		goto out;
	local_bh_disable();
	now = dblp_flow_lock(f, ktime_get_ns());
	tx = &dblp_txflow(f)->tx;
	known = id ? id == tx->peer_flow : init == f->id;
	if (!f->dead && known && err == ECONNREFUSED)
		dblp_tx_kill(tx, ECONNREFUSED, now);
	else if (!f->dead && tx->state != DBLP_TX_OPEN)
		dblp_txflow(f)->icmp = err;
	dblp_flow_run(f);
	local_bh_enable();
out:
	rcu_read_unlock();
}

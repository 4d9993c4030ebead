// SPDX-License-Identifier: GPL-2.0
/*
 * TCP flows, from one of three places; the loader takes the first that the kernel has.
 *
 *	fexit of tcp_rate_gen()	the rate sample of each ACK, as BBR gets it
 *	sockops, RTT call-back	one ACK late; sockets that are made after the load only
 *	tracepoint tcp_probe	before the ACK is looked at: one ACK late
 *
 * An iterator makes entries of the connections that are there already.
 */
#include "flow.bpf.h"
#include <bpf/bpf_endian.h>

#define NSEC_PER_USEC	1000ULL

static __always_inline void set_v4(__u8 *to, __u32 addr)
{
	__u32 *word = (__u32 *)to;

	word[0] = 0;
	word[1] = 0;
	word[2] = bpf_htonl(0xffff);
	word[3] = addr;
}

/* Who the flow is; does not change but for the process. */
static __always_inline void set_identity(struct dblp_flow *f, struct sock *sk)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);

	f->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	f->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	f->peer_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (f->family == AF_INET6) {
		BPF_CORE_READ_INTO(&f->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&f->peer, sk, __sk_common.skc_v6_daddr);
	} else {
		set_v4(f->local, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
		set_v4(f->peer, BPF_CORE_READ(sk, __sk_common.skc_daddr));
	}
	f->netns_cookie = BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
	/* The socket is the first member of what has its inode. */
	if (socket)
		f->inode = BPF_CORE_READ((struct socket_alloc *)socket, vfs_inode.i_ino);
	BPF_CORE_READ_STR_INTO(&f->cc, icsk, icsk_ca_ops, name);
}

static __always_inline void set_state(struct dblp_flow *f, struct tcp_sock *tp, __u32 source)
{
	struct sock *sk = (struct sock *)tp;
	__u32 mss = tp->mss_cache;
	__u32 left = tp->sacked_out + tp->lost_out;
	__u32 out = tp->packets_out + tp->retrans_out;

	f->source = source;
	f->srtt_ns = (tp->srtt_us >> 3) * NSEC_PER_USEC;
	f->inflight = out > left ? (__u64)(out - left) * mss : 0;
	f->inflight_cap = (__u64)tp->snd_cwnd * mss;
	f->pacing_rate = BPF_CORE_READ(sk, sk_pacing_rate);
	if (f->pacing_rate == ~0UL)
		f->pacing_rate = 0;
	f->delivered = tp->bytes_acked;
}

static __always_inline struct dblp_flow *tcp_flow(struct dblp_flow_key *key, struct tcp_sock *tp)
{
	struct dblp_flow *f;

	key->id = bpf_get_socket_cookie(tp);
	key->proto = DBLP_FLOW_TCP;
	key->reserved = 0;
	f = flow_get(key);
	if (f) {
		flow_begin(f);
		if (!f->version)
			set_identity(f, (struct sock *)tp);
	}
	return f;
}

/* The sample that the socket keeps: that of the last ACK which raised the rate. */
static __always_inline void sample_of_socket(struct dblp_sample *s, struct tcp_sock *tp,
					     struct dblp_flow *f)
{
	__u64 acked = tp->bytes_acked;

	s->now = bpf_ktime_get_ns();
	s->bytes = (__u64)tp->rate_delivered * tp->mss_cache;
	s->interval_ns = tp->rate_interval_us * NSEC_PER_USEC;
	s->app_limited = BPF_CORE_READ_BITFIELD_PROBED(tp, rate_app_limited);
	s->acked = f->version && acked > f->delivered ? acked - f->delivered : 0;
}

SEC("fexit/tcp_rate_gen")
int BPF_PROG(tcp_fexit, struct sock *sk, __u32 delivered, __u32 lost, bool reneged,
	     struct rate_sample *rs)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct dblp_flow_key key;
	struct dblp_sample s = {};
	struct dblp_flow *f;
	__u64 mss;

	if (!tp || sk->__sk_common.skc_state == TCP_CLOSE)
		return 0;
	f = tcp_flow(&key, tp);
	if (!f)
		return 0;
	set_state(f, tp, DBLP_FLOW_FEXIT);
	mss = tp->mss_cache;
	s.now = bpf_ktime_get_ns();
	if (rs->delivered > 0 && rs->interval_us > 0) {
		s.bytes = (__u64)rs->delivered * mss;
		s.interval_ns = rs->interval_us * NSEC_PER_USEC;
	}
	if (rs->rtt_us > 0)
		s.rtt_ns = rs->rtt_us * NSEC_PER_USEC;
	s.acked = delivered * mss;
	s.lost = lost * mss;
	/* Counted over the sample's interval; scaled to what is new. */
	if (bpf_core_field_exists(rs->delivered_ce) && rs->delivered > 0 && rs->delivered_ce > 0)
		s.ce = s.acked * (__u32)rs->delivered_ce / (__u32)rs->delivered;
	s.app_limited = rs->is_app_limited;
	flow_add(&key, f, &s);
	flow_done(f);
	return 0;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(tcp_probed, struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct dblp_flow_key key;
	struct dblp_sample s = {};
	struct dblp_flow *f;

	/* Receivers, which have nothing in flight, say nothing about a path. */
	if (!tp || !tp->packets_out)
		return 0;
	f = tcp_flow(&key, tp);
	if (!f)
		return 0;
	sample_of_socket(&s, tp, f);
	s.rtt_ns = BPF_CORE_READ(tp, rack.rtt_us) * NSEC_PER_USEC;
	set_state(f, tp, DBLP_FLOW_PROBE);
	flow_add(&key, f, &s);
	flow_done(f);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(tcp_state, struct sock *sk, int before, int after)
{
	struct dblp_flow_key key = { .proto = DBLP_FLOW_TCP };

	if (after != TCP_CLOSE || BPF_CORE_READ_BITFIELD_PROBED(sk, sk_protocol) != 6)
		return 0;
	key.id = bpf_get_socket_cookie(sk);
	flow_gone(&key);
	return 0;
}

SEC("iter/tcp")
int tcp_seed(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct dblp_flow_key key = {};
	struct dblp_sample s = {};
	struct tcp_sock *tp;
	struct dblp_flow *f;
	__u8 now;

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	now = common->skc_state;
	if (now == TCP_LISTEN || now == TCP_CLOSE || !tp->bytes_acked)
		return 0;
	key.id = bpf_get_socket_cookie(tp);
	key.proto = DBLP_FLOW_TCP;
	/* Its own ACKs have been here first. */
	if (bpf_map_lookup_elem(&flows, &key))
		return 0;
	f = tcp_flow(&key, tp);
	if (!f)
		return 0;
	sample_of_socket(&s, tp, f);
	s.rtt_ns = (tp->srtt_us >> 3) * NSEC_PER_USEC;
	set_state(f, tp, DBLP_FLOW_SEED);
	flow_add(&key, f, &s);
	flow_done(f);
	return 0;
}

static __always_inline void ops_identity(struct dblp_flow *f, struct bpf_sock_ops *ops)
{
	__u32 *word;

	f->family = ops->family;
	f->local_port = ops->local_port;
	f->peer_port = bpf_ntohl(ops->remote_port);
	if (ops->family == AF_INET6) {
		word = (__u32 *)f->local;
		word[0] = ops->local_ip6[0];
		word[1] = ops->local_ip6[1];
		word[2] = ops->local_ip6[2];
		word[3] = ops->local_ip6[3];
		word = (__u32 *)f->peer;
		word[0] = ops->remote_ip6[0];
		word[1] = ops->remote_ip6[1];
		word[2] = ops->remote_ip6[2];
		word[3] = ops->remote_ip6[3];
	} else {
		set_v4(f->local, ops->local_ip4);
		set_v4(f->peer, ops->remote_ip4);
	}
	f->netns_cookie = bpf_get_netns_cookie(ops);
}

static __always_inline void ops_sample(struct bpf_sock_ops *ops)
{
	struct dblp_flow_key key = { .proto = DBLP_FLOW_TCP };
	struct dblp_sample s = {};
	struct dblp_flow *f;
	__u64 acked, mss;

	key.id = bpf_get_socket_cookie(ops);
	f = flow_get(&key);
	if (!f)
		return;
	flow_begin(f);
	if (!f->version)
		ops_identity(f, ops);
	mss = ops->mss_cache;
	acked = ops->bytes_acked;
	s.now = bpf_ktime_get_ns();
	s.bytes = ops->rate_delivered * mss;
	s.interval_ns = ops->rate_interval_us * NSEC_PER_USEC;
	/* 6.1 does not pass the round trip itself. */
	s.rtt_ns = ops->args[0] ? ops->args[0] : ops->srtt_us >> 3;
	s.rtt_ns *= NSEC_PER_USEC;
	s.acked = f->version && acked > f->delivered ? acked - f->delivered : 0;
	f->source = DBLP_FLOW_SOCKOPS;
	f->srtt_ns = (ops->srtt_us >> 3) * NSEC_PER_USEC;
	f->inflight = ops->packets_out * mss;
	f->inflight_cap = ops->snd_cwnd * mss;
	f->delivered = acked;
	flow_add(&key, f, &s);
	flow_done(f);
}

SEC("sockops")
int tcp_ops(struct bpf_sock_ops *ops)
{
	struct dblp_flow_key key = { .proto = DBLP_FLOW_TCP };

	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags |
					  BPF_SOCK_OPS_RTT_CB_FLAG |
					  BPF_SOCK_OPS_STATE_CB_FLAG);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		ops_sample(ops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ops->args[1] != BPF_TCP_CLOSE)
			break;
		key.id = bpf_get_socket_cookie(ops);
		flow_gone(&key);
		break;
	}
	return 1;
}

char _license[] SEC("license") = "GPL";

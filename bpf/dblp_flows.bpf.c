// SPDX-License-Identifier: GPL-2.0
/*
 * DBLP flows, from the module's tracepoints.  The typed twins need the module's BTF; the
 * raw ones do not, as struct dblp_rate_info has a fixed layout.  The loader takes one
 * kind.
 */
#include "flow.bpf.h"

/* The kernel's types are those of vmlinux.h. */
#define _LINUX_TYPES_H
#ifndef __aligned_u64
#define __aligned_u64 __u64 __attribute__((aligned(8)))
#endif
#include <linux/dblp.h>

/* Marks are counted in packets: UDP payload of a full one, IPv4 on Ethernet. */
#define PACKET	1472

static __always_inline int on_sample(const void *arg, __u32 source)
{
	struct dblp_rate_info info = {};
	struct dblp_flow_key key = { .proto = DBLP_FLOW_DBLP };
	struct dblp_sample s = {};
	struct dblp_flow *f;
	__u32 size;

	/* An older module's structure is shorter, a newer one's longer. */
	if (bpf_probe_read_kernel(&size, sizeof(size), arg) || size < sizeof(info) ||
	    bpf_probe_read_kernel(&info, sizeof(info), arg)) {
		COUNT(unread);
		return 0;
	}
	key.id = info.flow;
	f = flow_get(&key);
	if (!f)
		return 0;

	flow_begin(f);
	f->source = source;
	f->netns_cookie = info.netns_cookie;
	f->inode = info.inode;
	f->pid = info.pid;
	f->family = info.family;
	f->local_port = info.local_port;
	f->peer_port = info.peer_port;
	__builtin_memcpy(f->local, info.local, sizeof(f->local));
	__builtin_memcpy(f->peer, info.peer, sizeof(f->peer));
	f->phase = info.phase;
	f->tolerance_ppm = info.tolerance_ppm;
	f->srtt_ns = info.srtt_ns;
	f->inflight = info.inflight;
	f->inflight_cap = info.inflight_cap;
	f->pacing_rate = info.pacing_rate;
	f->delivered = info.total_delivered;
	s.now = info.time_ns;
	s.bytes = info.delivered;
	s.interval_ns = info.interval_ns;
	s.rtt_ns = info.rtt_ns;
	s.acked = info.acked;
	s.lost = info.lost;
	s.ce = (__u64)info.ce * PACKET;
	s.app_limited = info.app_limited;
	flow_add(&key, f, &s);
	flow_done(f);
	return 0;
}

static __always_inline int on_end(__u64 flow)
{
	struct dblp_flow_key key = { .id = flow, .proto = DBLP_FLOW_DBLP };

	flow_gone(&key);
	return 0;
}

SEC("tp_btf/dblp_rate_sample")
int BPF_PROG(sample_typed, const struct dblp_rate_info *info)
{
	/* The verifier wants the test from 6.12 on. */
	return info ? on_sample(info, DBLP_FLOW_TP_BTF) : 0;
}

SEC("tp_btf/dblp_flow_end")
int BPF_PROG(end_typed, __u64 flow)
{
	return on_end(flow);
}

SEC("raw_tp/dblp_rate_sample")
int sample_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_sample((const void *)ctx->args[0], DBLP_FLOW_RAW_TP);
}

SEC("raw_tp/dblp_flow_end")
int end_raw(struct bpf_raw_tracepoint_args *ctx)
{
	return on_end(ctx->args[0]);
}

char _license[] SEC("license") = "GPL";

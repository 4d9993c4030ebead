/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flow table, for the programs that fill it.  The maps are made by the loader and
 * shared between the objects.
 */
#ifndef DBLP_FLOW_BPF_H
#define DBLP_FLOW_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "dblp/flows_abi.h"
#include "estimate.h"

#ifndef AF_INET
#define AF_INET		2
#define AF_INET6	10
#endif

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct dblp_flow_key);
	__type(value, struct dblp_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} changes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct dblp_flows_state);
} state SEC(".maps");

/* Set by the loader. */
const volatile __u64 rtprop_window_ns = 2 * DBLP_NSEC_PER_SEC;
const volatile __u32 threshold_percent = 10;

static const struct dblp_flow no_flow;

#define COUNT(field) do {						\
	__u32 counters = 1;						\
	struct dblp_flows_state *st = bpf_map_lookup_elem(&state, &counters); \
									\
	if (st)								\
		__sync_fetch_and_add(&st->field, 1);			\
} while (0)

static __always_inline void tell(const struct dblp_flow_key *key, __u32 what, __u64 btlbw,
				 __u64 rtprop_ns)
{
	struct dblp_flow_change change = {
		.key = *key,
		.version = DBLP_FLOWS_VERSION,
		.what = what,
		.time_ns = bpf_ktime_get_ns(),
		.btlbw = btlbw,
		.rtprop_ns = rtprop_ns,
	};

	if (bpf_ringbuf_output(&changes, &change, sizeof(change), 0))
		COUNT(untold);
}

/* The caller holds the socket's or the flow's lock: one writer for each entry. */
static __always_inline struct dblp_flow *flow_get(const struct dblp_flow_key *key)
{
	struct dblp_flow *f = bpf_map_lookup_elem(&flows, key);

	if (f)
		return f;
	if (bpf_map_update_elem(&flows, key, &no_flow, BPF_NOEXIST)) {
		COUNT(refused);
		return NULL;
	}
	COUNT(made);
	f = bpf_map_lookup_elem(&flows, key);
	if (!f)
		return NULL;
	f->id = key->id;
	f->proto = key->proto;
	f->first_ns = bpf_ktime_get_ns();
	tell(key, DBLP_FLOW_NEW, 0, 0);
	return f;
}

static __always_inline void flow_begin(struct dblp_flow *f)
{
	f->seq_end++;
	barrier();
}

static __always_inline void flow_done(struct dblp_flow *f)
{
	f->version = DBLP_FLOWS_VERSION;
	barrier();
	f->seq_begin = f->seq_end;
}

static __always_inline void flow_add(const struct dblp_flow_key *key, struct dblp_flow *f,
				     const struct dblp_sample *s)
{
	__u32 what = 0;

	dblp_estimate(f, s, rtprop_window_ns);
	if (dblp_changed(f->told_btlbw, f->btlbw, threshold_percent))
		what |= DBLP_FLOW_BTLBW;
	if (dblp_changed(f->told_rtprop_ns, f->rtprop_ns, threshold_percent))
		what |= DBLP_FLOW_RTPROP;
	if (what) {
		f->told_btlbw = f->btlbw;
		f->told_rtprop_ns = f->rtprop_ns;
		tell(key, what, f->btlbw, f->rtprop_ns);
	}
}

static __always_inline void flow_gone(const struct dblp_flow_key *key)
{
	if (bpf_map_delete_elem(&flows, key))
		return;
	COUNT(removed);
	tell(key, DBLP_FLOW_GONE, 0, 0);
}

#endif /* DBLP_FLOW_BPF_H */

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause */
/*
 * What the BPF programs write and everybody reads: the pinned maps of the flow table.
 * Documentation/networking/dblp-flows.rst says what each value means.
 *
 * The names of the maps carry the version: a reader of another version sees that the
 * layout is not its own before it reads a value.
 */
#ifndef DBLP_FLOWS_ABI_H
#define DBLP_FLOWS_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define DBLP_FLOWS_VERSION	1
#define DBLP_FLOWS_DIR		"/sys/fs/bpf/dblp"
#define DBLP_FLOWS_PREFIX	"dblp_flows_"	/* of the map's name, before the version */
#define DBLP_FLOWS_MAP		"dblp_flows_1"	/* pinned as "flows": LRU hash */
#define DBLP_FLOWS_CHANGES	"dblp_changes_1" /* pinned as "changes": ring buffer */
#define DBLP_FLOWS_STATE	"dblp_state_1"	/* pinned as "state": array of two */

#define DBLP_FLOWS_BUCKETS	8
#define DBLP_FLOWS_ROUNDS	10	/* round trips that BtlBw looks back */

enum dblp_flow_proto {
	DBLP_FLOW_DBLP	= 1,
	DBLP_FLOW_TCP	= 2,
};

/* Which program writes an entry. */
enum dblp_flow_source {
	DBLP_FLOW_TP_BTF	= 1,	/* DBLP, typed tracepoint */
	DBLP_FLOW_RAW_TP	= 2,	/* DBLP, raw tracepoint */
	DBLP_FLOW_FEXIT		= 3,	/* TCP, after tcp_rate_gen() */
	DBLP_FLOW_SOCKOPS	= 4,	/* TCP, call-back of the root cgroup */
	DBLP_FLOW_PROBE		= 5,	/* TCP, tracepoint tcp_probe */
	DBLP_FLOW_SEED		= 6,	/* TCP, found when the programs were loaded */
};

struct dblp_flow_key {
	__u64	id;			/* of a DBLP flow; socket cookie of TCP */
	__u32	proto;			/* enum dblp_flow_proto */
	__u32	reserved;		/* 0 */
};

/*
 * Best value of a sliding window, which moves by an eighth of its length.  An empty
 * bucket is 0.
 */
struct dblp_window {
	__u64	start;			/* of the newest bucket, ns */
	__u32	at;			/* index of the newest bucket */
	__u32	reserved;
	__u64	best[DBLP_FLOWS_BUCKETS];
};

/* Bytes of one second; see dblp_share_add(). */
struct dblp_share {
	__u64	acked, lost, ce;
};

/*
 * A writer raises @seq_end before and @seq_begin after it changed the rest, so that a copy
 * in which they are equal is whole.  Times are CLOCK_MONOTONIC.  0 is "not known".
 */
struct dblp_flow {
	__u32	seq_begin;
	__u32	version;		/* DBLP_FLOWS_VERSION; 0 while it is made */
	__u64	id;
	__u32	proto;			/* enum dblp_flow_proto */
	__u32	source;			/* enum dblp_flow_source, of the last sample */
	__u64	netns_cookie;
	__u64	inode;			/* of the socket */
	__u32	pid;			/* DBLP: that made the socket */
	__u16	family;
	__u16	local_port, peer_port;	/* host byte order */
	__u8	phase;			/* DBLP: of the last message */
	__u8	app_limited;		/* the last sample was */
	__u32	tolerance_ppm;		/* DBLP: of the last message */
	__u8	local[16], peer[16];	/* v4-mapped for IPv4 */
	char	cc[16];			/* TCP: congestion control */

	__u64	first_ns, last_ns;	/* seen */
	__u64	samples;
	__u64	btlbw;			/* bytes/s */
	__u64	rtprop_ns;
	__u64	bdp;			/* bytes */
	__u64	rate;			/* bytes/s, latest sample */
	__u64	rtt_ns;			/* latest sample */
	__u64	srtt_ns;
	__u64	inflight;		/* bytes */
	__u64	inflight_cap;		/* bytes */
	__u64	pacing_rate;		/* bytes/s */
	__u64	delivered;		/* bytes since the flow began */
	__u32	loss_ppm;		/* of the last one to two seconds */
	__u32	ecn_ppm;

	/* The programs' own. */
	struct dblp_window bw_window, rtt_window;
	__u64	share_start;
	struct dblp_share share[2];	/* this second, the one before */
	__u64	told_btlbw, told_rtprop_ns;
	__u32	reserved;
	__u32	seq_end;
};

/* Why a change was told, struct dblp_flow_change.what */
enum dblp_flow_what {
	DBLP_FLOW_NEW	= 1,
	DBLP_FLOW_BTLBW	= 2,
	DBLP_FLOW_RTPROP = 4,
	DBLP_FLOW_GONE	= 8,
};

struct dblp_flow_change {
	struct dblp_flow_key key;
	__u32	version;
	__u32	what;			/* enum dblp_flow_what, several */
	__u64	time_ns;
	__u64	btlbw;
	__u64	rtprop_ns;
};

/* Entry 0 is written by who loaded the programs; the counters are in entry 1. */
struct dblp_flows_state {
	__u32	version;
	__u32	pid;			/* who loaded the programs */
	__u64	started_ns;
	__u64	rtprop_window_ns;
	__u32	max_flows;
	__u32	threshold_percent;	/* change that is told */
	__u32	dblp_source, tcp_source; /* enum dblp_flow_source, 0 none */
	__u64	made, removed;		/* entries */
	__u64	refused;		/* entries that could not be made */
	__u64	untold;			/* changes that the ring had no room for */
	__u64	unread;			/* samples that could not be read */
};

#endif /* DBLP_FLOWS_ABI_H */

/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the lab tells the queueing discipline "lablink", and what it reads back.
 * Both ends are built from one tree, so nothing here is kept compatible; the
 * other end is tools/lab/lablib/lablink.py.
 */
#ifndef LABLINK_H
#define LABLINK_H

#include <linux/types.h>

enum lablink_attr {
	LABLINK_UNSPEC,
	LABLINK_PARAMS,		/* struct lablink_params */
	LABLINK_STEPS,		/* struct lablink_step [1 to LABLINK_MAX_STEPS] */
	__LABLINK_MAX
};

#define LABLINK_MAX 0x2
#define LABLINK_MAX_STEPS 32

/* A probability is a 32-bit fraction; this one means always. */
#define LABLINK_ALWAYS 0xffffffff

/**
 * struct lablink_params - a port and its queue
 * @seed: of all chance on this port
 * @epoch: CLOCK_MONOTONIC ns; disturbances start here, packets are counted from here
 * @port: number of the port, so that ports of one seed differ
 * @overhead: bytes that a packet takes on the wire beyond its Ethernet frame
 * @queue_packets: packets waiting or in service, at most; 0: no limit
 * @queue_bytes: bytes of frames waiting or in service, at most; 0: no limit
 * @mark_packets: ECN: a packet that finds this many is marked; 0: never
 * @mark_bytes: the same in bytes
 * @ge_enter: Gilbert-Elliott: chance, per packet, to get into the bad state
 * @ge_leave: to get out of it
 * @ge_bad: chance of loss in the bad state
 * @ge_good: in the good state
 */
struct lablink_params {
	__u64 seed;
	__u64 epoch;
	__u32 port;
	__u32 overhead;
	__u32 queue_packets;
	__u32 queue_bytes;
	__u32 mark_packets;
	__u32 mark_bytes;
	__u32 ge_enter;
	__u32 ge_leave;
	__u32 ge_bad;
	__u32 ge_good;
};

/**
 * struct lablink_step - what the link is like from an instant on
 * @at: ns after the epoch; ascending. The first step must be at 0, and its rate
 *	and delay hold before the epoch too
 * @rate: bits per second; 0: stands still until a step with a rate
 * @delay: propagation, ns
 * @held: ns that a reordered packet is held back
 * @lose: chance that a packet is lost
 * @duplicate: that it comes twice
 * @corrupt: that one of its bits is flipped
 * @reorder: that it is held back
 */
struct lablink_step {
	__u64 at;
	__u64 rate;
	__u32 delay;
	__u32 held;
	__u32 lose;
	__u32 duplicate;
	__u32 corrupt;
	__u32 reorder;
};

/**
 * struct lablink_count - what happened during one step
 * @packets: put on the wire, lost ones included
 * @bytes: of their frames
 * @busy: ns that they took, overhead included
 * @lost: lost
 * @duplicated: sent twice
 * @corrupted: sent with a wrong bit
 * @reordered: held back
 */
struct lablink_count {
	__u64 packets;
	__u64 bytes;
	__u64 busy;
	__u64 lost;
	__u64 duplicated;
	__u64 corrupted;
	__u64 reordered;
};

/**
 * struct lablink_stats - the statistics of the qdisc, since the last change
 * @before: packets put on the wire before the epoch, which count nowhere else
 * @dropped: packets that found the queue full
 * @marked: packets marked by ECN
 * @peak_packets: the longest queue
 * @peak_bytes: the longest queue
 * @largest: bytes of the largest frame: no more than a packet, if bursts were cut
 * @last: when the last packet left the wire, CLOCK_MONOTONIC ns
 * @steps: number of steps
 * @step: what happened in each
 */
struct lablink_stats {
	__u64 before;
	__u64 dropped;
	__u64 marked;
	__u32 peak_packets;
	__u32 peak_bytes;
	__u64 largest;
	__u64 last;
	__u64 steps;
	struct lablink_count step[LABLINK_MAX_STEPS];
};

#endif /* LABLINK_H */

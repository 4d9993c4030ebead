/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * DBLP: bounded-loss message transport, sockets API.
 *
 * socket(AF_DBLP, SOCK_RDM, 0), addresses are struct sockaddr_in and
 * sockaddr_in6.  Documentation/networking/dblp.rst describes every call, control
 * message, option and errno.
 *
 * Structures grow at the end only.  The kernel accepts a longer one if the part
 * it does not know is zero (else E2BIG), and at getsockopt() fills what fits.
 */
#ifndef _UAPI_LINUX_DBLP_H
#define _UAPI_LINUX_DBLP_H

#include <linux/types.h>

/* Default address family; the live value is the module parameter "family". */
#ifndef AF_DBLP
#define AF_DBLP			18
#endif
#define SOL_DBLP		0x4442

/* Limits of the protocol; a receiver's own limit may be lower. */
#define DBLP_MAX_MESSAGE	(1U << 29)	/* bytes */
#define DBLP_MAX_SEGMENTS	(1U << 19)
#define DBLP_MAX_PROTECT	32		/* ranges, after merging to segments */
#define DBLP_PPM		1000000U

/* In msg_flags of recvmsg(): a completion.  It is MSG_NOTIFICATION of SCTP. */
#define DBLP_MSG_NOTIFICATION	0x8000

/**
 * enum dblp_mode - when a message may end with bytes missing
 * @DBLP_MODE_PRESSURE: only what the network lost is given up: every segment is
 *	sent once, losses within the bound are not repaired
 * @DBLP_MODE_EAGER: the receiver stops the sender as soon as the bound is met
 */
enum dblp_mode {
	DBLP_MODE_PRESSURE	= 0,
	DBLP_MODE_EAGER		= 1,
};

/* Control messages, level SOL_DBLP. */
enum dblp_cmsg_type {
	DBLP_CMSG_SEND		= 1,	/* sendmsg: struct dblp_send_params */
	DBLP_CMSG_PROTECT	= 2,	/* sendmsg: struct dblp_range[] */
	DBLP_CMSG_RECV		= 3,	/* recvmsg: struct dblp_recv_info */
	DBLP_CMSG_MAP		= 4,	/* recvmsg: struct dblp_map */
};

/* Flags in struct dblp_send_params. */
#define DBLP_SEND_ORDERED	0x01	/* segments in order, not permuted */

/**
 * struct dblp_send_params - how one message is to be sent
 * @tolerance_ppm: share of the message's bytes that may be missing, 0 to
 *	DBLP_PPM; 0 is fully reliable
 * @mode: enum dblp_mode
 * @phase: opaque to the transport, given to the receiver
 * @priority: 0 to 7, given to the receiver
 * @flags: DBLP_SEND_*
 * @deadline_us: time from sendmsg() after which the receiver must judge with
 *	what it has; 0: none
 * @max_rounds: repair rounds after which the receiver must judge; 0: no cap
 * @reserved: 0
 * @group: messages of one group share their tolerance; 0: none
 * @reserved2: 0
 * @tag: opaque to the transport, given to the receiver and in the completion
 *
 * As DBLP_CMSG_SEND it applies to one message, as DBLP_SO_SEND to all later ones
 * of the socket that carry none.
 */
struct dblp_send_params {
	__u32	tolerance_ppm;
	__u8	mode;
	__u8	phase;
	__u8	priority;
	__u8	flags;
	__u32	deadline_us;
	__u16	max_rounds;
	__u16	reserved;		/* 0 */
	__u32	group;
	__u32	reserved2;		/* 0 */
	__aligned_u64 tag;
};

/**
 * struct dblp_range - bytes of a message that must arrive whatever the tolerance
 * @off: first byte
 * @len: bytes, not 0
 *
 * DBLP_CMSG_PROTECT is an array of these in any order.  The kernel widens them to
 * whole segments and merges; more than DBLP_MAX_PROTECT after that is E2BIG.
 */
struct dblp_range {
	__aligned_u64 off;
	__aligned_u64 len;
};

/**
 * enum dblp_outcome - what became of a message
 * @DBLP_OUTCOME_OK: in the peer's socket queue, within its bound
 * @DBLP_OUTCOME_BELOW: judged below its bound (deadline, rounds); the peer's
 *	application saw it only if it asked for partial messages
 * @DBLP_OUTCOME_REFUSED: larger than the peer takes
 * @DBLP_OUTCOME_UNKNOWN: the flow died before a verdict
 */
enum dblp_outcome {
	DBLP_OUTCOME_OK		= 0,
	DBLP_OUTCOME_BELOW	= 1,
	DBLP_OUTCOME_REFUSED	= 2,
	DBLP_OUTCOME_UNKNOWN	= 3,
};

/* Flags in struct dblp_recv_info. */
#define DBLP_RECV_PARTIAL	0x01	/* below the bound, see DBLP_SO_PARTIAL */
#define DBLP_RECV_UNTOUCHED	0x02	/* holes were left untouched, not zeroed */

/**
 * struct dblp_recv_info - DBLP_CMSG_RECV, about the message just received
 * @msg_id: the sender's id of the message, unique per flow
 * @len: bytes of the message, holes included
 * @missing_bytes: bytes that did not arrive
 * @allowed_bytes: bytes that were allowed to be missing
 * @tag: the sender's tag
 * @nr_segs: segments of the message
 * @seg_size: bytes of a segment (the last one may be shorter)
 * @missing_segs: segments that did not arrive
 * @tolerance_ppm: the sender's tolerance
 * @duration_us: from the first packet of the message to its judgement
 * @group: the sender's group
 * @mode: enum dblp_mode
 * @phase: the sender's phase
 * @priority: the sender's priority
 * @flags: DBLP_RECV_*
 * @reserved: 0
 */
struct dblp_recv_info {
	__aligned_u64 msg_id;
	__aligned_u64 len;
	__aligned_u64 missing_bytes;
	__aligned_u64 allowed_bytes;
	__aligned_u64 tag;
	__u32	nr_segs;
	__u32	seg_size;
	__u32	missing_segs;
	__u32	tolerance_ppm;
	__u32	duration_us;
	__u32	group;
	__u8	mode;
	__u8	phase;
	__u8	priority;
	__u8	flags;
	__u32	reserved;
};

/**
 * struct dblp_map - DBLP_CMSG_MAP, which segments are missing
 * @nr_segs: segments of the message, bits that are valid
 * @seg_size: bytes of a segment: bit i covers bytes i * seg_size onwards
 * @bits: bit i % 64 of word i / 64 is set if segment i is missing
 *
 * Comes with a message that has holes, and with a completion that has.  If the
 * control buffer is too short for all of it, MSG_CTRUNC is set and the map is cut;
 * the payload comes whole.
 */
struct dblp_map {
	__u32	nr_segs;
	__u32	seg_size;
	__aligned_u64 bits[];
};

/**
 * struct dblp_completion - payload of a message flagged DBLP_MSG_NOTIFICATION
 * @msg_id: id of the message on its flow
 * @tag: its tag
 * @len: its bytes
 * @missing_bytes: bytes the receiver finished without (OK, BELOW); for UNKNOWN the
 *	bytes whose arrival was not acknowledged
 * @limit: for REFUSED the largest message that the peer takes, else 0
 * @sent_bytes: payload bytes put on the wire, repairs included
 * @retransmitted_bytes: payload bytes of them that were repairs
 * @nr_segs: segments of the message
 * @seg_size: bytes of a segment
 * @missing_segs: segments the receiver finished without
 * @lost_segs: segments that the network lost at least once, as far as known
 * @rounds: repair rounds asked for by the receiver
 * @duration_us: from sendmsg() to the verdict
 * @group: the sender's group
 * @error: positive errno for UNKNOWN: ECONNRESET (the peer restarted or closed),
 *	ETIMEDOUT (silence), ECONNREFUSED or EHOSTUNREACH (from ICMP), EBADMSG (the
 *	peer's map never matched its digest), ECANCELED (this end gave up), else 0
 * @outcome: enum dblp_outcome
 * @mode: enum dblp_mode
 * @phase: as sent
 * @reserved: 0
 * @reserved2: 0
 *
 * The peer's address is in msg_name, the delivery map in a DBLP_CMSG_MAP.  One
 * comes for each message sent while DBLP_SO_COMPLETIONS is on.
 */
struct dblp_completion {
	__aligned_u64 msg_id;
	__aligned_u64 tag;
	__aligned_u64 len;
	__aligned_u64 missing_bytes;
	__aligned_u64 limit;
	__aligned_u64 sent_bytes;
	__aligned_u64 retransmitted_bytes;
	__u32	nr_segs;
	__u32	seg_size;
	__u32	missing_segs;
	__u32	lost_segs;
	__u32	rounds;
	__u32	duration_us;
	__u32	group;
	__s32	error;
	__u8	outcome;
	__u8	mode;
	__u8	phase;
	__u8	reserved;
	__u32	reserved2;
};

/* Socket options, level SOL_DBLP. */
enum dblp_sockopt {
	DBLP_SO_SEND		= 1,	/* struct dblp_send_params: default */
	DBLP_SO_COMPLETIONS	= 2,	/* int 0/1: completions in-band */
	DBLP_SO_PARTIAL		= 3,	/* int 0/1: receive below the bound too */
	DBLP_SO_HOLES		= 4,	/* int: enum dblp_holes */
	DBLP_SO_CONGESTION	= 5,	/* string: "bdp", "fixed" */
	DBLP_SO_RATE		= 6,	/* __u64 bytes/s for "fixed"; CAP_NET_ADMIN */
	DBLP_SO_DEAD_TIME	= 7,	/* __u32 ms, 100 to 600000 */
	DBLP_SO_MAX_MESSAGE	= 8,	/* __u64 bytes: refuse larger ones */
	DBLP_SO_INCARNATION	= 9,	/* __u64, get only */
	DBLP_SO_INFO		= 10,	/* struct dblp_info, get only */
};

/**
 * enum dblp_holes - what recvmsg() does to bytes that are missing
 * @DBLP_HOLES_ZERO: fills them with zeros
 * @DBLP_HOLES_KEEP: leaves the application's buffer as it is
 */
enum dblp_holes {
	DBLP_HOLES_ZERO		= 0,
	DBLP_HOLES_KEEP		= 1,
};

/* States of the flow to a peer. */
enum dblp_flow_state {
	DBLP_FLOW_NONE		= 0,	/* nothing was sent yet, or it ended idle */
	DBLP_FLOW_HANDSHAKE	= 1,
	DBLP_FLOW_OPEN		= 2,
	DBLP_FLOW_DEAD		= 3,
};

/**
 * struct dblp_info - the flow from a connected socket to its peer, DBLP_SO_INFO
 * @state: enum dblp_flow_state; all else is 0 in DBLP_FLOW_NONE
 * @app_limited: @delivery_rate says what was sent, not what the path can carry
 * @reserved: 0
 * @seg_size: bytes of a segment of a message sent now
 * @flow: the id in tracepoints
 * @srtt_ns: smoothed round trip, 0 before the first
 * @rttvar_ns: its mean deviation
 * @min_rtt_ns: smallest of the recent past
 * @delivery_rate: bytes/s by the last ACK that allowed to tell, 0 none
 * @pacing_rate: bytes/s, 0 not paced yet
 * @inflight: bytes in flight
 * @inflight_cap: bytes that may be
 * @peer_budget: free receive budget of the peer, bytes, as last told
 * @pkts_sent: packets, and
 * @bytes_sent: their UDP payload
 * @bytes_delivered: of it acknowledged
 * @segs_sent: segments sent for the first time, and
 * @segs_retransmitted: again
 * @data_sent: message bytes sent for the first time, and
 * @data_retransmitted: again
 * @probes: packets sent because an answer was overdue
 * @msgs_sent: messages, of which ended
 * @msgs_ok: within their bound
 * @msgs_below: below it
 * @msgs_refused: as too large
 * @msgs_unknown: by the flow's death
 * @loss_ppm: smoothed share of packets lost
 * @reserved2: 0
 */
struct dblp_info {
	__u8	state;
	__u8	app_limited;
	__u16	reserved;
	__u32	seg_size;
	__aligned_u64 flow;
	__aligned_u64 srtt_ns;
	__aligned_u64 rttvar_ns;
	__aligned_u64 min_rtt_ns;
	__aligned_u64 delivery_rate;
	__aligned_u64 pacing_rate;
	__aligned_u64 inflight;
	__aligned_u64 inflight_cap;
	__aligned_u64 peer_budget;
	__aligned_u64 pkts_sent;
	__aligned_u64 bytes_sent;
	__aligned_u64 bytes_delivered;
	__aligned_u64 segs_sent;
	__aligned_u64 segs_retransmitted;
	__aligned_u64 data_sent;
	__aligned_u64 data_retransmitted;
	__aligned_u64 probes;
	__aligned_u64 msgs_sent;
	__aligned_u64 msgs_ok;
	__aligned_u64 msgs_below;
	__aligned_u64 msgs_refused;
	__aligned_u64 msgs_unknown;
	__u32	loss_ppm;
	__u32	reserved2;
};

/**
 * struct dblp_rate_info - what one ACK told a sender about a flow's path
 * @size: of this structure, bytes
 * @pid: process that made the socket, in the initial namespace
 * @flow: the sender's id of the flow, as in the other tracepoints
 * @netns_cookie: of the network namespace (SO_NETNS_COOKIE)
 * @inode: of the socket, as in /proc/PID/fd
 * @time_ns: CLOCK_MONOTONIC
 * @delivered: bytes delivered during @interval_ns
 * @interval_ns: their delivery rate is @delivered / @interval_ns; 0: no valid sample
 * @rtt_ns: latest round trip, 0 none
 * @srtt_ns: smoothed
 * @min_rtt_ns: smallest of the flow's recent past, 0 none
 * @acked: bytes acknowledged by this ACK
 * @lost: bytes found lost since the last one
 * @inflight: bytes in flight after it
 * @pacing_rate: bytes/s, 0 not paced yet
 * @inflight_cap: bytes that may be in flight
 * @total_delivered: bytes since the flow began
 * @ce: packets newly reported marked CE
 * @loss_ppm: smoothed share of packets lost
 * @tolerance_ppm: of the message sent last
 * @app_limited: the sample says what the application sent, not what the path can carry
 * @phase: of the message sent last
 * @family: AF_INET or AF_INET6
 * @local_port: host byte order
 * @peer_port: host byte order
 * @reserved: 0
 * @local: address, v4-mapped for IPv4; all zero before it is chosen
 * @peer: the same of the peer
 *
 * Argument of the tracepoint dblp_rate_sample.  Rates and counts are of the UDP payload,
 * headers of DBLP included.  The layout is fixed and grows at the end, so that a BPF program
 * needs no type information of the module.
 */
struct dblp_rate_info {
	__u32	size;
	__u32	pid;
	__aligned_u64 flow;
	__aligned_u64 netns_cookie;
	__aligned_u64 inode;
	__aligned_u64 time_ns;
	__aligned_u64 delivered;
	__aligned_u64 interval_ns;
	__aligned_u64 rtt_ns;
	__aligned_u64 srtt_ns;
	__aligned_u64 min_rtt_ns;
	__aligned_u64 acked;
	__aligned_u64 lost;
	__aligned_u64 inflight;
	__aligned_u64 pacing_rate;
	__aligned_u64 inflight_cap;
	__aligned_u64 total_delivered;
	__u32	ce;
	__u32	loss_ppm;
	__u32	tolerance_ppm;
	__u8	app_limited;
	__u8	phase;
	__u16	family;
	__u16	local_port;
	__u16	peer_port;
	__u32	reserved;
	__u8	local[16];
	__u8	peer[16];
};

#endif /* _UAPI_LINUX_DBLP_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Congestion control interface.  It sees packets, never messages: tolerance, mode and
 * deadline of the application are no inputs, or an application's tolerance would pay
 * for our own queue.
 */
#ifndef DBLP_CC_H
#define DBLP_CC_H

#include "dblp_deps.h"
#include "rtt.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct dblp_rate_sample - what one ACK says about the path (after Cheng et al.,
 * draft-cheng-iccrg-delivery-rate-estimation)
 * @delivered: wire bytes delivered during @interval_ns
 * @interval_ns: max(send interval, ack interval); 0: no valid sample
 * @prior_delivered: tx total when the acknowledged packet was sent (round counting)
 * @lost_prior_delivered: the same of the oldest lost one
 * @rtt_ns: latest round trip, 0 if none
 * @acked: wire bytes newly acknowledged by this ACK
 * @spurious: those of @acked that had been declared lost
 * @lost: wire bytes declared lost since the last sample
 * @inflight: wire bytes in flight after this ACK
 * @ce: packets newly reported marked CE
 * @app_limited: the sample was taken while there was nothing to send
 */
struct dblp_rate_sample {
	u64 delivered, interval_ns, prior_delivered, lost_prior_delivered, rtt_ns;
	u64 acked, spurious, lost, inflight;
	u32 ce;
	bool app_limited;
};

struct dblp_cc;

/**
 * struct dblp_cc_ops - a congestion control
 * @name: for DBLP_SO_CONGESTION
 * @init: start; @mss is the wire bytes of a full packet
 * @on_ack: after each ACK
 * @on_persistent_loss: nothing was heard for long: all that was in flight counts as lost
 * @restart: something is sent after an idle period
 */
struct dblp_cc_ops {
	const char *name;
	void (*init)(struct dblp_cc *cc, u32 mss, u64 now);
	void (*on_ack)(struct dblp_cc *cc, const struct dblp_rate_sample *rs,
		       const struct dblp_rtt *rtt, u64 total_delivered, u64 now);
	void (*on_persistent_loss)(struct dblp_cc *cc, u64 now);
	void (*restart)(struct dblp_cc *cc, u64 idle_ns, u64 now);
};

#define DBLP_BDP_BW_ROUNDS	10	/* window of the bandwidth filter, rounds */
#define DBLP_BDP_SENT_ROUNDS	8	/* rounds whose packets are told apart; power of two */

enum dblp_bdp_mode { DBLP_BDP_STARTUP, DBLP_BDP_DRAIN, DBLP_BDP_PROBE, DBLP_BDP_REFRESH };

/* What was being tried when a packet was sent. */
enum dblp_bdp_kind { DBLP_BDP_OTHER, DBLP_BDP_UP, DBLP_BDP_DOWN, DBLP_BDP_CRUISE };

/**
 * struct dblp_bdp_sent - fate of the packets sent in one round trip
 * @start: bytes delivered when it began
 * @acked: bytes of its packets acknowledged
 * @lost: bytes of its packets lost
 * @min_rtt: smallest round trip of its packets, DBLP_NEVER none
 * @kind: enum dblp_bdp_kind
 */
struct dblp_bdp_sent {
	u64 start, acked, lost, min_rtt;
	u8 kind;
};

/**
 * struct dblp_bdp - state of the "bdp" control, see cc_bdp.c
 * @mode: of the state machine
 * @kind: phase of the probing cycle
 * @phase_left: rounds that the phase still lasts
 * @round: number of the current round
 * @sent: packets sent in the last rounds, by round number
 * @bw: best delivery rate of each of the last informative rounds
 * @bw_slot: of the current round in @bw
 * @round_bw: best delivery rate in this round, 0 none; not app-limited
 * @round_min_rtt: smallest round trip in this round
 * @max_rtt: largest round trip, its queue delay decaying
 * @high: the last queue delay was above half of its largest
 * @round_lost: bytes declared lost in this round
 * @round_acked: bytes acknowledged in this round
 * @round_inflight: largest number of bytes in flight in this round
 * @round_ce: a CE mark was reported in this round
 * @full_bw: startup: bandwidth that the next rounds must beat
 * @full_rounds: startup: rounds that did not
 * @queue_rounds: rounds in a row that met a standing queue
 * @up_bw: bandwidth when the last upward probe began
 * @cap_bytes: ceiling of what is in flight, learnt from congestion; U64_MAX none
 * @lag_ns: delay that may be the hosts' own, and is given room in flight
 * @cut_queue: queue delay at the last cut, ns; 0: no standing queue since
 * @cut_round: round of the last cut
 * @ce_until: CE is heeded again when packets sent after this much was delivered report
 * @base_lost: bytes lost of @base_sent, outside upward probes; slowly forgotten
 * @base_sent: their bytes
 * @stand_at: since when the queue has been longer than our own ceiling can make it
 * @stand_rounds: rounds in a row
 * @stand_bw: best delivery rate since then
 * @stand_lost: bytes lost of @stand_sent while the queue stands
 * @stand_sent: their bytes
 * @bear_lost: bytes lost of @bear_sent since that was judged
 * @bear_sent: their bytes
 * @low_lost: bytes lost of @low_sent while the delay was below half of its largest
 * @low_sent: their bytes
 * @high_lost: bytes lost of @high_sent while it was above
 * @high_sent: their bytes
 * @free_lost: bytes lost of @free_sent while the queue was seen empty
 * @free_sent: their bytes
 * @free_ppm: share of packets made up for, parts per million
 * @extra: largest ACK burst in this and in the last half window, bytes
 * @extra_at: when the present burst count began
 * @extra_acked: bytes acknowledged since
 * @extra_round: when the half window began
 * @collapsed: most packets are lost: crawl
 * @silent: because nothing was heard
 * @crawl_bw: sending rate while crawling
 * @kept_bw: bandwidth before loss without a queue made it void
 * @kept_round: round in which that was
 * @clean_rounds: rounds in a row without much loss while crawling
 * @clean_bytes: bytes delivered in them
 * @row_bytes: bytes delivered since the last loss while crawling
 * @restored_at: round in which the last crawl ended
 * @refresh_at: time of the last refresh, or of an idle gap that served as one
 * @refresh_round: round of the last refresh
 * @refresh_end: round after which the refresh ends, 0: not drained yet
 * @refresh_rtt: smallest round trip seen in it
 * @refresh_doubt: a standing queue that does not yield made us do it
 * @doubt_rtt: smallest round trip in the first round of a standing queue
 * @doubt_lost: bytes lost since then
 * @doubt_acked: bytes acknowledged since then
 * @rtprop_floor: RTprop found by a refresh in doubt, 0 none
 * @rtprop: round trip without our queue, ns; 0 unknown
 * @srtt: smoothed round trip
 */
struct dblp_bdp {
	enum dblp_bdp_mode mode;
	enum dblp_bdp_kind kind;
	u32 phase_left;
	u64 round;
	struct dblp_bdp_sent sent[DBLP_BDP_SENT_ROUNDS];
	u64 bw[DBLP_BDP_BW_ROUNDS];
	u32 bw_slot;
	u64 round_bw, round_min_rtt, round_lost, round_acked, round_inflight;
	bool round_ce;
	u64 max_rtt;
	bool high;
	u64 full_bw;
	u32 full_rounds, queue_rounds;
	u64 up_bw, cap_bytes, lag_ns, cut_queue, cut_round, ce_until;
	u64 base_lost, base_sent, free_lost, free_sent;
	u32 stand_rounds;
	u64 stand_at, stand_bw, stand_lost, stand_sent;
	u64 bear_lost, bear_sent, low_lost, low_sent, high_lost, high_sent;
	u32 free_ppm;
	u64 extra[2], extra_at, extra_acked, extra_round;
	bool collapsed, silent;
	u64 crawl_bw, kept_bw, kept_round;
	u32 clean_rounds;
	u64 clean_bytes, row_bytes, restored_at;
	u64 refresh_at, refresh_round, refresh_end, refresh_rtt;
	bool refresh_doubt;
	u64 doubt_rtt, doubt_lost, doubt_acked, rtprop_floor, rtprop, srtt;
};

/**
 * struct dblp_cc - state shared with the sender, and private state
 * @ops: the congestion control
 * @pacing_rate: bytes/s, 0: not paced yet
 * @inflight_cap: bytes that may be in flight
 * @mss: wire bytes of a full packet
 * @btlbw: bottleneck estimate, bytes/s, 0 unknown
 * @u: private
 */
struct dblp_cc {
	const struct dblp_cc_ops *ops;
	u64 pacing_rate, inflight_cap, btlbw;
	u32 mss;
	union {
		struct dblp_bdp bdp;
		struct {
			u64 rate;
		} fixed;
	} u;
};

#define DBLP_CC_RATE_MAX	(1ULL << 40)	/* bytes/s; products below fit 64 bits */
#define DBLP_CC_TIME_MAX	(1ULL << 36)	/* ns, 68 s */
#define DBLP_CC_INIT_PKTS	10		/* in flight before anything is known */

/* Bytes that @rate (bytes/s) moves in @ns. */
static inline u64 dblp_cc_bytes(u64 rate, u64 ns)
{
	rate = rate < DBLP_CC_RATE_MAX ? rate : DBLP_CC_RATE_MAX;
	ns = ns < DBLP_CC_TIME_MAX ? ns : DBLP_CC_TIME_MAX;
	return mul_u64_u64_div_u64(rate, ns, DBLP_NSEC_PER_SEC);
}

/* Rate, bytes/s, that moves @bytes in @ns; 1 .. DBLP_CC_RATE_MAX. */
static inline u64 dblp_cc_rate(u64 bytes, u64 ns)
{
	u64 rate;

	bytes = bytes < 1ULL << 34 ? bytes : 1ULL << 34;
	rate = div64_u64(bytes * DBLP_NSEC_PER_SEC, ns ? ns : 1);
	if (!rate)
		return 1;
	return rate < DBLP_CC_RATE_MAX ? rate : DBLP_CC_RATE_MAX;
}

extern const struct dblp_cc_ops dblp_cc_bdp;
extern const struct dblp_cc_ops dblp_cc_fixed;

/* By name, NULL if there is none. */
const struct dblp_cc_ops *dblp_cc_find(const char *name);
void dblp_cc_init(struct dblp_cc *cc, const struct dblp_cc_ops *ops, u32 mss, u64 now);
/* Rate of the "fixed" control, bytes/s; no effect on others. */
void dblp_cc_set_fixed_rate(struct dblp_cc *cc, u64 rate);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_CC_H */

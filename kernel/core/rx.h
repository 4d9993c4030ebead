/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The receiver of a flow: keeps segments, judges messages, answers.
 *
 * How it is driven: the owner creates it for a checked ECHO, calls dblp_rx_input() for
 * each packet, dblp_rx_granted() when the budget gave a waiting message its room,
 * dblp_rx_timeout() when dblp_rx_timer() has passed, and after each of them
 * dblp_rx_poll() until it returns 0.  The owner serialises all calls for one flow.
 */
#ifndef DBLP_RX_H
#define DBLP_RX_H

#include "wire.h"
#include "segmap.h"
#include "bound.h"
#include "ackset.h"
#include "budget.h"
#include "rtt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLP_RX_HASH		64
#define DBLP_RX_OPEN_MAX	256	/* unjudged messages of one flow */
#define DBLP_RX_WAIT_MAX	32	/* of them without room */
#define DBLP_RX_MISMATCH_MAX	8	/* of one message, before the flow is given up */
#define DBLP_RX_BARE_MAX	32	/* answers about messages not kept */
#define DBLP_RX_IDLE_NS		(60 * DBLP_NSEC_PER_SEC)
#define DBLP_RX_TOUCH		8
/* Memory that a segment costs beyond its bytes, for reservations. */
#define DBLP_SEG_OVERHEAD	1024

enum dblp_rxmsg_state {
	DBLP_RXM_WAITING,	/* no room yet, nothing kept */
	DBLP_RXM_OPEN,
	DBLP_RXM_JUDGED,	/* map frozen */
};

/*
 * struct dblp_rxmsg - a message at its receiver
 *
 * Allocated by ops->open() with @miss ready: leaves for nsegs bits (any contents).
 */
struct dblp_rxmsg {
	struct dblp_segmap miss;	/* set = missing */
	struct dblp_claim claim;
	/* The receiver's. */
	struct list_head node;		/* rx->open or rx->judged */
	struct list_head answer;	/* rx->answers */
	struct dblp_rxmsg *hash_next;
	u64 id;
	u32 len, nsegs;
	u16 seg_size;
	enum dblp_rxmsg_state state;
	bool has_desc;
	struct dblp_f_desc desc;
	u32 missing;			/* bytes */
	u32 prot_missing, prot_bytes;	/* protected: segments, bytes missing */
	u16 pass;			/* highest in a MARK, 0 none */
	bool close;
	u64 opened_at, judged_at;
	u64 reo_at;			/* reordering window ends, DBLP_NEVER not running */
	u64 hold_at;			/* hold timer, DBLP_NEVER off */
	u8  verdict;			/* enum dblp_verdict */
	bool answer_due;		/* DONE, NEED or BUSY to send */
	bool grant_due;			/* GRANT to send */
	bool answered;			/* the current pass had its answer */
	u8  mismatches;			/* DATA and DESC that contradict what opened it */
	u64 parts_due;			/* MAP parts to send */
	u64 digest;
};

struct dblp_rx;

/**
 * struct dblp_rx_ops - what the receiver needs of its owner
 * @open: allocate a message (state zeroed except @miss memory); NULL: no memory
 * @claim: reserve room for it (dblp_budget_claim() under the owner's lock)
 * @store: keep the payload of a segment; @pkt is what dblp_rx_input() was given; nonzero:
 *	no memory, the segment counts as never received
 * @judged: the verdict is there and the map frozen (OK or BELOW).  The owner takes the
 *	payload away (hands it to the socket or drops it) and withdraws a claim that is
 *	still waiting.  @m stays valid until @release, which may follow at once
 * @release: forget the message, drop payload that it still has, leave the budget (unless
 *	payload handed on still holds it)
 * @free_kib: free receive budget, to be told to the sender
 * @reject: count and trace a discard
 */
struct dblp_rx_ops {
	struct dblp_rxmsg *(*open)(struct dblp_rx *rx, u32 msg_len, u32 seg_size, u32 nsegs);
	bool (*claim)(struct dblp_rx *rx, struct dblp_rxmsg *m, u64 bytes);
	int (*store)(struct dblp_rx *rx, struct dblp_rxmsg *m,
		     const struct dblp_f_data *f, void *pkt);
	void (*judged)(struct dblp_rx *rx, struct dblp_rxmsg *m);
	void (*release)(struct dblp_rx *rx, struct dblp_rxmsg *m);
	u32 (*free_kib)(struct dblp_rx *rx);
	void (*reject)(struct dblp_rx *rx, enum dblp_reject r);
};

struct dblp_rx_cfg {
	u64 flow;			/* our id */
	u64 peer_flow;			/* the sender's id: goes into our packets */
	u64 incarnation;
	u64 dead_ns;
	u64 limit;			/* largest message taken, bytes */
	u32 room;			/* UDP payload of a packet on this path */
	u32 first_kib;
	u64 rtt_ns;			/* from the cookie */
	const struct dblp_rx_ops *ops;
};

struct dblp_rx_stats {
	u64 pkts, segs, seg_bytes, late, dup_segs, msgs_ok, msgs_below, missing_bytes;
	u64 needs, busy, grants;
};

struct dblp_rx {
	struct dblp_rx_cfg cfg;
	u64 pn;				/* of our packets: last used */
	u64 low;
	struct dblp_ackset acks;
	u64 finished[DBLP_ID_WINDOW / 64];	/* by id % window: judged or refused */
	u64 clean[DBLP_ID_WINDOW / 64];		/* … with nothing missing */
	u32 nclean;
	struct list_head open, judged, answers;
	struct dblp_rxmsg *hash[DBLP_RX_HASH];
	u32 nopen, nwaiting;
	/* Answers about messages of which nothing is kept. */
	struct {
		u64 id;
		u8  type;		/* DONE (clean), REFUSE or BUDGET (BUSY) */
	} bare[DBLP_RX_BARE_MAX];
	u32 nbare;
	struct dblp_rxmsg *touch[DBLP_RX_TOUCH];	/* by the packet being read */
	u32 ntouch;			/* more than the array: look at all open ones */
	u64 heard_at;
	u64 timer;			/* lower bound of the next message timer */
	u64 rtt_ns;
	bool accept_due, dead, reset_due;
	u8 reset_reason;		/* enum dblp_reset_reason, once dead */
	struct dblp_rx_stats stats;
};

void dblp_rx_init(struct dblp_rx *rx, const struct dblp_rx_cfg *cfg, u64 now);

/**
 * dblp_rx_input() - a packet of the sender
 * @rx: the receiver
 * @p: the packet
 * @linear: bytes readable at @p; the payload of a last DATA frame need not be
 * @h: its header
 * @ecn: enum dblp_ecn of the datagram
 * @pkt: passed to ops->store()
 * @now: ns
 *
 * Return: 0, or DBLP_READ_LINEAR: nothing was done; make the packet linear and call
 * again.
 */
int dblp_rx_input(struct dblp_rx *rx, const u8 *p, u32 linear, const struct dblp_hdr *h,
		  u8 ecn, void *pkt, u64 now);

/* The checked ECHO came (again): ACCEPT is due. */
void dblp_rx_echo(struct dblp_rx *rx, u64 now);
/* The budget gave @m its room (dblp_budget_grant()). */
void dblp_rx_granted(struct dblp_rx *rx, struct dblp_rxmsg *m, u64 now);
u64 dblp_rx_timer(const struct dblp_rx *rx);
void dblp_rx_timeout(struct dblp_rx *rx, u64 now);
/* Builds the next packet; returns its length, 0: nothing to send. */
u32 dblp_rx_poll(struct dblp_rx *rx, u64 now, u8 *buf, u32 room);
/*
 * Drops every message (close, FIN, silence).  The flow stays, answering RESET, until
 * dblp_rx_idle(): its id must outlive the cookies that could open it again.
 */
void dblp_rx_kill(struct dblp_rx *rx);
/*
 * Makes everything due once more that the sender may still miss: for the owner to send before
 * it tells the end of the flow.
 */
void dblp_rx_repeat(struct dblp_rx *rx);
/* Silent for DBLP_RX_IDLE_NS with nothing unjudged: the owner may free it. */
bool dblp_rx_idle(const struct dblp_rx *rx, u64 now);
/* Room to reserve for a message. */
u64 dblp_rx_room(u32 msg_len, u32 seg_size);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_RX_H */

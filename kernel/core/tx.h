/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The sender of a flow: handshake, messages, repair, probing, pacing.
 *
 * How it is driven: the owner calls dblp_tx_submit() for a message, dblp_tx_input() for
 * a packet, dblp_tx_timeout() when dblp_tx_timer() has passed, and after each of them
 * dblp_tx_poll() until it returns false, sending what it built; then takes finished
 * messages with dblp_tx_reap().  The owner serialises all calls for one flow.
 */
#ifndef DBLP_TX_H
#define DBLP_TX_H

#include "wire.h"
#include "segmap.h"
#include "bound.h"
#include "rtt.h"
#include "cc.h"
#include "pace.h"
#include "probe.h"
#include "sentlog.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLP_TX_GROUPS		8
#define DBLP_TX_HASH		64
#define DBLP_DEAD_NS		(10 * DBLP_NSEC_PER_SEC)	/* default dead time */
#define DBLP_TX_IDLE_NS		(30 * DBLP_NSEC_PER_SEC)	/* then dblp_tx_idle() */
#define DBLP_DIGEST_TRIES	8
#define DBLP_REV_WINDOW		256

enum dblp_tx_state {
	DBLP_TX_IDLE, DBLP_TX_INIT_SENT, DBLP_TX_ECHO_SENT, DBLP_TX_OPEN, DBLP_TX_DEAD,
};

enum dblp_tx_outcome {	/* as enum dblp_outcome of the sockets API */
	DBLP_TX_OK = 0, DBLP_TX_BELOW = 1, DBLP_TX_REFUSED = 2, DBLP_TX_UNKNOWN = 3,
};

/* Segment state at the sender. */
enum dblp_seg_state { DBLP_SEG_UNSENT, DBLP_SEG_FLYING, DBLP_SEG_LOST, DBLP_SEG_ACKED };

struct dblp_txseg {
	u32 pn;		/* low 32 bits of the last packet that carried it */
	u8  state;	/* enum dblp_seg_state */
	u8  lost;	/* was ever lost */
	u8  prot;	/* protected */
	u8  queued;	/* in the repair of the current pass */
};

enum dblp_txmsg_state {
	DBLP_TXM_QUEUED,	/* nothing sent */
	DBLP_TXM_SENDING,	/* segments of the first pass to send */
	DBLP_TXM_REPAIR,	/* segments named by a NEED to send */
	DBLP_TXM_MARKED,	/* all sent, waiting for the answer */
	DBLP_TXM_BUSY,		/* no room at the receiver */
	DBLP_TXM_CLOSING,	/* CLOSE sent or to send */
	DBLP_TXM_PULLING,	/* DONE seen, map parts missing */
	DBLP_TXM_COMPLETE,
};

/*
 * struct dblp_txmsg - a message at its sender
 *
 * The owner fills the first block and zeroes the rest before dblp_tx_submit(); the
 * third block is the result, valid from dblp_tx_reap().
 */
struct dblp_txmsg {
	/* Set by the owner. */
	u32 len;			/* bytes, 1 .. DBLP_MSG_LEN_MAX */
	u16 seg_size;			/* = dblp_tx_seg_size() */
	u16 max_rounds;			/* 0: no cap */
	u8  mode, phase, priority;
	bool ordered;
	u32 ppm, deadline_us, group;	/* group 0: none */
	u64 tag;
	u32 nprot;
	struct dblp_segrun prot[DBLP_PROT_MAX];	/* ascending, disjoint, within nsegs */
	struct dblp_txseg *seg;		/* memory: dblp_nsegs() zeroed entries */
	struct dblp_segmap map;		/* memory: leaves, zeroed; result: set = missing */
	/* The sender's. */
	struct list_head node;		/* tx->msgs by id, later tx->done */
	struct list_head wait;		/* tx->waiting, ordered by ask_at */
	struct list_head rnode;		/* tx->ready: may have something to send */
	struct dblp_txmsg *hash_next;
	u64 id, submitted_at, deadline_at;
	u64 ask_at;			/* when to ask (again) for the verdict */
	u64 ack_floor;			/* fate of older packets says nothing: BUSY */
	enum dblp_txmsg_state state;
	u32 nsegs, allow, group_gen;
	u32 cursor;			/* segments of the first pass sent */
	u32 prot_total, prot_sent;	/* protected segments; sent in the first pass */
	u32 perm_pos;			/* next position of the permutation */
	struct dblp_perm perm;
	u32 lost_bytes;			/* in DBLP_SEG_LOST and not queued */
	u32 lost_prot;			/* protected segments of them */
	u32 lost_cursor;		/* where to look for the next lost one */
	u32 queued_segs;		/* marked .queued */
	u32 queued_cursor;
	u32 flying_unadmitted;		/* bytes in flight before admission is known */
	u32 acked_bytes;
	u32 asks;			/* asked in a row without news: the back-off */
	u32 unanswered;			/* … without any answer that makes sense */
	u16 pass;
	bool admitted, desc_acked, mark_due, close_due, desc_sent;
	bool hashed;			/* something of it was sent: it may be answered */
	u8  close_reason, digest_fails;
	u8  done_verdict;
	u64 want;			/* parts still wanted */
	u64 digest;
	/* The result. */
	u8  outcome;			/* enum dblp_tx_outcome */
	int error;			/* positive errno for UNKNOWN */
	u64 limit;			/* REFUSED: the peer's */
	u32 missing_bytes, missing_segs, lost_segs, rounds;
	u64 sent_bytes, resent_bytes, completed_at;
};

/* What dblp_tx_poll() built. */
struct dblp_pkt {
	u32 len;			/* bytes written: header and frames */
	struct dblp_txmsg *msg;		/* payload to append, NULL none */
	u32 seg;
	u32 off;			/* = seg * seg_size */
	u32 payload;			/* bytes to append; hdr.len counts them */
};

struct dblp_tx_cfg {
	u64 flow;			/* our id, random, not 0 */
	u64 incarnation;
	u64 seed;			/* for permutations */
	u32 room;			/* UDP payload of a packet on this path */
	u64 dead_ns;
	const struct dblp_cc_ops *cc;
	struct dblp_sent *log;		/* memory of the sent log */
	u32 log_size;			/* entries, power of two */
	void (*reject)(void *ctx, enum dblp_reject r);
	void *ctx;
};

/* Counters of a flow's sender. */
struct dblp_tx_stats {
	u64 pkts, bytes;		/* UDP payload sent */
	u64 segs, seg_bytes;		/* first transmissions */
	u64 resent_segs, resent_bytes;
	u64 probes, marks, closes, busy, resets, msgs, ok, below, refused, unknown;
};

struct dblp_tx {
	struct dblp_tx_cfg cfg;
	enum dblp_tx_state state;
	int error;			/* why DEAD, positive errno */
	u64 peer_flow, peer_incarnation;
	struct dblp_f_hello cookie;	/* from CHALLENGE, for ECHO */
	u64 next_id, low;		/* next id to give, lowest held */
	u64 rev_largest;		/* largest packet number from the receiver */
	u64 rev_seen[DBLP_REV_WINDOW / 64];	/* numbers just below it */
	struct list_head msgs, ready, waiting, done;
	struct dblp_txmsg *hash[DBLP_TX_HASH];
	struct dblp_group groups[DBLP_TX_GROUPS];
	u32 group_next, group_gen;
	struct dblp_sentlog log;
	struct dblp_rtt rtt;
	struct dblp_cc cc;
	struct dblp_pace pace;
	u64 heard_at, began_at;		/* last valid packet; since when we wait */
	u64 hs_at;			/* handshake: when to send INIT or ECHO next */
	u64 hs_sent_at;			/* when INIT was, for its round trip */
	struct dblp_probe probe;
	u64 deadline_at;		/* earliest deadline of a message, or earlier */
	u32 hs_tries;			/* of the INIT or ECHO at hand */
	u32 hs_backoff;			/* both, since the handshake last came on */
	u64 first_flight;		/* bytes that may fly unadmitted */
	u64 unadmitted;			/* bytes that do */
	u64 budget;			/* free receive budget last told, bytes */
	u64 open_pn;			/* packets from this number on were sent in OPEN */
	bool ping_due, data_sent;
	struct dblp_rate_sample sample;	/* of the last ACK */
	u32 samples;			/* how many there were */
	struct dblp_tx_stats stats;
};

void dblp_tx_init(struct dblp_tx *tx, const struct dblp_tx_cfg *cfg, u64 now);
/* Segment size for a message submitted now. */
u16 dblp_tx_seg_size(const struct dblp_tx *tx);
/* Takes the message; it comes back by dblp_tx_reap().  Fails with -EPIPE when DEAD. */
int dblp_tx_submit(struct dblp_tx *tx, struct dblp_txmsg *m, u64 now);

/**
 * dblp_tx_poll() - build the next packet
 * @tx: the sender
 * @now: ns
 * @buf: for header and frames
 * @room: bytes at @buf, at least cfg.room
 * @pkt: what was built
 *
 * Return: false if nothing may be sent now.
 */
bool dblp_tx_poll(struct dblp_tx *tx, u64 now, u8 *buf, u32 room, struct dblp_pkt *pkt);

/* When dblp_tx_timeout() and dblp_tx_poll() must be called next; DBLP_NEVER: not. */
u64 dblp_tx_timer(const struct dblp_tx *tx);
void dblp_tx_timeout(struct dblp_tx *tx, u64 now);

/**
 * dblp_tx_input() - a REV packet for this flow
 * @tx: the sender
 * @p: the packet, all of it linear
 * @h: its header
 * @now: ns
 *
 * Bad frames are reported through cfg.reject; frames before them stand.
 */
void dblp_tx_input(struct dblp_tx *tx, const u8 *p, const struct dblp_hdr *h, u64 now);
/**
 * dblp_tx_reset() - a RESET from the peer's address that echoes peer_flow
 * @tx: the sender
 * @h: its header; the packet number is that of the packet it answers
 * @reason: enum dblp_reset_reason
 * @now: ns
 *
 * One for an unknown flow is believed only if it answers what was sent after the flow was
 * open: before that, data may have overtaken ECHO.  The other two name an end for good.
 */
void dblp_tx_reset(struct dblp_tx *tx, const struct dblp_hdr *h, u8 reason, u64 now);
/* Ends the flow: all messages UNKNOWN with positive errno @error. */
void dblp_tx_kill(struct dblp_tx *tx, int error, u64 now);
/* Ask the receiver to judge everything outstanding now (shutdown). */
void dblp_tx_close_all(struct dblp_tx *tx, u64 now);
/* One FIN packet (for close()); 0 if the flow was never open. */
u32 dblp_tx_fin(struct dblp_tx *tx, u8 reason, u8 *buf, u32 room);
/* Next finished message, NULL none. */
struct dblp_txmsg *dblp_tx_reap(struct dblp_tx *tx);
/* Outstanding messages? */
bool dblp_tx_busy(const struct dblp_tx *tx);
/* Nothing outstanding for DBLP_TX_IDLE_NS: the owner may free it. */
bool dblp_tx_idle(const struct dblp_tx *tx, u64 now);
/* Entries the sent log should have for what is queued (power of two). */
u32 dblp_tx_log_wish(const struct dblp_tx *tx, u32 more_segs);
/* Packet size changed: a new room for messages submitted from now on. */
void dblp_tx_set_room(struct dblp_tx *tx, u32 room);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_TX_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What was sent, by packet number: what is acknowledged, loss detection (RFC 9002 §6.1 with
 * an adaptive threshold as in RFC 8985) and delivery-rate samples.
 */
#ifndef DBLP_SENTLOG_H
#define DBLP_SENTLOG_H

#include "wire.h"
#include "rtt.h"
#include "cc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLP_REO_PKTS		3	/* packets later acknowledged = lost */
#define DBLP_REO_PKTS_MAX	512
#define DBLP_REO_EIGHTHS	1	/* of a round trip later than an acknowledged one = lost */
#define DBLP_REO_EIGHTHS_MAX	8
#define DBLP_REO_DECAY_RTTS	64	/* without reordering: the excess is halved */
#define DBLP_SENTLOG_MIN	64	/* entries, power of two */
#define DBLP_SENTLOG_MAX	65536

/* Entry flags. */
#define DBLP_SENT_INFLIGHT	0x01	/* counted in inflight */
#define DBLP_SENT_ACKED		0x02
#define DBLP_SENT_LOST		0x04	/* stays if it is acknowledged after all */
#define DBLP_SENT_DATA		0x08	/* @id and @seg name a DATA frame */
#define DBLP_SENT_DESC		0x10	/* carried DESC of @desc_id */
#define DBLP_SENT_APPLIM	0x20
#define DBLP_SENT_MARK		0x40	/* carried MARK or CLOSE */
#define DBLP_SENT_REPAIR	0x80	/* the DATA is a retransmission */

/* One packet. Times ns, sizes wire bytes (UDP payload). */
struct dblp_sent {
	u64 at;			/* when sent */
	union {
		u64 delivered;	/* tx total delivered then */
		u64 skip;	/* once acknowledged: a number above, all between acknowledged */
	};
	u64 delivered_at;	/* and when that total was reached */
	u64 first_at;		/* send time of the packet acked most recently then */
	u64 id;			/* message of the DATA */
	u64 desc_id;
	u32 seg;
	u16 size;
	u8  flags;
};

/**
 * struct dblp_sentlog - ring of entries for packet numbers una .. next - 1
 * @e: memory of the caller, @size entries (power of two)
 * @size: entries
 * @next: number of the next packet
 * @una: oldest number not acknowledged and not declared lost
 * @tail: oldest number whose entry is still kept (acked-after-lost is noticed)
 * @largest: largest number acknowledged, 0 none
 * @inflight: bytes in flight
 * @delivered: bytes delivered in all
 * @delivered_at: when the last of them was
 * @first_at: send time of the packet acknowledged most recently
 * @lost: bytes declared lost in all, less those acknowledged after that
 * @applim_until: samples are app-limited until delivered passes this, 0 off
 * @lost_unsaid: bytes declared lost that no rate sample has told of yet
 * @lost_prior: "delivered" in the entry of the oldest of them
 * @reo_pkts: reordering threshold in packets
 * @reo_eighths: reordering window, in eighths of a round trip
 * @reo_at: when reordering was noticed, or the thresholds fell, for the last time
 * @sent_pkts: packets sent in all
 * @lost_pkts: packets declared lost in all
 * @spurious: packets acknowledged after they had been declared lost
 * @fate_lost: packets lost of @fate_all, exponentially forgotten, scaled
 * @fate_all: packets whose fate is known
 * @loss_ppm: measured loss: @fate_lost / @fate_all
 * @ce_seen: CE count in the last ACK
 */
struct dblp_sentlog {
	struct dblp_sent *e;
	u32 size;
	u64 next, una, tail, largest;
	u64 inflight, delivered, delivered_at, first_at, lost;
	u64 applim_until;
	u64 lost_unsaid, lost_prior;
	u32 reo_pkts, reo_eighths;
	u64 reo_at;
	u64 sent_pkts, lost_pkts, spurious;
	u32 fate_lost, fate_all;
	u32 loss_ppm;
	u32 ce_seen;
};

void dblp_sentlog_init(struct dblp_sentlog *s, struct dblp_sent *mem, u32 size);
/* Moves to other memory (@size a power of two, >= the old); returns the old. */
struct dblp_sent *dblp_sentlog_grow(struct dblp_sentlog *s, struct dblp_sent *mem,
				    u32 size);
/* Room for one more packet? */
bool dblp_sentlog_room(const struct dblp_sentlog *s);

/**
 * dblp_sentlog_push() - a packet is being sent
 * @s: the log, with room
 * @size: wire bytes
 * @counted: it is ack-eliciting, so it counts in flight
 * @now: ns
 *
 * Return: its entry, for the caller to say what was in it (id, seg, flags |= …); its
 * number is s->next - 1.  NULL without room, which is the caller's mistake.
 */
struct dblp_sent *dblp_sentlog_push(struct dblp_sentlog *s, u32 size, bool counted,
				    u64 now);

/* Nothing more to send now: samples are app-limited until what is out is delivered. */
void dblp_sentlog_app_limited(struct dblp_sentlog *s);

/**
 * struct dblp_sent_events - called for each packet whose fate changed
 * @acked: acknowledged for the first time; DBLP_SENT_LOST is set if it had been
 *	declared lost before
 * @lost: declared lost
 *
 * They must not call into the log.
 */
struct dblp_sent_events {
	void (*acked)(void *ctx, u64 pn, const struct dblp_sent *e);
	void (*lost)(void *ctx, u64 pn, const struct dblp_sent *e);
};

/**
 * dblp_sentlog_ack() - process an ACK frame
 * @s: the log
 * @f: the frame, syntax checked
 * @rtt: gets a sample if the largest number is newly acknowledged
 * @ev: callbacks
 * @ctx: for them
 * @rs: filled for the congestion control
 * @now: ns
 *
 * Checks the frame before it changes anything.  Losses are declared too.  The work is
 * in proportion to the ranges and to the packets whose fate changes.
 *
 * Return: 0, or DBLP_REJECT_ACK (numbers never sent, ranges below 1).  A frame that
 * says nothing new is 0 with rs->acked == 0.
 */
int dblp_sentlog_ack(struct dblp_sentlog *s, const struct dblp_f_ack *f,
		     struct dblp_rtt *rtt, const struct dblp_sent_events *ev, void *ctx,
		     struct dblp_rate_sample *rs, u64 now);

/**
 * dblp_sentlog_loss_timer() - when a packet will count as lost by time
 * @s: the log
 * @rtt: of the flow
 *
 * Return: ns, DBLP_NEVER if none.
 */
u64 dblp_sentlog_loss_timer(const struct dblp_sentlog *s, const struct dblp_rtt *rtt);

/* Declares what is overdue lost; returns bytes. */
u64 dblp_sentlog_detect(struct dblp_sentlog *s, const struct dblp_rtt *rtt,
			const struct dblp_sent_events *ev, void *ctx, u64 now);

/* Declares everything in flight lost (dead path, BUSY storm); returns bytes. */
u64 dblp_sentlog_lose_all(struct dblp_sentlog *s, const struct dblp_sent_events *ev,
			  void *ctx);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_SENTLOG_H */

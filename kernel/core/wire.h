/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The wire format: Documentation/networking/dblp-wire.rst §2-4 as code.
 *
 * Readers take hostile bytes: every length, count and reserved field is checked
 * before use, nothing is read beyond what was given.
 */
#ifndef DBLP_WIRE_H
#define DBLP_WIRE_H

#include "dblp_deps.h"
#include "reject.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLP_WIRE_VERSION	1
#define DBLP_HDR_LEN		20
#define DBLP_TAG_LEN		16
#define DBLP_ROOM_MIN		1200	/* UDP payload that every path must carry */

/* Header flags. */
#define DBLP_HDR_REV		0x1	/* from the flow's receiver to its sender */
#define DBLP_HDR_TAG		0x2
#define DBLP_HDR_EPOCH		0x4

#define DBLP_ID_WINDOW		1024	/* ids low .. low + 1023 are open */
#define DBLP_MSG_LEN_MAX	(1U << 29)
#define DBLP_NSEGS_MAX		(1U << 19)
#define DBLP_SEG_MIN		512	/* of a message of several segments */
#define DBLP_SEG_MIN_SINGLE	16
#define DBLP_SEG_MAX		8960
#define DBLP_PROT_MAX		32
#define DBLP_ACK_RANGES		32
#define DBLP_ACK_DONE_RANGES	16
#define DBLP_PART_SEGS		8192	/* segments covered by one MAP part */
#define DBLP_PARTS_MAX		64
#define DBLP_PARTS_BURST	8	/* MAP parts in answer to one probe */
#define DBLP_PART_BYTES		(DBLP_PART_SEGS / 8)

enum dblp_frame_type {
	DBLP_F_PAD	 = 0,
	DBLP_F_DATA	 = 1,
	DBLP_F_DESC	 = 2,
	DBLP_F_MARK	 = 3,
	DBLP_F_ACK	 = 4,
	DBLP_F_DONE	 = 5,
	DBLP_F_NEED	 = 6,
	DBLP_F_MAP	 = 7,
	DBLP_F_CLOSE	 = 8,
	DBLP_F_BUDGET	 = 9,
	DBLP_F_REFUSE	 = 10,
	DBLP_F_RESET	 = 11,
	DBLP_F_INIT	 = 12,
	DBLP_F_CHALLENGE = 13,
	DBLP_F_ECHO	 = 14,
	DBLP_F_ACCEPT	 = 15,
	DBLP_F_PING	 = 16,
	DBLP_F_FIN	 = 17,
};

/* Lengths of frames, without their lists and payloads. */
#define DBLP_DATA_LEN		16
#define DBLP_DESC_LEN		40
#define DBLP_MARK_LEN		20
#define DBLP_ACK_LEN		28
#define DBLP_DONE_LEN		24
#define DBLP_NEED_LEN		28
#define DBLP_MAP_LEN		12
#define DBLP_BUDGET_LEN		12
#define DBLP_REFUSE_LEN		16
#define DBLP_RESET_LEN		4
#define DBLP_HELLO_LEN		52	/* INIT, CHALLENGE, ECHO */
#define DBLP_ACCEPT_LEN		16
#define DBLP_PING_LEN		4
#define DBLP_FIN_LEN		4

#define DBLP_ALLOW_PPM_MAX	1000000	/* tolerance of DESC: all of it */
#define DBLP_REO_US_MAX		1000000	/* reordering window of MARK and CLOSE */

/* Modes of DESC, as enum dblp_mode of the sockets API. */
enum dblp_wire_mode { DBLP_WIRE_PRESSURE = 0, DBLP_WIRE_EAGER = 1 };
enum dblp_close_reason { DBLP_CLOSE_DEADLINE = 1, DBLP_CLOSE_ROUNDS, DBLP_CLOSE_SHUTDOWN };
enum dblp_verdict { DBLP_VERDICT_OK = 0, DBLP_VERDICT_BELOW = 1 };
enum dblp_budget_op { DBLP_BUSY = 1, DBLP_GRANT = 2 };
enum dblp_refuse_reason { DBLP_REFUSE_SIZE = 1 };
enum dblp_reset_reason { DBLP_RESET_UNKNOWN = 1, DBLP_RESET_CLOSED, DBLP_RESET_PROTOCOL };
enum dblp_fin_reason { DBLP_FIN_IDLE = 1, DBLP_FIN_CLOSED };
enum dblp_list_enc { DBLP_LIST_BITS = 0, DBLP_LIST_RANGES = 1 };

struct dblp_hdr {
	u8  flags;	/* DBLP_HDR_* */
	u16 len;	/* whole packet, header included */
	u64 flow;
	u32 pn;		/* low 32 bits */
	u32 low;	/* low 32 bits */
};

/* A run of segments; also used for protected ranges, in segments. */
struct dblp_segrun {
	u32 first;
	u32 count;
};

struct dblp_f_data {
	u16 delta;		/* id - low */
	u32 seg;
	u32 msg_len;
	u16 seg_size;
	u16 len;		/* payload bytes, derived */
	u32 off;		/* of the payload, from the start of the reader's buffer */
};

struct dblp_f_desc {
	u8  mode, phase, priority;
	u8  nprot;
	bool grouped;
	u16 seg_size;
	u32 id, msg_len, ppm, allow, deadline_us, group;
	u64 tag;
	struct dblp_segrun prot[DBLP_PROT_MAX];
};

struct dblp_f_mark {		/* MARK and CLOSE */
	u8  reason;
	u16 pass;
	u32 id;
	u64 want;
	u32 reo_us;
};

struct dblp_f_ack {
	u8  nranges, ndone;
	u32 largest, delay_us, ect0, ect1, ce, budget_kib;
	struct { u16 gap, len; } range[DBLP_ACK_RANGES];
	struct { u16 delta, more; } done[DBLP_ACK_DONE_RANGES];	/* ids low+delta .. +more */
};

struct dblp_f_done {
	u8  verdict;
	u16 nparts;
	u32 id, missing_bytes, missing_segs;
	u64 digest;
};

struct dblp_f_need {
	u8  enc;
	u16 pass, nsegs, list_len;
	u32 id, need, missing_segs, largest, base;
	const u8 *list;		/* points into the reader's buffer / the writer's source */
};

struct dblp_f_map {
	u8  enc;
	u16 part, list_len;
	u32 id;
	const u8 *list;
};

struct dblp_f_budget { u8 op; u32 id, free_kib; };
struct dblp_f_refuse { u8 reason; u32 id; u64 limit; };
struct dblp_f_reason { u8 reason; };		/* RESET, FIN */

struct dblp_f_hello {				/* INIT, CHALLENGE, ECHO */
	u64 tx_flow;		/* the sender's id */
	u64 rx_flow;		/* the receiver's id */
	u64 incarnation;	/* of who sends this frame */
	u64 cookie_time, cookie;
	u32 first_kib;
};

struct dblp_f_accept { u64 incarnation; u32 first_kib; };

struct dblp_frame {
	enum dblp_frame_type type;
	union {
		struct dblp_f_data data;
		struct dblp_f_desc desc;
		struct dblp_f_mark mark;
		struct dblp_f_ack ack;
		struct dblp_f_done done;
		struct dblp_f_need need;
		struct dblp_f_map map;
		struct dblp_f_budget budget;
		struct dblp_f_refuse refuse;
		struct dblp_f_reason reason;
		struct dblp_f_hello hello;
		struct dblp_f_accept accept;
	} u;
};

/**
 * struct dblp_reader - walks the frames of one packet
 * @p: start of the packet (its header), @linear bytes of it readable
 * @linear: bytes readable at @p; may be less than @end for a DATA payload only
 * @end: bytes of the packet, tag excluded
 * @pos: next frame
 */
struct dblp_reader {
	const u8 *p;
	u32 linear, end, pos;
};

/* dblp_frame_next(): more of the packet must be made linear, then call again. */
#define DBLP_READ_LINEAR	1000

/**
 * dblp_hdr_get() - read and check a packet header
 * @p: @n bytes, what is left of the datagram (@linear of it readable, at least
 *	min(n, DBLP_HDR_LEN))
 * @n: bytes left in the datagram
 * @h: result
 *
 * Return: 0, or an enum dblp_reject: TRUNCATED (fewer than a header), VERSION,
 * LENGTH, PATH, RESERVED, CRYPTO (TAG or EPOCH: no keys in version 1).  After any
 * but the last three the rest of the datagram cannot be read.
 */
int dblp_hdr_get(const u8 *p, u32 n, struct dblp_hdr *h);

/* Writes DBLP_HDR_LEN bytes. */
void dblp_hdr_put(u8 *p, const struct dblp_hdr *h);

/**
 * dblp_reader_init() - start reading the frames of a packet
 * @r: the reader
 * @p: start of the packet
 * @linear: bytes readable at @p
 * @h: its header, from dblp_hdr_get()
 */
void dblp_reader_init(struct dblp_reader *r, const u8 *p, u32 linear,
		      const struct dblp_hdr *h);

/**
 * dblp_frame_next() - read one frame and step over it
 * @r: the reader
 * @f: result; its pointers point into the packet
 *
 * A DATA frame needs only its own 16 bytes linear; f->u.data.off is the offset of
 * the payload from the start of the packet.
 *
 * Return: 1 a frame, 0 the end, -enum dblp_reject for a bad frame (reading must
 * stop), DBLP_READ_LINEAR if the next frame is not all linear (nothing consumed).
 */
int dblp_frame_next(struct dblp_reader *r, struct dblp_frame *f);

/**
 * struct dblp_writer - appends frames to a packet
 * @p: start of the packet
 * @size: room, bytes
 * @len: bytes used
 */
struct dblp_writer {
	u8 *p;
	u32 size, len;
};

/**
 * dblp_frame_put() - append a frame
 * @w: the writer
 * @f: the frame; for DATA the 16 bytes only, the payload is the caller's
 *
 * Return: false, nothing written, if it does not fit.
 */
bool dblp_frame_put(struct dblp_writer *w, const struct dblp_frame *f);

/*
 * Bytes that dblp_frame_put() will need, DATA payload excluded; 1 for PAD, which takes
 * all the room there is.
 */
u32 dblp_frame_size(const struct dblp_frame *f);

/* The 64-bit number with low 32 bits @wire that is nearest to @expect. */
u64 dblp_expand32(u32 wire, u64 expect);

/* Segments of a message; 0 < seg_size. */
static inline u32 dblp_nsegs(u32 msg_len, u32 seg_size)
{
	return DIV_ROUND_UP(msg_len, seg_size);
}

/* Payload bytes of segment @seg. */
static inline u32 dblp_seg_len(u32 msg_len, u32 seg_size, u32 seg)
{
	u32 left = msg_len - seg * seg_size;

	return left < seg_size ? left : seg_size;
}

/**
 * dblp_msg_shape_check() - may a message have this length and segment size?
 * @msg_len: bytes
 * @seg_size: bytes
 *
 * Return: 0 or MSG_LEN, SEG_SIZE.
 */
int dblp_msg_shape_check(u32 msg_len, u32 seg_size);

/**
 * dblp_desc_check() - are the values of a DESC possible?
 * @d: the frame
 *
 * Return: 0 or MSG_LEN, SEG_SIZE, DESC.
 */
int dblp_desc_check(const struct dblp_f_desc *d);

/*
 * Largest segment for a path: UDP payload @room bytes, rounded down to 4.  Below
 * DBLP_SEG_MIN the path carries messages of one segment only, and none at 0.
 */
u16 dblp_seg_size_for(u32 room);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_WIRE_H */

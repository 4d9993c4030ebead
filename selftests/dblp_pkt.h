/* SPDX-License-Identifier: GPL-2.0 */
/*
 * DBLP packets by hand: a second reading of dblp-wire.rst that shares no code with
 * the module, for peers that misbehave.
 */
#ifndef DBLP_PKT_H
#define DBLP_PKT_H

#include "dblp_util.h"

enum {
	F_PAD, F_DATA, F_DESC, F_MARK, F_ACK, F_DONE, F_NEED, F_MAP, F_CLOSE, F_BUDGET,
	F_REFUSE, F_RESET, F_INIT, F_CHALLENGE, F_ECHO, F_ACCEPT, F_PING, F_FIN,
};

#define HDR_LEN		20
#define HDR_REV		1
#define HDR_TAG		2
#define HDR_EPOCH	4
#define PKT_MAX		65000

/* A datagram under construction. */
struct pkt {
	unsigned char b[PKT_MAX];
	size_t len;	/* of the datagram */
	size_t start;	/* of its last packet */
};

void put8(struct pkt *p, uint8_t v);
void put16(struct pkt *p, uint16_t v);
void put32(struct pkt *p, uint32_t v);
void put64(struct pkt *p, uint64_t v);
void put_zero(struct pkt *p, size_t n);
void put_bytes(struct pkt *p, const void *b, size_t n);
void set16(unsigned char *b, uint16_t v);
uint16_t get16(const unsigned char *b);
uint32_t get32(const unsigned char *b);
uint64_t get64(const unsigned char *b);

/* Starts a packet; pkt_end() sets its length. */
void pkt_begin(struct pkt *p, unsigned int flags, uint64_t flow, uint32_t pn,
	       uint32_t low);
void pkt_end(struct pkt *p);

/* Header of a packet that was received. */
struct pkt_hdr {
	unsigned int version, flags, path, len;
	uint64_t flow;
	uint32_t pn, low;
};

/* Reads the packet at @b of @n bytes; false if it is none. */
bool pkt_hdr_read(const unsigned char *b, size_t n, struct pkt_hdr *h);

/*
 * The frame at @off of a packet of @len bytes: its type, and its length or 0 where it
 * makes no sense.
 */
size_t frame_len(const unsigned char *b, size_t off, size_t len);
/* Offset of the first frame of @type in the packet, 0 if there is none. */
size_t frame_find(const unsigned char *b, size_t len, unsigned int type);

/* One end of a flow, played by hand on a UDP socket. */
struct raw {
	int fd;			/* UDP, connected to the peer unless sending to it fails */
	union address self, peer;
	uint64_t flow, inc;	/* our ids */
	uint64_t peer_flow, peer_inc;
	uint64_t cookie_time, cookie;
	uint32_t pn;		/* last number used */
	uint32_t seen;		/* largest number received */
	uint32_t low;
	unsigned int dir;	/* header flags of our packets: 0 or HDR_REV */
};

/* A UDP socket on a free port of @family's loopback address. */
bool raw_open(struct raw *r, int family, uint64_t id);
/* Starts the next packet of the flow. */
void raw_begin(struct raw *r, struct pkt *p);
/* Ends it and sends the datagram to the peer. */
bool raw_send(struct raw *r, struct pkt *p);
/*
 * Receives datagrams until one holds a packet with a frame of @type, and leaves it in
 * @p: its offset is returned, 0 after @ms.
 */
size_t raw_expect(struct raw *r, struct pkt *p, unsigned int type, int ms);
/* Throws away what has arrived. */
void raw_drain(struct raw *r);

/* INIT ... ACCEPT with the DBLP socket at r->peer, as the sender of a flow. */
bool raw_connect(struct raw *r);
/* The INIT and ECHO frames of that. */
void put_init(struct pkt *p, const struct raw *r);
void put_echo(struct pkt *p, const struct raw *r);
/* Waits @ms for an INIT from a DBLP sender and takes its flow: CHALLENGE ... ACCEPT. */
bool raw_accept(struct raw *r, int ms);

/* Frames, with the fields that tests vary. */
void put_data(struct pkt *p, uint16_t delta, uint32_t seg, uint32_t len, uint16_t size,
	      size_t payload, uint64_t seed);
struct desc {
	uint8_t mode, phase, priority, flags;
	uint32_t id, len, ppm, allow, deadline, group;
	uint16_t size;
	uint64_t tag;
	unsigned int nranges;
	uint32_t range[33][2];
};
void put_desc(struct pkt *p, const struct desc *d);
void put_mark(struct pkt *p, uint32_t id, uint16_t pass, uint32_t reo_us);
void put_close(struct pkt *p, uint32_t id, uint8_t reason, uint32_t reo_us);

/* The digest of dblp-wire.rst section 6. */
uint64_t wire_digest(uint32_t nsegs, uint32_t len, const uint64_t *map);

#endif /* DBLP_PKT_H */

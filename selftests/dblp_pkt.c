// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "dblp_pkt.h"

void put_bytes(struct pkt *p, const void *b, size_t n)
{
	memcpy(p->b + p->len, b, n);
	p->len += n;
}

void put_zero(struct pkt *p, size_t n)
{
	memset(p->b + p->len, 0, n);
	p->len += n;
}

static void put_be(struct pkt *p, uint64_t v, int bytes)
{
	while (bytes--)
		p->b[p->len++] = v >> (8 * bytes);
}

static uint64_t get_be(const unsigned char *b, int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *b++;
	return v;
}

void put8(struct pkt *p, uint8_t v)
{
	put_be(p, v, 1);
}

void put16(struct pkt *p, uint16_t v)
{
	put_be(p, v, 2);
}

void put32(struct pkt *p, uint32_t v)
{
	put_be(p, v, 4);
}

void put64(struct pkt *p, uint64_t v)
{
	put_be(p, v, 8);
}

void set16(unsigned char *b, uint16_t v)
{
	b[0] = v >> 8;
	b[1] = v;
}

uint16_t get16(const unsigned char *b)
{
	return get_be(b, 2);
}

uint32_t get32(const unsigned char *b)
{
	return get_be(b, 4);
}

uint64_t get64(const unsigned char *b)
{
	return get_be(b, 8);
}

void pkt_begin(struct pkt *p, unsigned int flags, uint64_t flow, uint32_t pn,
	       uint32_t low)
{
	p->start = p->len;
	put8(p, 1 << 4 | flags);
	put8(p, 0);
	put16(p, 0);
	put64(p, flow);
	put32(p, pn);
	put32(p, low);
}

void pkt_end(struct pkt *p)
{
	set16(p->b + p->start + 2, p->len - p->start);
}

bool pkt_hdr_read(const unsigned char *b, size_t n, struct pkt_hdr *h)
{
	if (n < HDR_LEN)
		return false;
	h->version = b[0] >> 4;
	h->flags = b[0] & 15;
	h->path = b[1];
	h->len = get16(b + 2);
	h->flow = get64(b + 4);
	h->pn = get32(b + 12);
	h->low = get32(b + 16);
	return h->version == 1 && h->len >= HDR_LEN && h->len <= n;
}

size_t frame_len(const unsigned char *b, size_t off, size_t len)
{
	const unsigned char *f = b + off;
	size_t left = len - off, need;
	uint32_t seg, msg, size, rest;

	switch (f[0]) {
	case F_PAD:
		return left;
	case F_DATA:
		if (left < 16)
			return 0;
		seg = get32(f + 4);
		msg = get32(f + 8);
		size = get16(f + 12);
		if (!size || (uint64_t)seg * size >= msg)
			return 0;
		rest = msg - seg * size;
		need = 16 + (rest < size ? rest : size);
		break;
	case F_DESC:
		need = left < 40 ? 40 : 40 + 8 * f[14];
		break;
	case F_MARK:
	case F_CLOSE:
		need = 20;
		break;
	case F_ACK:
		need = left < 28 ? 28 : 28 + 4 * f[1] + 4 * f[2];
		break;
	case F_DONE:
		need = 24;
		break;
	case F_NEED:
		need = left < 28 ? 28 : 28 + get16(f + 26);
		break;
	case F_MAP:
		need = left < 12 ? 12 : 12 + get16(f + 8);
		break;
	case F_BUDGET:
		need = 12;
		break;
	case F_REFUSE:
	case F_ACCEPT:
		need = 16;
		break;
	case F_INIT:
	case F_CHALLENGE:
	case F_ECHO:
		need = 52;
		break;
	case F_RESET:
	case F_PING:
	case F_FIN:
		need = 4;
		break;
	default:
		return 0;
	}
	return need <= left ? need : 0;
}

size_t frame_find(const unsigned char *b, size_t len, unsigned int type)
{
	size_t off = HDR_LEN, n;

	while (off < len) {
		if (b[off] == type)
			return off;
		n = frame_len(b, off, len);
		if (!n)
			return 0;
		off += n;
	}
	return 0;
}

bool raw_open(struct raw *r, int family, uint64_t id)
{
	socklen_t len = sizeof(r->self);

	memset(r, 0, sizeof(*r));
	r->flow = id;
	r->inc = ~id;
	r->low = 1;
	r->fd = socket(family, SOCK_DGRAM, 0);
	address_parse(&r->self, family == AF_INET ? "127.0.0.1" : "::1", 0);
	return r->fd >= 0 && !bind(r->fd, &r->self.sa, address_len(&r->self)) &&
	       !getsockname(r->fd, &r->self.sa, &len);
}

void raw_begin(struct raw *r, struct pkt *p)
{
	pkt_begin(p, r->dir, r->peer_flow, ++r->pn, r->low);
}

bool raw_send(struct raw *r, struct pkt *p)
{
	if (p->len > p->start + HDR_LEN && !get16(p->b + p->start + 2))
		pkt_end(p);
	return sendto(r->fd, p->b, p->len, 0, &r->peer.sa,
		      address_len(&r->peer)) == (ssize_t)p->len;
}

size_t raw_expect(struct raw *r, struct pkt *p, unsigned int type, int ms)
{
	uint64_t end = now_ms() + ms;
	union address from;
	socklen_t fromlen;
	struct pkt_hdr h;
	ssize_t n;
	size_t off, at;
	int left;

	for (;;) {
		left = (int)(end - now_ms());
		if (left < 0 || !wait_events(r->fd, POLLIN, left))
			return 0;
		fromlen = sizeof(from);
		n = recvfrom(r->fd, p->b, sizeof(p->b), MSG_DONTWAIT, &from.sa, &fromlen);
		if (n < 0)
			continue;
		p->len = n;
		for (off = 0; pkt_hdr_read(p->b + off, n - off, &h); off += h.len) {
			p->start = off;
			if (h.pn > r->seen)
				r->seen = h.pn;
			at = frame_find(p->b + off, h.len, type);
			if (!at)
				continue;
			if (!address_port(&r->peer))
				r->peer = from;
			return off + at;
		}
	}
}

void raw_drain(struct raw *r)
{
	unsigned char b[16];

	while (recv(r->fd, b, sizeof(b), MSG_DONTWAIT) >= 0 || errno == ECONNREFUSED)
		;
}

void put_init(struct pkt *p, const struct raw *r)
{
	put8(p, F_INIT);
	put_zero(p, 3);
	put64(p, r->flow);
	put64(p, r->inc);
	put_zero(p, 32);
}

void put_echo(struct pkt *p, const struct raw *r)
{
	put8(p, F_ECHO);
	put_zero(p, 3);
	put64(p, r->flow);
	put64(p, r->inc);
	put64(p, r->peer_flow);
	put64(p, r->cookie_time);
	put64(p, r->cookie);
	put_zero(p, 8);
}

bool raw_connect(struct raw *r)
{
	static struct pkt p;
	size_t at;

	p.len = 0;
	pkt_begin(&p, 0, 0, ++r->pn, r->low);
	put_init(&p, r);
	if (!raw_send(r, &p))
		return false;
	at = raw_expect(r, &p, F_CHALLENGE, DBLP_WAIT_MS);
	if (!at || get64(p.b + at + 4) != r->flow)
		return false;
	r->peer_flow = get64(p.b + at + 12);
	r->peer_inc = get64(p.b + at + 20);
	r->cookie_time = get64(p.b + at + 28);
	r->cookie = get64(p.b + at + 36);

	p.len = 0;
	raw_begin(r, &p);
	put_echo(&p, r);
	return raw_send(r, &p) && raw_expect(r, &p, F_ACCEPT, DBLP_WAIT_MS);
}

bool raw_accept(struct raw *r, int ms)
{
	static struct pkt p;
	size_t at;

	at = raw_expect(r, &p, F_INIT, ms);
	if (!at)
		return false;
	r->dir = HDR_REV;
	r->pn = 0;
	r->seen = 0;
	r->low = 1;
	r->peer_flow = get64(p.b + at + 4);
	r->peer_inc = get64(p.b + at + 12);

	p.len = 0;
	pkt_begin(&p, r->dir, r->peer_flow, 0, r->low);	/* stateless: without a number */
	put8(&p, F_CHALLENGE);
	put_zero(&p, 3);
	put64(&p, r->peer_flow);
	put64(&p, r->flow);
	put64(&p, r->inc);
	put64(&p, 1);
	put64(&p, 0x636f6f6b6965);
	put32(&p, 64);
	put_zero(&p, 4);
	if (!raw_send(r, &p))
		return false;
	at = raw_expect(r, &p, F_ECHO, DBLP_WAIT_MS);
	if (!at || get64(p.b + at + 20) != r->flow ||
	    get64(p.b + at + 36) != 0x636f6f6b6965)
		return false;

	p.len = 0;
	raw_begin(r, &p);
	put8(&p, F_ACCEPT);
	put_zero(&p, 3);
	put64(&p, r->inc);
	put32(&p, 64);
	return raw_send(r, &p);
}

void put_data(struct pkt *p, uint16_t delta, uint32_t seg, uint32_t len, uint16_t size,
	      size_t payload, uint64_t seed)
{
	put8(p, F_DATA);
	put8(p, 0);
	put16(p, delta);
	put32(p, seg);
	put32(p, len);
	put16(p, size);
	put16(p, 0);
	pattern_fill(p->b + p->len, payload, seed, (uint64_t)seg * size);
	p->len += payload;
}

void put_desc(struct pkt *p, const struct desc *d)
{
	unsigned int i;

	put8(p, F_DESC);
	put8(p, d->mode);
	put8(p, d->phase);
	put8(p, d->priority);
	put32(p, d->id);
	put32(p, d->len);
	put16(p, d->size);
	put8(p, d->nranges);
	put8(p, d->flags);
	put32(p, d->ppm);
	put32(p, d->allow);
	put32(p, d->deadline);
	put32(p, d->group);
	put64(p, d->tag);
	for (i = 0; i < d->nranges; i++) {
		put32(p, d->range[i][0]);
		put32(p, d->range[i][1]);
	}
}

static void put_end(struct pkt *p, unsigned int type, uint8_t reason, uint16_t pass,
		    uint32_t id, uint32_t reo_us)
{
	put8(p, type);
	put8(p, reason);
	put16(p, pass);
	put32(p, id);
	put64(p, ~0ULL);
	put32(p, reo_us);
}

void put_mark(struct pkt *p, uint32_t id, uint16_t pass, uint32_t reo_us)
{
	put_end(p, F_MARK, 0, pass, id, reo_us);
}

void put_close(struct pkt *p, uint32_t id, uint8_t reason, uint32_t reo_us)
{
	put_end(p, F_CLOSE, reason, 1, id, reo_us);
}

uint64_t wire_digest(uint32_t nsegs, uint32_t len, const uint64_t *map)
{
	uint64_t h = 0xcbf29ce484222325, w;
	uint32_t i;
	int b;

	for (i = 0; i < 2 + (nsegs + 63) / 64; i++) {
		w = i == 0 ? nsegs : i == 1 ? len : map[i - 2];
		for (b = 0; b < 64; b += 8)
			h = (h ^ (w >> b & 0xff)) * 0x100000001b3;
	}
	return h;
}

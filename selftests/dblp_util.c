// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "dblp_util.h"

/* Room for the largest map and the description. */
#define CONTROL_SIZE	(DBLP_MAX_SEGMENTS / 8 + 1024)

static union {
	struct cmsghdr align;
	unsigned char bytes[CONTROL_SIZE];
} control;

bool address_parse(union address *a, const char *text, uint16_t port)
{
	char name[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE];
	char *scope;

	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(port);
		return true;
	}
	snprintf(name, sizeof(name), "%s", text);
	scope = strchr(name, '%');
	if (scope) {
		*scope++ = '\0';
		a->v6.sin6_scope_id = if_nametoindex(scope);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(port);
	return inet_pton(AF_INET6, name, &a->v6.sin6_addr) == 1;
}

uint16_t address_port(const union address *a)
{
	return ntohs(a->sa.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port);
}

const char *address_text(const union address *a)
{
	static char text[INET6_ADDRSTRLEN + 16];
	char ip[INET6_ADDRSTRLEN] = "?";

	if (a->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->v4.sin_addr, ip, sizeof(ip));
		snprintf(text, sizeof(text), "%s:%u", ip, address_port(a));
	} else {
		inet_ntop(AF_INET6, &a->v6.sin6_addr, ip, sizeof(ip));
		snprintf(text, sizeof(text), "[%s]:%u", ip, address_port(a));
	}
	return text;
}

int dblp_family(void)
{
	static int family;
	FILE *f;

	if (family)
		return family;
	family = AF_DBLP;
	f = fopen("/sys/module/dblp/parameters/family", "r");
	if (f) {
		if (fscanf(f, "%d", &family) != 1)
			family = AF_DBLP;
		fclose(f);
	}
	return family;
}

int dblp_open(int flags)
{
	return socket(dblp_family(), SOCK_RDM | flags, 0);
}

int dblp_open_bound(int family, union address *self)
{
	socklen_t len = sizeof(*self);
	int fd = dblp_open(0);

	if (fd < 0)
		return -1;
	address_parse(self, family == AF_INET ? "127.0.0.1" : "::1", 0);
	if (bind(fd, &self->sa, address_len(self)) ||
	    getsockname(fd, &self->sa, &len)) {
		close(fd);
		return -1;
	}
	return fd;
}

bool netns_enter(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	bool up;
	int fd;

	if (unshare(CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		return false;
	up = !ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
	return up;
}

bool loopback_mtu(int mtu)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_mtu = mtu };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool done = fd >= 0 && !ioctl(fd, SIOCSIFMTU, &ifr);

	close(fd);
	return done;
}

int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

bool set_buffers(int fd, int bytes)
{
	return !set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, bytes) &&
	       !set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
}

int wait_events(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (poll(&p, 1, ms) <= 0)
		return 0;
	return p.revents;
}

/* splitmix64 of the position: cheap, and no two places look alike. */
static uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	uint64_t z = seed * 0xd1342543de82ef95 + index * 0x9e3779b97f4a7c15 + 1;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	/* Never zero, so that a hole cannot pass for payload. */
	return (z ^ (z >> 27)) | 0x0101010101010101;
}

static unsigned char pattern_byte(uint64_t seed, uint64_t off)
{
	return pattern_word(seed, off / 8) >> (off % 8 * 8);
}

void pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t off)
{
	unsigned char *p = buf;
	uint64_t w;

	while (len) {
		if (off % 8 || len < 8) {
			*p++ = pattern_byte(seed, off++);
			len--;
			continue;
		}
		w = htole64(pattern_word(seed, off / 8));
		memcpy(p, &w, 8);
		p += 8;
		off += 8;
		len -= 8;
	}
}

size_t pattern_diff(const void *buf, size_t len, uint64_t seed, uint64_t off)
{
	const unsigned char *p = buf;
	size_t i, diff = 0;
	uint64_t w;

	while (len) {
		if (off % 8 || len < 8) {
			diff += *p++ != pattern_byte(seed, off++);
			len--;
			continue;
		}
		w = htole64(pattern_word(seed, off / 8));
		if (memcmp(p, &w, 8))
			for (i = 0; i < 8; i++)
				diff += p[i] != ((unsigned char *)&w)[i];
		p += 8;
		off += 8;
		len -= 8;
	}
	return diff;
}

size_t byte_diff(const void *buf, size_t len, unsigned char value)
{
	const unsigned char *p = buf;
	size_t i, diff = 0;

	for (i = 0; i < len; i++)
		diff += p[i] != value;
	return diff;
}

ssize_t dblp_send(int fd, const union address *to, const void *buf, size_t len,
		  const struct send_extra *x)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (to) {
		m.msg_name = (void *)&to->sa;
		m.msg_namelen = address_len(to);
	}
	if (x && (x->params || x->nranges)) {
		size_t used = 0, size = x->nranges * sizeof(*x->ranges);

		memset(&control, 0, 1024);
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		if (x->params) {
			c->cmsg_level = SOL_DBLP;
			c->cmsg_type = DBLP_CMSG_SEND;
			c->cmsg_len = CMSG_LEN(sizeof(*x->params));
			memcpy(CMSG_DATA(c), x->params, sizeof(*x->params));
			used += CMSG_SPACE(sizeof(*x->params));
			c = CMSG_NXTHDR(&m, c);
		}
		if (x->nranges) {
			c->cmsg_level = SOL_DBLP;
			c->cmsg_type = DBLP_CMSG_PROTECT;
			c->cmsg_len = CMSG_LEN(size);
			memcpy(CMSG_DATA(c), x->ranges, size);
			used += CMSG_SPACE(size);
		}
		m.msg_controllen = used;
	}
	return sendmsg(fd, &m, x ? x->flags : 0);
}

ssize_t dblp_recv(int fd, void *buf, size_t size, int flags, struct received *r)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr m = {
		.msg_name = &r->peer.sa, .msg_namelen = sizeof(r->peer),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	size_t n;

	memset(r, 0, sizeof(*r));
	r->len = recvmsg(fd, &m, flags);
	if (r->len < 0)
		return -1;
	r->flags = m.msg_flags;
	if (m.msg_flags & MSG_NOTIFICATION) {
		r->completion = true;
		n = (size_t)r->len < sizeof(r->done) ? (size_t)r->len : sizeof(r->done);
		memcpy(&r->done, buf, n);
	}
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_DBLP)
			continue;
		n = c->cmsg_len - CMSG_LEN(0);
		if (c->cmsg_type == DBLP_CMSG_RECV) {
			r->has_info = n >= sizeof(r->info);
			memcpy(&r->info, CMSG_DATA(c),
			       n < sizeof(r->info) ? n : sizeof(r->info));
		} else if (c->cmsg_type == DBLP_CMSG_MAP && n >= sizeof(struct dblp_map)) {
			const struct dblp_map *map = (void *)CMSG_DATA(c);

			r->has_map = true;
			r->map_segs = map->nr_segs;
			r->map_seg_size = map->seg_size;
			r->map_words = (n - sizeof(*map)) / 8;
			r->map = (const uint64_t *)map->bits;
		}
	}
	return r->len;
}

ssize_t dblp_recv_wait(int fd, void *buf, size_t size, struct received *r)
{
	if (!wait_events(fd, POLLIN, DBLP_WAIT_MS)) {
		errno = ETIMEDOUT;
		return -1;
	}
	return dblp_recv(fd, buf, size, MSG_DONTWAIT, r);
}

uint64_t map_digest(uint32_t nsegs, const uint64_t *map, size_t words)
{
	uint64_t h = 0xcbf29ce484222325;
	size_t i;
	int b;

	h = (h ^ nsegs) * 0x100000001b3;
	for (i = 0; i < words; i++)
		for (b = 0; b < 64; b += 8)
			h = (h ^ (map[i] >> b & 0xff)) * 0x100000001b3;
	return h;
}

size_t message_diff(const unsigned char *buf, size_t len, uint64_t seed,
		    const struct received *r, unsigned char hole)
{
	size_t off, n, diff = 0;
	uint32_t seg = 0;

	if (!r->has_map)
		return pattern_diff(buf, len, seed, 0);
	for (off = 0; off < len; off += n, seg++) {
		n = len - off < r->map_seg_size ? len - off : r->map_seg_size;
		if (map_test(r->map, seg))
			diff += byte_diff(buf + off, n, hole);
		else
			diff += pattern_diff(buf + off, n, seed, off);
	}
	return diff;
}

bool counters_read(struct counters *s)
{
	FILE *f = fopen(DBLP_COUNTERS, "r");
	struct counter *c;

	memset(s, 0, sizeof(*s));
	if (!f)
		return false;
	while (s->n < sizeof(s->c) / sizeof(s->c[0])) {
		c = &s->c[s->n];
		if (fscanf(f, "%47s %lld", c->name, &c->value) != 2)
			break;
		s->n++;
	}
	fclose(f);
	return s->n > 0;
}

long long counter_of(const struct counters *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (!strcmp(s->c[i].name, name))
			return s->c[i].value;
	return -1;
}

long long counter(const char *name)
{
	struct counters s;

	return counters_read(&s) ? counter_of(&s, name) : -1;
}

long long counter_delta(const struct counters *a, const struct counters *b,
			const char *name)
{
	long long before = counter_of(a, name), after = counter_of(b, name);

	/* A counter that does not exist must not pass for one that stood still. */
	if (before < 0 || after < 0)
		return -1;
	return after - before;
}

bool counter_wait(const char *name, long long value)
{
	uint64_t end = now_ms() + DBLP_WAIT_MS;

	while (counter(name) < value) {
		if (now_ms() > end)
			return false;
		poll(NULL, 0, 2);
	}
	return true;
}

const char *moved(const struct counters *a)
{
	static char text[512];
	struct counters b;
	size_t i, n = 0;

	text[0] = '\0';
	if (!counters_read(&b))
		return "no counters";
	for (i = 0; i < b.n && n < sizeof(text) - 64; i++) {
		long long d = b.c[i].value - counter_of(a, b.c[i].name);

		if (d && !strncmp(b.c[i].name, DBLP_REJECT, strlen(DBLP_REJECT)))
			n += sprintf(text + n, "%s%s+%lld", n ? " " : "",
				     b.c[i].name + strlen(DBLP_REJECT), d);
	}
	return text;
}

const char *moved_wait(const struct counters *a, const char *want)
{
	uint64_t end = now_ms() + 2000;
	const char *m;

	for (;;) {
		m = moved(a);
		if (counter("pkts_received") > counter_of(a, "pkts_received") &&
		    !strcmp(m, want))
			return m;
		if (now_ms() > end)
			return m;
		poll(NULL, 0, 2);
	}
}

bool quiet(void)
{
	uint64_t end = now_ms() + DBLP_WAIT_MS;
	struct counters a, b;

	do {
		if (!counters_read(&a))
			return false;
		poll(NULL, 0, 40);
		counters_read(&b);
		if (!memcmp(&a, &b, sizeof(a)))
			return true;
	} while (now_ms() < end);
	return false;
}

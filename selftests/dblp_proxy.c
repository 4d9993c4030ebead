// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "dblp_proxy.h"

/* Is the packet one that gets lost? */
static bool lost(struct proxy *p, const unsigned char *b, const struct pkt_hdr *h)
{
	size_t off = frame_find(b, h->len, F_DATA);
	uint64_t message;
	uint32_t seg;
	bool first;

	if (!off)
		return false;
	message = (uint64_t)h->low + get16(b + off + 2);
	seg = get32(b + off + 4) % PROXY_SEGS;
	if (p->lose_each_message) {
		first = message > p->last_message;
		if (first)
			p->last_message = message;
		return first;
	}
	first = !p->seen[seg];
	p->seen[seg] = true;
	return p->lose_always[seg] || (first && p->lose_first[seg]) ||
	       (first && p->period && seg % p->period == 0);
}

static void forward(struct proxy *p, const unsigned char *b, size_t n)
{
	static unsigned char out[65536];
	struct pkt_hdr h;
	size_t off, len = 0;
	int i;

	for (off = 0; pkt_hdr_read(b + off, n - off, &h); off += h.len) {
		if (lost(p, b + off, &h)) {
			p->lost++;
			continue;
		}
		memcpy(out + len, b + off, h.len);
		len += h.len;
	}
	for (i = 0; len && i < (p->duplicate ? 2 : 1); i++) {
		if (sendto(p->back_fd, out, len, 0, &p->to.sa, address_len(&p->to)) > 0)
			p->passed++;
	}
}

static void *run(void *arg)
{
	static unsigned char b[65536];
	struct proxy *p = arg;
	struct pollfd f[] = {
		{ .fd = p->front_fd, .events = POLLIN },
		{ .fd = p->back_fd, .events = POLLIN },
		{ .fd = p->stop[0], .events = POLLIN },
	};
	socklen_t len;
	ssize_t n;
	int i;

	while (poll(f, 3, -1) > 0 && !f[2].revents) {
		if (f[0].revents) {
			len = sizeof(p->from);
			n = recvfrom(p->front_fd, b, sizeof(b), MSG_DONTWAIT, &p->from.sa, &len);
			if (n > 0 && !p->black_hole)
				forward(p, b, n);
		}
		if (f[1].revents) {
			n = recv(p->back_fd, b, sizeof(b), MSG_DONTWAIT);
			for (i = 0; n > 0 && !p->black_hole && i < (p->duplicate ? 2 : 1); i++)
				sendto(p->front_fd, b, n, 0, &p->from.sa,
				       address_len(&p->from));
		}
	}
	return NULL;
}

static int udp_bound(int family, union address *self)
{
	socklen_t len = sizeof(*self);
	int fd = socket(family, SOCK_DGRAM, 0);

	address_parse(self, family == AF_INET ? "127.0.0.1" : "::1", 0);
	if (fd < 0 || bind(fd, &self->sa, address_len(self)) ||
	    getsockname(fd, &self->sa, &len))
		return -1;
	/* It may be slower than the sender; what it loses by that is loss, too. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &(int){ 64 << 20 }, sizeof(int));
	return fd;
}

bool proxy_start(struct proxy *p, const union address *to)
{
	memset(p, 0, sizeof(*p));
	p->to = *to;
	p->front_fd = udp_bound(to->sa.sa_family, &p->front);
	p->back_fd = udp_bound(to->sa.sa_family, &p->back);
	if (p->front_fd < 0 || p->back_fd < 0 || pipe(p->stop))
		return false;
	return !pthread_create(&p->thread, NULL, run, p);
}

void proxy_stop(struct proxy *p)
{
	if (write(p->stop[1], "", 1) == 1)
		pthread_join(p->thread, NULL);
	close(p->front_fd);
	close(p->back_fd);
	close(p->stop[0]);
	close(p->stop[1]);
}

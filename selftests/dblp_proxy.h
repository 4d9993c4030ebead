/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A path between two DBLP sockets that loses exactly the segments that a test names.
 */
#ifndef DBLP_PROXY_H
#define DBLP_PROXY_H

#include <pthread.h>

#include "dblp_pkt.h"

#define PROXY_SEGS	16384

struct proxy {
	union address front;	/* where the sender sends to */
	union address back;	/* where the receiver sees it come from */
	/* Set by the test before anything is sent. */
	unsigned int period;	/* 0, or: lose the first copy of every n-th segment */
	bool lose_first[PROXY_SEGS];
	bool lose_always[PROXY_SEGS];
	bool lose_each_message;	/* the first copy of segment 0 of every message */
	bool duplicate;		/* send every datagram twice */
	bool black_hole;	/* nothing passes any more, may be set at any time */
	/* What it did. */
	unsigned long lost, passed;

	union address to, from;
	int front_fd, back_fd, stop[2];
	pthread_t thread;
	bool seen[PROXY_SEGS];
	uint64_t last_message;
};

/* Starts one that leads to @to. */
bool proxy_start(struct proxy *p, const union address *to);
void proxy_stop(struct proxy *p);

#endif /* DBLP_PROXY_H */

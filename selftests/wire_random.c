// SPDX-License-Identifier: GPL-2.0
/*
 * Random packets, and right ones with wrong bits, at both ends of a flow: nothing breaks,
 * honest flows go on, and every message has a sensible end.
 *
 * DBLP_SEED repeats a run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dblp_pkt.h"
#include "dblp_harness.h"

#define L	3000	/* a message of three segments */
#define S	1000
#define RANDOM	50000	/* packets at each end */

static struct pkt p;

/* xorshift64: the same on every machine. */
static uint64_t random_state;

static uint64_t rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void random_seed(void)
{
	const char *seed = getenv("DBLP_SEED");

	random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) << 20 | getpid();
	random_state |= 1;
	printf("# DBLP_SEED=0x%llx\n", (unsigned long long)random_state);
	fflush(stdout);
}

static unsigned int below(unsigned int n)
{
	return rnd() % n;
}

/* One frame of any kind; most have sensible fields, and so get far. */
static void put_random_frame(const struct raw *r, uint32_t id)
{
	unsigned int type = below(F_FIN + 2), i, n;
	struct desc d = {
		.id = id + below(3), .len = L, .size = S, .mode = below(2),
		.ppm = below(DBLP_PPM), .allow = below(L), .tag = rnd(),
	};

	switch (type) {
	case F_DATA:
		put_data(&p, below(4), below(4), L, S, S, 1);
		break;
	case F_DESC:
		d.nranges = below(3);
		for (i = 0; i < d.nranges; i++) {
			d.range[i][0] = i * 2;
			d.range[i][1] = 1;
		}
		put_desc(&p, &d);
		break;
	case F_MARK:
		put_mark(&p, id + below(3), below(4), below(5000));
		break;
	case F_CLOSE:
		put_close(&p, id + below(3), 1 + below(3), below(5000));
		break;
	case F_ACK:
		put8(&p, F_ACK);
		n = 1 + below(4);
		put8(&p, n);
		put8(&p, 1);
		put8(&p, 0);
		put32(&p, 1 + below(40));
		put32(&p, below(1000));
		put_zero(&p, 12);
		put32(&p, 1000);
		for (i = 0; i < n; i++) {
			put16(&p, i ? 1 + below(3) : 0);
			put16(&p, 1 + below(3));
		}
		put16(&p, below(4));
		put16(&p, below(2));
		break;
	case F_DONE:
		n = below(4);	/* segments missing */
		put8(&p, F_DONE);
		put8(&p, below(2));
		put16(&p, below(10) ? !!n : below(3));
		put32(&p, id + below(3));
		put32(&p, n ? below(L) : 0);
		put32(&p, n);
		put64(&p, rnd());
		break;
	case F_NEED:
		put8(&p, F_NEED);
		put8(&p, below(2));
		put16(&p, below(4));
		put32(&p, id + below(3));
		put32(&p, below(L));
		put32(&p, below(4));
		put32(&p, below(100));
		put32(&p, 0);
		put16(&p, below(9));
		put16(&p, 4);
		put32(&p, rnd());
		break;
	case F_MAP:
		put8(&p, F_MAP);
		put8(&p, below(2));
		put16(&p, below(2));
		put32(&p, id + below(3));
		put16(&p, 4);
		put16(&p, 0);
		put32(&p, rnd());
		break;
	case F_BUDGET:
	case F_REFUSE:
		put8(&p, type);
		put8(&p, 1 + below(2));
		put16(&p, 0);
		put32(&p, id + below(3));
		put32(&p, below(2));
		if (type == F_REFUSE)
			put32(&p, below(100000));
		break;
	case F_INIT:
		put_init(&p, r);
		break;
	case F_ECHO:
		put_echo(&p, r);
		break;
	case F_CHALLENGE:
		put8(&p, type);
		put_zero(&p, 3);
		put64(&p, r->peer_flow);
		put64(&p, r->flow);
		put64(&p, r->inc);
		put_zero(&p, 24);
		break;
	case F_FIN:
	case F_RESET:
		/* They would end it all too soon. */
		if (below(200)) {
			put8(&p, F_PING);
			put_zero(&p, 3);
			break;
		}
		put8(&p, type);
		put8(&p, 1 + below(2));
		put16(&p, 0);
		break;
	case F_ACCEPT:
		put8(&p, type);
		put_zero(&p, 3);
		put64(&p, r->inc);
		put32(&p, 64);
		break;
	default:
		put8(&p, type);
		put_zero(&p, 3);
		break;
	}
}

/* A datagram that is noise, or right but for a few bytes. */
static void random_datagram(struct raw *r, uint32_t id)
{
	unsigned int i, n;

	p.len = 0;
	if (!below(16)) {
		n = 1 + below(1600);
		while (p.len < n)
			put64(&p, rnd());
		p.len = n;
		p.b[0] = 0x10 | (p.b[0] & 7);
		return;
	}
	do {
		r->pn += below(50) ? 1 : 1 + below(100);
		pkt_begin(&p, r->dir, below(50) ? r->peer_flow : rnd(),
			  below(20) ? r->pn : below(r->pn), r->low);
		n = 1 + below(4);
		for (i = 0; i < n; i++)
			put_random_frame(r, id);
		pkt_end(&p);
	} while (!below(8) && p.len < 8000);
	for (i = below(3) ? below(4) : 0; i; i--) {
		n = below(p.len);
		/* A number far ahead makes a flow deaf to all that follow. */
		if (n >= 12 && n < 16 && below(1000))
			continue;
		switch (below(3)) {
		case 0:
			p.b[n] = rnd();
			break;
		case 1:
			p.b[n] ^= 1 << below(8);
			break;
		case 2:
			p.b[n] = below(2) ? 0 : 0xff;
			break;
		}
	}
	if (!below(10))
		p.len = 1 + below(p.len);
}

FIXTURE(random)
{
	struct raw raw;
	struct counters before;
};

FIXTURE_SETUP(random)
{
	ASSERT_TRUE(netns_enter());
	ASSERT_TRUE(loopback_mtu(1500));
	random_seed();
	ASSERT_TRUE(raw_open(&self->raw, AF_INET, rnd()));
	ASSERT_TRUE(counters_read(&self->before));
}

FIXTURE_TEARDOWN(random)
{
	close(self->raw.fd);
	TH_LOG("%s", moved(&self->before));
}

/* A message from @tx to @rx, among what else may be there. */
static bool honest_works(int tx, int rx, const union address *to)
{
	struct dblp_send_params params = { .tag = rnd() };
	struct send_extra x = { .params = &params };
	static unsigned char buf[2 * L];
	struct received r;

	pattern_fill(buf, L, params.tag, 0);
	if (dblp_send(tx, to, buf, L, &x) != L)
		return false;
	while (dblp_recv_wait(rx, buf, sizeof(buf), &r) >= 0)
		if (!r.completion && r.info.tag == params.tag)
			return r.len == L && !pattern_diff(buf, L, params.tag, 0);
	return false;
}

TEST_F_TIMEOUT(random, from_sender, 600)
{
	struct raw *raw = &self->raw;
	int i, rx, tx, opened = 0;
	struct counters after;
	uint32_t id = 1;

	rx = dblp_open_bound(AF_INET, &raw->peer);
	ASSERT_GE(rx, 0);
	tx = dblp_open(0);
	ASSERT_GE(tx, 0);
	for (i = 0; i < RANDOM; i++) {
		if (i % 1000 == 0) {
			/* Killed, it comes again. */
			raw->pn = 0;
			raw->low = id = 1;
			raw->flow = rnd();
			raw->inc = rnd();
			opened += raw_connect(raw);
		}
		if (i % 5000 == 0)
			ASSERT_TRUE(honest_works(tx, rx, &raw->peer))
				TH_LOG("after %d packets", i);
		if (i % 50 == 0)
			raw->low = id += 2;
		if (i % 100 == 0)
			raw_drain(raw);
		random_datagram(raw, id);
		sendto(raw->fd, p.b, p.len, 0, &raw->peer.sa, address_len(&raw->peer));
	}
	EXPECT_GT(opened, RANDOM / 1000 / 2);
	ASSERT_TRUE(counters_read(&after));
	EXPECT_GT(counter_delta(&self->before, &after, "pkts_received"), RANDOM / 2);
	EXPECT_TRUE(honest_works(tx, rx, &raw->peer));
	close(rx);
	close(tx);
}

TEST_F_TIMEOUT(random, from_receiver, 600)
{
	struct dblp_send_params params = { .tolerance_ppm = 300000 };
	struct send_extra x = { .params = &params, .flags = MSG_DONTWAIT };
	unsigned int outcomes[4] = { }, accepted = 0, i;
	static unsigned char buf[L];
	struct raw *raw = &self->raw;
	uint32_t dead = 200;
	union address to;
	struct received r;
	char done[1024];
	int tx, rx;

	tx = dblp_open(0);
	ASSERT_GE(tx, 0);
	ASSERT_EQ(0, set_int(tx, SOL_DBLP, DBLP_SO_COMPLETIONS, 1));
	ASSERT_EQ(0, setsockopt(tx, SOL_DBLP, DBLP_SO_DEAD_TIME, &dead, sizeof(dead)));
	for (i = 0; i < RANDOM; i++) {
		if (i % 20 == 0) {
			dblp_send(tx, &raw->self, buf, L, &x);
			/* Killed, the flow comes again. */
			accepted += raw_accept(raw, i ? 0 : DBLP_WAIT_MS);
		}
		random_datagram(raw, raw->low);
		sendto(raw->fd, p.b, p.len, 0, &raw->peer.sa, address_len(&raw->peer));
		while (dblp_recv(tx, done, sizeof(done), MSG_DONTWAIT, &r) >= 0) {
			ASSERT_TRUE(r.completion);
			ASSERT_LE(r.done.outcome, DBLP_OUTCOME_UNKNOWN);
			ASSERT_LE(r.done.missing_bytes, L);
			ASSERT_LE(r.done.missing_segs, 3);
			outcomes[r.done.outcome]++;
			if (raw->low <= r.done.msg_id)
				raw->low = r.done.msg_id + 1;
		}
	}
	TH_LOG("%u flows; outcomes ok %u below %u refused %u unknown %u", accepted,
	       outcomes[0], outcomes[1], outcomes[2], outcomes[3]);
	EXPECT_GT(accepted, 5);
	for (i = 0; i < ARRAY_SIZE(outcomes); i++)
		EXPECT_GT(outcomes[i], 0) TH_LOG("outcome %u", i);
	rx = dblp_open_bound(AF_INET, &to);
	ASSERT_GE(rx, 0);
	EXPECT_TRUE(honest_works(tx, rx, &to));
	close(rx);
	close(tx);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * What the sender is told: one completion for each message, the right outcome, and
 * the same delivery map as the receiver has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "dblp_proxy.h"
#include "dblp_harness.h"

FIXTURE(completion)
{
	int tx, rx;
	union address from, to;
};

FIXTURE_SETUP(completion)
{
	ASSERT_TRUE(netns_enter());
	self->tx = dblp_open_bound(AF_INET, &self->from);
	ASSERT_GE(self->tx, 0);
	ASSERT_EQ(0, set_int(self->tx, SOL_DBLP, DBLP_SO_COMPLETIONS, 1));
	self->rx = dblp_open_bound(AF_INET, &self->to);
	ASSERT_GE(self->rx, 0);
}

FIXTURE_TEARDOWN(completion)
{
	close(self->tx);
	close(self->rx);
}

static int set_u64(int fd, int option, uint64_t v)
{
	return setsockopt(fd, SOL_DBLP, option, &v, sizeof(v));
}

/* The next completion at @fd; false if something else comes. */
static bool completion(int fd, struct received *c)
{
	char buf[256];

	return dblp_recv_wait(fd, buf, sizeof(buf), c) >= (ssize_t)sizeof(c->done) &&
	       c->completion;
}

TEST_F(completion, ok)
{
	struct dblp_send_params p = {
		.tag = 0x8877665544332211, .phase = 9, .group = 77, .priority = 1,
	};
	struct send_extra x = { .params = &p };
	unsigned char buf[1000];
	struct received r, c;

	pattern_fill(buf, sizeof(buf), 1, 0);
	ASSERT_EQ(1000, dblp_send(self->tx, &self->to, buf, 1000, &x));
	ASSERT_EQ(1000, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	ASSERT_TRUE(completion(self->tx, &c));
	EXPECT_EQ((ssize_t)sizeof(c.done), c.len);
	EXPECT_FALSE(c.flags & (MSG_TRUNC | MSG_CTRUNC));
	EXPECT_FALSE(c.has_info);
	EXPECT_FALSE(c.has_map);
	EXPECT_EQ(DBLP_OUTCOME_OK, c.done.outcome);
	EXPECT_EQ(0, c.done.error);
	EXPECT_EQ(p.tag, c.done.tag);
	EXPECT_EQ(p.phase, c.done.phase);
	EXPECT_EQ(p.group, c.done.group);
	EXPECT_EQ(r.info.msg_id, c.done.msg_id);
	EXPECT_EQ(1000, c.done.len);
	EXPECT_EQ(0, c.done.missing_bytes);
	EXPECT_EQ(0, c.done.missing_segs);
	EXPECT_EQ(0, c.done.limit);
	EXPECT_GE(c.done.sent_bytes, 1000);
	EXPECT_EQ(c.done.sent_bytes - 1000, c.done.retransmitted_bytes);
	EXPECT_EQ(r.info.nr_segs, c.done.nr_segs);
	EXPECT_EQ(r.info.seg_size, c.done.seg_size);
	EXPECT_GT(c.done.duration_us, 0);
	EXPECT_EQ(0, c.done.reserved);
	EXPECT_EQ(0, c.done.reserved2);
	EXPECT_EQ(0, memcmp(&c.peer.v4, &self->to.v4, 8));
}

TEST_F(completion, off_by_default)
{
	struct received r;
	char buf[8];
	int v;

	ASSERT_EQ(0, set_int(self->tx, SOL_DBLP, DBLP_SO_COMPLETIONS, 0));
	ASSERT_EQ(1, dblp_send(self->tx, &self->to, "x", 1, NULL));
	ASSERT_EQ(1, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	do {
		ASSERT_EQ(0, ioctl(self->tx, TIOCOUTQ, &v));
	} while (v && !poll(NULL, 0, 2));
	EXPECT_EQ(-1, dblp_recv(self->tx, buf, sizeof(buf), MSG_DONTWAIT, &r));
	EXPECT_EQ(EAGAIN, errno);
}

TEST_F(completion, one_for_each)
{
	enum { COUNT = 300 };
	struct dblp_send_params p = { };
	struct send_extra x = { .params = &p };
	unsigned char delivered[COUNT] = { }, done[COUNT] = { };
	struct received r;
	char buf[256];
	int i;

	for (i = 0; i < COUNT; i++) {
		p.tag = i;
		ASSERT_EQ(1 + i % 200, dblp_send(self->tx, &self->to, buf, 1 + i % 200, &x));
	}
	for (i = 0; i < COUNT; i++) {
		ASSERT_GT(dblp_recv_wait(self->rx, buf, sizeof(buf), &r), 0);
		ASSERT_LT(r.info.tag, COUNT);
		ASSERT_EQ(0, delivered[r.info.tag]++);
		ASSERT_TRUE(completion(self->tx, &r));
		ASSERT_LT(r.done.tag, COUNT);
		ASSERT_EQ(0, done[r.done.tag]++);
		ASSERT_EQ(DBLP_OUTCOME_OK, r.done.outcome);
		ASSERT_EQ(1 + r.done.tag % 200, r.done.len);
	}
	EXPECT_EQ(-1, dblp_recv(self->tx, buf, sizeof(buf), MSG_DONTWAIT, &r));
	EXPECT_EQ(-1, dblp_recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT, &r));
}

TEST_F(completion, among_messages)
{
	struct received r;
	bool message = false, done = false;
	char buf[256];
	int i;

	ASSERT_EQ(3, dblp_send(self->tx, &self->to, "one", 3, NULL));
	ASSERT_EQ(3, dblp_send(self->rx, &self->from, "two", 3, NULL));
	for (i = 0; i < 2; i++) {
		ASSERT_GT(dblp_recv_wait(self->tx, buf, sizeof(buf), &r), 0);
		if (r.completion) {
			done = true;
		} else {
			message = true;
			EXPECT_EQ(0, memcmp(buf, "two", 3));
			EXPECT_TRUE(r.has_info);
		}
	}
	EXPECT_TRUE(done && message);
}

TEST_F(completion, read_in_part)
{
	struct received r;
	char buf[256];
	int v;

	ASSERT_EQ(1, dblp_send(self->tx, &self->to, "x", 1, NULL));
	ASSERT_TRUE(wait_events(self->tx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(0, ioctl(self->tx, FIONREAD, &v));
	EXPECT_EQ((int)sizeof(r.done), v);
	ASSERT_EQ((ssize_t)sizeof(r.done),
		  dblp_recv(self->tx, buf, sizeof(buf), MSG_PEEK, &r));
	EXPECT_TRUE(r.completion);
	ASSERT_EQ(8, dblp_recv(self->tx, buf, 8, 0, &r));
	EXPECT_TRUE(r.completion);
	EXPECT_TRUE(r.flags & MSG_TRUNC);
	EXPECT_EQ(1, r.done.msg_id);
	EXPECT_EQ(-1, dblp_recv(self->tx, buf, sizeof(buf), MSG_DONTWAIT, &r));
}

TEST_F(completion, refused)
{
	static unsigned char buf[100000];
	struct counters before, after;
	struct received r;

	ASSERT_EQ(0, set_u64(self->rx, DBLP_SO_MAX_MESSAGE, 50000));
	ASSERT_TRUE(counters_read(&before));
	ASSERT_EQ(50001, dblp_send(self->tx, &self->to, buf, 50001, NULL));
	ASSERT_TRUE(completion(self->tx, &r));
	EXPECT_EQ(DBLP_OUTCOME_REFUSED, r.done.outcome);
	EXPECT_EQ(50000, r.done.limit);
	EXPECT_EQ(50001, r.done.len);
	EXPECT_EQ(0, r.done.error);
	EXPECT_FALSE(r.has_map);
	EXPECT_EQ(0, memcmp(&r.peer.v4, &self->to.v4, 8));
	ASSERT_TRUE(counters_read(&after));
	EXPECT_GT(counter_delta(&before, &after, DBLP_REJECT "refused"), 0);
	/* The flow goes on. */
	ASSERT_EQ(50000, dblp_send(self->tx, &self->to, buf, 50000, NULL));
	ASSERT_TRUE(completion(self->tx, &r));
	EXPECT_EQ(DBLP_OUTCOME_OK, r.done.outcome);
	ASSERT_EQ(50000, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	EXPECT_EQ(-1, dblp_recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT, &r));
}

TEST_F(completion, nobody_there)
{
	struct received r;
	union address gone = self->to;

	close(self->rx);
	self->rx = -1;
	ASSERT_EQ(5, dblp_send(self->tx, &gone, "12345", 5, NULL));
	ASSERT_TRUE(completion(self->tx, &r));
	EXPECT_EQ(DBLP_OUTCOME_UNKNOWN, r.done.outcome);
	EXPECT_EQ(ECONNREFUSED, r.done.error);
	EXPECT_EQ(5, r.done.missing_bytes);
	EXPECT_EQ(0, r.done.sent_bytes);
	EXPECT_FALSE(r.has_map);
	EXPECT_EQ(0, memcmp(&r.peer.v4, &gone.v4, 8));
	/* Once someone is there, the same socket reaches him. */
	self->rx = dblp_open(0);
	ASSERT_EQ(0, bind(self->rx, &gone.sa, address_len(&gone)));
	ASSERT_EQ(5, dblp_send(self->tx, &gone, "12345", 5, NULL));
	ASSERT_TRUE(completion(self->tx, &r));
	EXPECT_EQ(DBLP_OUTCOME_OK, r.done.outcome);
}

TEST_F(completion, silence)
{
	uint32_t dead = 300;
	struct raw mute;
	struct received r;
	int i;

	ASSERT_TRUE(raw_open(&mute, AF_INET, 1));
	ASSERT_EQ(0, setsockopt(self->tx, SOL_DBLP, DBLP_SO_DEAD_TIME, &dead, sizeof(dead)));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(5, dblp_send(self->tx, &mute.self, "12345", 5, NULL));
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(completion(self->tx, &r));
		EXPECT_EQ(DBLP_OUTCOME_UNKNOWN, r.done.outcome);
		EXPECT_EQ(ETIMEDOUT, r.done.error);
		EXPECT_EQ(5, r.done.missing_bytes);
		EXPECT_GE(r.done.duration_us, 250000);
		EXPECT_EQ(0, memcmp(&r.peer.v4, &mute.self.v4, 8));
	}
}

/* The peer closes while a message waits for room there. */
TEST_F(completion, closed)
{
	enum { LEN = 300000 };
	static unsigned char buf[LEN];
	struct received r;
	long long busy;
	int i;

	ASSERT_EQ(0, set_int(self->rx, SOL_SOCKET, SO_RCVBUF, LEN));
	busy = counter(DBLP_REJECT "busy");
	ASSERT_GE(busy, 0);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(LEN, dblp_send(self->tx, &self->to, buf, LEN, NULL));
	ASSERT_TRUE(counter_wait(DBLP_REJECT "busy", busy + 1));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	close(self->rx);
	self->rx = -1;
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(completion(self->tx, &r));
		if (r.done.outcome == DBLP_OUTCOME_OK)
			continue;
		EXPECT_EQ(DBLP_OUTCOME_UNKNOWN, r.done.outcome);
		EXPECT_EQ(ECONNRESET, r.done.error);
		EXPECT_GT(r.done.missing_bytes, 0);
	}
	EXPECT_EQ(DBLP_OUTCOME_UNKNOWN, r.done.outcome);
}

/* Without completions a connected socket has the old way of telling. */
TEST_F(completion, socket_error)
{
	socklen_t len = sizeof(int);
	char buf[8];
	int v = -1;

	ASSERT_EQ(0, set_int(self->tx, SOL_DBLP, DBLP_SO_COMPLETIONS, 0));
	close(self->rx);
	self->rx = -1;
	ASSERT_EQ(0, connect(self->tx, &self->to.sa, address_len(&self->to)));
	ASSERT_EQ(1, send(self->tx, "x", 1, 0));
	EXPECT_TRUE(wait_events(self->tx, POLLIN, DBLP_WAIT_MS) & POLLERR);
	EXPECT_EQ(-1, recv(self->tx, buf, sizeof(buf), 0));
	EXPECT_EQ(ECONNREFUSED, errno);
	ASSERT_EQ(0, getsockopt(self->tx, SOL_SOCKET, SO_ERROR, &v, &len));
	EXPECT_EQ(0, v);
}

TEST_F(completion, linger)
{
	struct linger l = { .l_onoff = 1, .l_linger = DBLP_WAIT_MS / 1000 };
	enum { LEN = 200000 };
	static unsigned char buf[LEN];
	struct received r;

	pattern_fill(buf, LEN, 3, 0);
	ASSERT_EQ(0, setsockopt(self->tx, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	ASSERT_EQ(LEN, dblp_send(self->tx, &self->to, buf, LEN, NULL));
	ASSERT_EQ(0, close(self->tx));
	self->tx = -1;
	/* So it is there now, without waiting. */
	ASSERT_EQ(LEN, dblp_recv(self->rx, buf, LEN, MSG_DONTWAIT, &r));
	EXPECT_EQ(0, pattern_diff(buf, LEN, 3, 0));
}

/* A path that loses chosen segments. */
FIXTURE(holes)
{
	int tx, rx;
	union address to;
	struct proxy *path;
	unsigned char *buf;
	size_t seg;
};

#define NSEGS	16
#define ROOM	(20 << 20)

FIXTURE_SETUP(holes)
{
	union address from;
	struct received r;

	ASSERT_TRUE(netns_enter());
	ASSERT_TRUE(loopback_mtu(1500));
	self->tx = dblp_open_bound(AF_INET, &from);
	ASSERT_GE(self->tx, 0);
	self->rx = dblp_open_bound(AF_INET, &self->to);
	ASSERT_GE(self->rx, 0);
	ASSERT_TRUE(set_buffers(self->tx, 4 * ROOM));
	ASSERT_TRUE(set_buffers(self->rx, 4 * ROOM));
	self->path = malloc(sizeof(*self->path));
	self->buf = malloc(ROOM);
	ASSERT_TRUE(self->path && self->buf);
	ASSERT_TRUE(proxy_start(self->path, &self->to));
	/* The first message tells how long a segment is on this path. */
	ASSERT_EQ(1, dblp_send(self->tx, &self->path->front, "x", 1, NULL));
	ASSERT_EQ(1, dblp_recv_wait(self->rx, self->buf, 1, &r));
	self->seg = r.info.seg_size;
	ASSERT_EQ(0, set_int(self->tx, SOL_DBLP, DBLP_SO_COMPLETIONS, 1));
	memset(self->path->seen, 0, sizeof(self->path->seen));
}

FIXTURE_TEARDOWN(holes)
{
	proxy_stop(self->path);
	close(self->tx);
	close(self->rx);
}

static uint64_t map[DBLP_MAX_SEGMENTS / 64];

/* Keeps the map of @r, which the next message overwrites. */
static size_t map_keep(const struct received *r)
{
	memset(map, 0, sizeof(map));
	memcpy(map, r->map, r->map_words * 8);
	return r->map_words;
}

/*
 * Sends @len bytes over the path, and checks all that both ends say about it against
 * each other.  Returns the number of missing segments, or a negative line number.
 */
#define CHECK(cond) do { if (!(cond)) return -__LINE__; } while (0)
static int transfer(FIXTURE_DATA(holes) *self, size_t len, const struct send_extra *x,
		    struct received *r, struct received *c)
{
	uint32_t nsegs = (len + self->seg - 1) / self->seg, i, bits = 0;
	size_t words = 0, bytes = 0;
	bool has_map;

	pattern_fill(self->buf, len, len, 0);
	CHECK(dblp_send(self->tx, &self->path->front, self->buf, len, x) == (ssize_t)len);
	memset(self->buf, 0xee, len);
	CHECK(dblp_recv_wait(self->rx, self->buf, len, r) == (ssize_t)len);
	CHECK(!(r->flags & (MSG_TRUNC | MSG_CTRUNC)));
	CHECK(r->has_info && r->info.nr_segs == nsegs && r->info.seg_size == self->seg);
	CHECK(r->has_map == (r->info.missing_segs > 0));
	has_map = r->has_map;
	if (has_map) {
		CHECK(r->map_segs == nsegs && r->map_seg_size == self->seg);
		CHECK(r->map_words == (nsegs + 63) / 64);
		for (i = 0; i < nsegs; i++) {
			if (!map_test(r->map, i))
				continue;
			bits++;
			bytes += len - i * self->seg < self->seg ? len - i * self->seg : self->seg;
		}
		CHECK(bits == r->info.missing_segs);
		CHECK(bytes == r->info.missing_bytes);
		words = map_keep(r);
	}
	CHECK(r->info.missing_bytes <= r->info.allowed_bytes);
	CHECK(message_diff(self->buf, len, len, r, 0) == 0);

	CHECK(completion(self->tx, c));
	CHECK(c->done.outcome == DBLP_OUTCOME_OK);
	CHECK(c->done.msg_id == r->info.msg_id);
	CHECK(c->done.len == len && c->done.nr_segs == nsegs && c->done.seg_size == self->seg);
	CHECK(c->done.missing_bytes == r->info.missing_bytes);
	CHECK(c->done.missing_segs == r->info.missing_segs);
	CHECK(c->has_map == has_map);
	if (has_map) {
		CHECK(c->map_segs == nsegs && c->map_words == words);
		CHECK(!memcmp(c->map, map, words * 8));
	}
	return r->info.missing_segs;
}

TEST_F(holes, none)
{
	struct dblp_send_params p = { .tolerance_ppm = 500000 };
	struct send_extra x = { .params = &p };
	struct received r, c;

	ASSERT_EQ(0, transfer(self, NSEGS * self->seg, &x, &r, &c));
	EXPECT_EQ(0, c.done.lost_segs);
	EXPECT_EQ(NSEGS * self->seg, c.done.sent_bytes);
	EXPECT_EQ(0, c.done.retransmitted_bytes);
}

/* What is lost within the bound stays lost, exactly. */
TEST_F(holes, within_bound)
{
	struct dblp_send_params p = { .tolerance_ppm = 250000 };
	struct send_extra x = { .params = &p };
	struct received r, c;

	self->path->lose_first[3] = true;
	self->path->lose_first[7] = true;
	self->path->lose_first[15] = true;
	ASSERT_EQ(3, transfer(self, NSEGS * self->seg - 5, &x, &r, &c));
	EXPECT_EQ(1ULL << 3 | 1ULL << 7 | 1ULL << 15, map[0]);
	EXPECT_EQ(3 * self->seg - 5, r.info.missing_bytes);
	EXPECT_EQ(0, c.done.retransmitted_bytes);
	/* As far as known: the verdict may come before the last loss is found. */
	EXPECT_LE(c.done.lost_segs, 3);
	EXPECT_EQ(3, self->path->lost);
}

/* What is lost beyond the bound is sent again, and not all of it. */
TEST_F(holes, beyond_bound)
{
	struct dblp_send_params p = { .tolerance_ppm = 125000 };
	struct send_extra x = { .params = &p };
	struct received r, c;
	int i, missing;

	for (i = 0; i < 6; i++)
		self->path->lose_first[2 * i + 1] = true;
	missing = transfer(self, NSEGS * self->seg, &x, &r, &c);
	ASSERT_GE(missing, 0) TH_LOG("line %d", -missing);
	EXPECT_LE(missing, 2);
	EXPECT_EQ(0, map[0] & ~0xaaaULL);
	EXPECT_EQ(2 * self->seg, r.info.allowed_bytes);
	EXPECT_GE(c.done.retransmitted_bytes, 4 * self->seg);
	EXPECT_GE(c.done.lost_segs, 4);
	EXPECT_LE(c.done.lost_segs, 6);
}

TEST_F(holes, reliable)
{
	struct received r, c;
	int i;

	for (i = 0; i < NSEGS; i++)
		self->path->lose_first[i] = true;
	ASSERT_EQ(0, transfer(self, NSEGS * self->seg, NULL, &r, &c));
	EXPECT_GE(c.done.retransmitted_bytes, NSEGS * self->seg);
	EXPECT_GE(self->path->lost, NSEGS);
}

TEST_F(holes, protect)
{
	struct dblp_send_params p = { .tolerance_ppm = 500000 };
	struct dblp_range ranges[] = {
		{ 9 * self->seg + 1, 1 },
		{ 4 * self->seg + self->seg / 2, self->seg },	/* segments 4 and 5 */
	};
	struct send_extra x = { .params = &p, .ranges = ranges, .nranges = 2 };
	struct received r, c;

	self->path->lose_first[4] = true;
	self->path->lose_first[5] = true;
	self->path->lose_first[6] = true;
	self->path->lose_first[9] = true;
	ASSERT_EQ(1, transfer(self, NSEGS * self->seg, &x, &r, &c));
	EXPECT_EQ(1ULL << 6, map[0]);
	EXPECT_GE(c.done.retransmitted_bytes, 3 * self->seg);
}

TEST_F(holes, ordered)
{
	struct dblp_send_params p = {
		.tolerance_ppm = 250000, .flags = DBLP_SEND_ORDERED,
	};
	struct send_extra x = { .params = &p };
	struct received r, c;

	self->path->lose_first[0] = true;
	self->path->lose_first[NSEGS - 1] = true;
	ASSERT_EQ(2, transfer(self, NSEGS * self->seg, &x, &r, &c));
	EXPECT_EQ(1ULL | 1ULL << (NSEGS - 1), map[0]);
}

TEST_F(holes, eager)
{
	struct dblp_send_params p = { .tolerance_ppm = 500000, .mode = DBLP_MODE_EAGER };
	struct send_extra x = { .params = &p };
	struct received r, c;
	int missing;

	self->path->lose_first[1] = true;
	missing = transfer(self, 4 * NSEGS * self->seg, &x, &r, &c);
	ASSERT_GE(missing, 0) TH_LOG("line %d", -missing);
	EXPECT_LE(missing, 2 * NSEGS);
	EXPECT_EQ(0, c.done.retransmitted_bytes);
}

/* The path gives everything twice: the application gets it once. */
TEST_F(holes, duplicates)
{
	struct counters before, after;
	struct received r, c;

	self->path->duplicate = true;
	ASSERT_TRUE(counters_read(&before));
	ASSERT_EQ(0, transfer(self, NSEGS * self->seg, NULL, &r, &c));
	EXPECT_EQ(-1, dblp_recv(self->rx, self->buf, 100, MSG_DONTWAIT, &r));
	EXPECT_EQ(-1, dblp_recv(self->tx, self->buf, 100, MSG_DONTWAIT, &r));
	ASSERT_TRUE(counters_read(&after));
	EXPECT_GE(counter_delta(&before, &after, DBLP_REJECT "dup_packet"), NSEGS);
}

TEST_F(holes, keep)
{
	struct dblp_send_params p = { .tolerance_ppm = 250000 };
	struct send_extra x = { .params = &p };
	size_t len = NSEGS * self->seg;
	struct received r;

	ASSERT_EQ(0, set_int(self->rx, SOL_DBLP, DBLP_SO_HOLES, DBLP_HOLES_KEEP));
	self->path->lose_first[2] = true;
	self->path->lose_first[3] = true;
	pattern_fill(self->buf, len, 1, 0);
	ASSERT_EQ(len, dblp_send(self->tx, &self->path->front, self->buf, len, &x));
	memset(self->buf, 0xee, len);
	ASSERT_EQ(len, dblp_recv_wait(self->rx, self->buf, len, &r));
	EXPECT_TRUE(r.info.flags & DBLP_RECV_UNTOUCHED);
	ASSERT_TRUE(r.has_map);
	EXPECT_EQ(0xcULL, r.map[0]);
	EXPECT_EQ(0, message_diff(self->buf, len, 1, &r, 0xee));
}

/* Peeked at and read in part, holes are where they are. */
TEST_F(holes, read_in_part)
{
	struct dblp_send_params p = { .tolerance_ppm = 250000 };
	struct send_extra x = { .params = &p };
	size_t len = NSEGS * self->seg, part = 2 * self->seg + 100;
	struct received r;

	self->path->lose_first[2] = true;
	pattern_fill(self->buf, len, 1, 0);
	ASSERT_EQ(len, dblp_send(self->tx, &self->path->front, self->buf, len, &x));
	memset(self->buf, 0xee, len);
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(len, dblp_recv(self->rx, self->buf, len, MSG_PEEK, &r));
	EXPECT_EQ(0, message_diff(self->buf, len, 1, &r, 0));
	memset(self->buf, 0xee, len);
	ASSERT_EQ(part, dblp_recv(self->rx, self->buf, part, 0, &r));
	EXPECT_TRUE(r.flags & MSG_TRUNC);
	ASSERT_TRUE(r.has_map);
	EXPECT_EQ(0, message_diff(self->buf, part, 1, &r, 0));
	EXPECT_EQ(0xee, self->buf[part]);
}

TEST_F(holes, map_truncated)
{
	struct dblp_send_params p = { .tolerance_ppm = 250000 };
	struct send_extra x = { .params = &p };
	size_t len = NSEGS * self->seg;
	union {
		struct cmsghdr h;
		unsigned char b[512];
	} c = { };
	struct iovec iov = { self->buf, len };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c,
		.msg_controllen = CMSG_SPACE(sizeof(struct dblp_recv_info)) +
				  CMSG_LEN(sizeof(struct dblp_map)),
	};
	struct received r = { };

	self->path->lose_first[2] = true;
	pattern_fill(self->buf, len, 1, 0);
	ASSERT_EQ(len, dblp_send(self->tx, &self->path->front, self->buf, len, &x));
	memset(self->buf, 0xee, len);
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(len, recvmsg(self->rx, &m, 0));
	EXPECT_TRUE(m.msg_flags & MSG_CTRUNC);
	EXPECT_FALSE(m.msg_flags & MSG_TRUNC);
	map[0] = 1ULL << 2;
	r.has_map = true;
	r.map = map;
	r.map_seg_size = self->seg;
	EXPECT_EQ(0, message_diff(self->buf, len, 1, &r, 0));
}

/* A map of several parts, in both encodings: few holes here, many there. */
TEST_F_TIMEOUT(holes, large_map, 300)
{
	struct dblp_send_params p = { .tolerance_ppm = 200000 };
	struct send_extra x = { .params = &p };
	size_t nsegs = 8192 + 300;
	struct received r, c;
	int missing;

	self->path->period = 9;
	missing = transfer(self, nsegs * self->seg, &x, &r, &c);
	ASSERT_GT(missing, 0) TH_LOG("line %d", -missing);
	EXPECT_GE(missing, nsegs / 9);
	self->path->period = 1000;
	memset(self->path->seen, 0, sizeof(self->path->seen));
	missing = transfer(self, nsegs * self->seg, &x, &r, &c);
	ASSERT_GT(missing, 0) TH_LOG("line %d", -missing);
}

TEST_F(holes, below_by_rounds)
{
	struct dblp_send_params p = { .tolerance_ppm = 100000, .max_rounds = 2, .tag = 5 };
	struct send_extra x = { .params = &p };
	size_t len = NSEGS * self->seg;
	struct received r;
	int i;

	for (i = 0; i < 4; i++)
		self->path->lose_always[i] = true;
	ASSERT_EQ(len, dblp_send(self->tx, &self->path->front, self->buf, len, &x));
	ASSERT_TRUE(completion(self->tx, &r));
	EXPECT_EQ(DBLP_OUTCOME_BELOW, r.done.outcome);
	EXPECT_EQ(0, r.done.error);
	EXPECT_EQ(5, r.done.tag);
	EXPECT_EQ(4, r.done.missing_segs);
	EXPECT_EQ(4 * self->seg, r.done.missing_bytes);
	EXPECT_LE(r.done.rounds, 2);
	ASSERT_TRUE(r.has_map);
	EXPECT_EQ(0xfULL, r.map[0]);
	/* The receiver's application sees nothing of it. */
	EXPECT_EQ(-1, dblp_recv(self->rx, self->buf, len, MSG_DONTWAIT, &r));
	EXPECT_EQ(EAGAIN, errno);
}

TEST_F(holes, below_by_deadline)
{
	struct dblp_send_params p = { .deadline_us = 200000 };
	struct send_extra x = { .params = &p };
	size_t len = NSEGS * self->seg;
	struct received r;

	self->path->lose_always[8] = true;
	ASSERT_EQ(len, dblp_send(self->tx, &self->path->front, self->buf, len, &x));
	ASSERT_TRUE(completion(self->tx, &r));
	EXPECT_EQ(DBLP_OUTCOME_BELOW, r.done.outcome);
	EXPECT_GE(r.done.duration_us, 200000);
	ASSERT_TRUE(r.has_map);
	EXPECT_EQ(0x100ULL, r.map[0]);
	EXPECT_EQ(-1, dblp_recv(self->rx, self->buf, len, MSG_DONTWAIT, &r));
}

TEST_F(holes, partial)
{
	struct dblp_send_params p = { .max_rounds = 1, .tag = 6 };
	struct send_extra x = { .params = &p };
	size_t len = NSEGS * self->seg;
	struct received r, c;

	ASSERT_EQ(0, set_int(self->rx, SOL_DBLP, DBLP_SO_PARTIAL, 1));
	self->path->lose_always[1] = true;
	self->path->lose_always[2] = true;
	pattern_fill(self->buf, len, 1, 0);
	ASSERT_EQ(len, dblp_send(self->tx, &self->path->front, self->buf, len, &x));
	memset(self->buf, 0xee, len);
	ASSERT_EQ(len, dblp_recv_wait(self->rx, self->buf, len, &r));
	EXPECT_TRUE(r.info.flags & DBLP_RECV_PARTIAL);
	EXPECT_EQ(6, r.info.tag);
	EXPECT_EQ(2, r.info.missing_segs);
	EXPECT_GT(r.info.missing_bytes, r.info.allowed_bytes);
	ASSERT_TRUE(r.has_map);
	EXPECT_EQ(0x6ULL, r.map[0]);
	EXPECT_EQ(0, message_diff(self->buf, len, 1, &r, 0));
	ASSERT_TRUE(completion(self->tx, &c));
	EXPECT_EQ(DBLP_OUTCOME_BELOW, c.done.outcome);
	ASSERT_TRUE(c.has_map);
	EXPECT_EQ(0x6ULL, c.map[0]);
}

/* Small messages have no tolerance of their own, but share that of their group. */
TEST_F(holes, group)
{
	enum { COUNT = 30, LEN = 1000 };
	struct dblp_send_params p = { .tolerance_ppm = 100000, .group = 4 };
	struct send_extra x = { .params = &p };
	size_t missing = 0;
	struct received r;
	int i;

	self->path->lose_each_message = true;
	self->path->last_message = 1;
	for (i = 1; i <= COUNT; i++) {
		ASSERT_EQ(LEN, dblp_send(self->tx, &self->path->front, self->buf, LEN, &x));
		ASSERT_TRUE(completion(self->tx, &r));
		ASSERT_EQ(DBLP_OUTCOME_OK, r.done.outcome);
		missing += r.done.missing_bytes;
		/* At no moment more than the share of what has been sent. */
		ASSERT_LE(missing, i * LEN / 10);
	}
	EXPECT_EQ(COUNT * LEN / 10, missing);
}

/* The path dies in the middle: UNKNOWN, and how much of it was not acknowledged. */
TEST_F(holes, path_dies)
{
	size_t len = 64 * self->seg;
	uint32_t dead = 500;
	struct received r;

	/* An option holds for flows that are opened after it: a new socket. */
	close(self->tx);
	self->tx = dblp_open(0);
	ASSERT_GE(self->tx, 0);
	ASSERT_EQ(0, set_int(self->tx, SOL_DBLP, DBLP_SO_COMPLETIONS, 1));
	ASSERT_EQ(0, setsockopt(self->tx, SOL_DBLP, DBLP_SO_DEAD_TIME, &dead, sizeof(dead)));
	ASSERT_EQ(1, dblp_send(self->tx, &self->path->front, "x", 1, NULL));
	ASSERT_TRUE(completion(self->tx, &r));
	ASSERT_EQ(DBLP_OUTCOME_OK, r.done.outcome);

	self->path->lose_always[63] = true;
	self->path->passed = 0;
	ASSERT_EQ(len, dblp_send(self->tx, &self->path->front, self->buf, len, NULL));
	while (*(volatile unsigned long *)&self->path->passed < 32)
		poll(NULL, 0, 1);
	*(volatile bool *)&self->path->black_hole = true;
	ASSERT_TRUE(completion(self->tx, &r));
	EXPECT_EQ(DBLP_OUTCOME_UNKNOWN, r.done.outcome);
	EXPECT_EQ(ETIMEDOUT, r.done.error);
	EXPECT_GE(r.done.missing_bytes, self->seg);
	EXPECT_LT(r.done.missing_bytes, len);
	EXPECT_FALSE(r.has_map);
	EXPECT_EQ(address_port(&self->path->front), address_port(&r.peer));
}

TEST_HARNESS_MAIN

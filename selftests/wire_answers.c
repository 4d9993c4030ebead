// SPDX-License-Identifier: GPL-2.0
/*
 * A receiver that breaks the rules of the wire: what it answers to an honest sender
 * moves exactly one counter, and harms no message.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dblp_pkt.h"
#include "dblp_harness.h"

#define L	3000	/* a message of three segments */

static struct pkt p;

FIXTURE(receiver)
{
	struct raw raw;
	int tx;
	uint32_t id;		/* of the message at hand */
	uint32_t seg;		/* the sender's segment size: three to a message */
	struct counters before;
};

/* The honest one sends a message, and the hostile one has its data. */
static bool next_message(FIXTURE_DATA(receiver) *self)
{
	static unsigned char buf[L];
	struct pkt_hdr h;
	size_t at;

	pattern_fill(buf, L, 1, 0);
	raw_drain(&self->raw);
	self->id++;
	if (dblp_send(self->tx, &self->raw.self, buf, L, NULL) != L)
		return false;
	if (self->id == 1 && !raw_accept(&self->raw, DBLP_WAIT_MS))
		return false;
	do {
		at = raw_expect(&self->raw, &p, F_DATA, DBLP_WAIT_MS);
		if (!at || !pkt_hdr_read(p.b + p.start, p.len - p.start, &h))
			return false;
	} while (h.low + get16(p.b + at + 2) != self->id);
	self->raw.low = h.low;
	self->seg = get16(p.b + at + 12);
	/* All of it has been sent once its end is marked. */
	return (L + self->seg - 1) / self->seg == 3 &&
	       raw_expect(&self->raw, &p, F_MARK, DBLP_WAIT_MS);
}

static void answer(FIXTURE_DATA(receiver) *self)
{
	p.len = 0;
	raw_begin(&self->raw, &p);
}

static const char *answered(FIXTURE_DATA(receiver) *self, const char *want)
{
	counters_read(&self->before);
	if (!raw_send(&self->raw, &p))
		return strerror(errno);
	return moved_wait(&self->before, want);
}

/* An ACK with one range: all packets so far. */
static void put_ack(FIXTURE_DATA(receiver) *self, uint32_t largest, unsigned int nranges,
		    unsigned int ndone)
{
	put8(&p, F_ACK);
	put8(&p, nranges);
	put8(&p, ndone);
	put8(&p, 0);
	put32(&p, largest);
	put32(&p, 0);
	put_zero(&p, 12);
	put32(&p, 100000);
}

/* Ends the message at hand as it should be. */
static bool finish(FIXTURE_DATA(receiver) *self)
{
	char buf[256];
	struct received r;

	answer(self);
	put_ack(self, self->raw.seen, 1, 1);
	put16(&p, 0);
	put16(&p, 1);
	put16(&p, self->id - self->raw.low);
	put16(&p, 0);
	return raw_send(&self->raw, &p) &&
	       dblp_recv_wait(self->tx, buf, sizeof(buf), &r) > 0 && r.completion &&
	       r.done.outcome == DBLP_OUTCOME_OK && r.done.msg_id == self->id;
}

FIXTURE_SETUP(receiver)
{
	ASSERT_TRUE(netns_enter());
	ASSERT_TRUE(loopback_mtu(1500));
	self->tx = dblp_open(0);
	ASSERT_GE(self->tx, 0);
	ASSERT_EQ(0, set_int(self->tx, SOL_DBLP, DBLP_SO_COMPLETIONS, 1));
	ASSERT_TRUE(raw_open(&self->raw, AF_INET, 0x1111222233334444));
	self->id = 0;
	ASSERT_TRUE(next_message(self));
	ASSERT_TRUE(finish(self));
	ASSERT_TRUE(next_message(self));
	ASSERT_TRUE(counters_read(&self->before));
}

FIXTURE_TEARDOWN(receiver)
{
	close(self->tx);
	close(self->raw.fd);
}

TEST_F(receiver, acks)
{
	int i;

	for (i = 0; i < 9; i++) {
		answer(self);
		put_ack(self, self->raw.seen + (i == 0 ? 1000 : i == 1 ? 0x40000000 : 0),
			i == 2 ? 0 : i == 3 ? 33 : i == 4 ? 2 : 1, i == 5 ? 17 : 0);
		switch (i) {
		case 2:			/* no range */
			break;
		case 3:			/* more than there may be */
			while (p.len < HDR_LEN + 28 + 33 * 4) {
				put16(&p, p.len == HDR_LEN + 28 ? 0 : 1);
				put16(&p, 1);
			}
			break;
		case 4:			/* ranges that touch: no gap between them */
			put16(&p, 0);
			put16(&p, 1);
			put16(&p, 0);
			put16(&p, 1);
			break;
		case 5:
			put16(&p, 0);
			put16(&p, 1);
			put_zero(&p, 17 * 4);
			break;
		case 6:			/* first gap */
			put16(&p, 1);
			put16(&p, 1);
			break;
		case 7:			/* empty range */
			put16(&p, 0);
			put16(&p, 0);
			break;
		case 8:			/* down below the first number */
			put16(&p, 0);
			put16(&p, 65535);
			break;
		default:
			put16(&p, 0);
			put16(&p, 1);
			break;
		}
		EXPECT_STREQ("ack+1", answered(self, "ack+1")) TH_LOG("case %d", i);
	}
	EXPECT_TRUE(finish(self));
}

/* Ids that were never given out: no harm. */
TEST_F(receiver, done_before_sent)
{
	answer(self);
	put_ack(self, self->raw.seen, 1, 1);
	put16(&p, 0);
	put16(&p, 1);
	put16(&p, 500);
	put16(&p, 0);
	EXPECT_STREQ("", answered(self, ""));
	EXPECT_TRUE(finish(self));
}

static void put_done(uint32_t id, unsigned int verdict, unsigned int parts, uint32_t bytes,
		     uint32_t segs, uint64_t digest)
{
	put8(&p, F_DONE);
	put8(&p, verdict);
	put16(&p, parts);
	put32(&p, id);
	put32(&p, bytes);
	put32(&p, segs);
	put64(&p, digest);
}

static void put_need(uint32_t id, unsigned int enc, unsigned int pass, uint32_t base,
		     unsigned int segs, const void *list, unsigned int len)
{
	put8(&p, F_NEED);
	put8(&p, enc);
	put16(&p, pass);
	put32(&p, id);
	put32(&p, 1000);
	put32(&p, 1);
	put32(&p, 0);
	put32(&p, base);
	put16(&p, segs);
	put16(&p, len);
	put_bytes(&p, list, len);
}

static void put_map(uint32_t id, unsigned int enc, unsigned int part, const void *list,
		    unsigned int len)
{
	put8(&p, F_MAP);
	put8(&p, enc);
	put16(&p, part);
	put32(&p, id);
	put16(&p, len);
	put16(&p, 0);
	put_bytes(&p, list, len);
}

TEST_F(receiver, unknown_messages)
{
	answer(self);
	put_done(self->id + 100, 0, 0, 0, 0, 0);
	EXPECT_STREQ("msg_unknown+1", answered(self, "msg_unknown+1"));
	answer(self);
	put_need(self->id + 100, 0, 1, 0, 3, "\2", 1);
	EXPECT_STREQ("msg_unknown+1", answered(self, "msg_unknown+1"));
	answer(self);
	put_map(self->id + 100, 0, 0, "\2", 1);
	EXPECT_STREQ("msg_unknown+1", answered(self, "msg_unknown+1"));
	answer(self);
	put8(&p, F_REFUSE);
	put8(&p, 1);
	put16(&p, 0);
	put32(&p, self->id + 100);
	put64(&p, 5);
	EXPECT_STREQ("msg_unknown+1", answered(self, "msg_unknown+1"));
	EXPECT_TRUE(finish(self));
}

TEST_F(receiver, wrong_pass)
{
	answer(self);
	put_need(self->id, 0, 7, 0, 3, "\2", 1);
	EXPECT_STREQ("pass+1", answered(self, "pass+1"));
	EXPECT_TRUE(finish(self));
}

TEST_F(receiver, lists)
{
	size_t at;
	int i;

	/* Once it has asked, answers count. */
	at = raw_expect(&self->raw, &p, F_MARK, DBLP_WAIT_MS);
	ASSERT_NE(0, at);
	ASSERT_EQ(1, get16(p.b + at + 2));
	for (i = 0; i < 7; i++) {
		answer(self);
		switch (i) {
		case 0:			/* a bit beyond the message */
			put_need(self->id, 0, 1, 0, 3, "\x08", 1);
			break;
		case 1:			/* base not a multiple of 8 */
			put_need(self->id, 0, 1, 4, 3, "\2", 1);
			break;
		case 2:			/* covers more than there is */
			put_need(self->id, 0, 1, 0, 4, "\2", 1);
			break;
		case 3:			/* ranges backwards */
			put_need(self->id, 1, 1, 0, 3, "\0\2\0\1\0\0\0\1", 8);
			break;
		case 4:			/* empty range */
			put_need(self->id, 1, 1, 0, 3, "\0\0\0\0", 4);
			break;
		case 5:			/* unknown encoding */
			put_need(self->id, 2, 1, 0, 3, "\2", 1);
			break;
		case 6:			/* base beyond the message */
			put_need(self->id, 0, 1, 8, 3, "\2", 1);
			break;
		}
		EXPECT_STREQ("map+1", answered(self, "map+1")) TH_LOG("case %d", i);
	}
	EXPECT_TRUE(finish(self));
}

/* A map that never fits its digest ends the message, and says so. */
TEST_F(receiver, digest)
{
	char buf[256];
	struct received r;
	size_t at;
	int i;

	answer(self);
	put_done(self->id, 1, 1, self->seg, 1, 0x1234);
	EXPECT_STREQ("", answered(self, ""));
	for (i = 1; i <= 8; i++) {
		answer(self);
		put_map(self->id, 0, 0, "\2", 1);
		EXPECT_STREQ("digest+1", answered(self, "digest+1")) TH_LOG("time %d", i);
		if (i == 8)
			break;
		/* It asks anew. */
		do {
			at = raw_expect(&self->raw, &p, F_MARK, DBLP_WAIT_MS);
			ASSERT_NE(0, at);
		} while (!(get64(p.b + at + 8) & 1));
	}
	ASSERT_GT(dblp_recv_wait(self->tx, buf, sizeof(buf), &r), 0);
	ASSERT_TRUE(r.completion);
	EXPECT_EQ(DBLP_OUTCOME_UNKNOWN, r.done.outcome);
	EXPECT_EQ(EBADMSG, r.done.error);
	EXPECT_FALSE(r.has_map);
	/* Only that message.  What it took is no longer in flight. */
	answer(self);
	put_ack(self, self->raw.seen, 1, 0);
	put16(&p, 0);
	put16(&p, 1);
	EXPECT_STREQ("", answered(self, ""));
	ASSERT_TRUE(next_message(self));
	EXPECT_TRUE(finish(self));
}

TEST_F(receiver, wrong_direction)
{
	answer(self);
	put_data(&p, 0, 0, L, 1000, 1000, 1);
	EXPECT_STREQ("direction+1", answered(self, "direction+1"));
	answer(self);
	put_mark(&p, self->id, 1, 0);
	EXPECT_STREQ("direction+1", answered(self, "direction+1"));
	EXPECT_TRUE(finish(self));
}

TEST_F(receiver, wrong_flow_and_address)
{
	struct raw other = self->raw;

	p.len = 0;
	pkt_begin(&p, HDR_REV, 0x31313131, ++self->raw.pn, 1);
	put_done(self->id, 0, 0, 0, 0, 0);
	EXPECT_STREQ("flow+1", answered(self, "flow+1"));

	ASSERT_TRUE(raw_open(&other, AF_INET, 0));
	other.peer = self->raw.peer;
	answer(self);
	put_done(self->id, 1, 0, 0, 0, 0);
	counters_read(&self->before);
	ASSERT_TRUE(raw_send(&other, &p));
	EXPECT_STREQ("addr+1", moved_wait(&self->before, "addr+1"));
	close(other.fd);
	EXPECT_TRUE(finish(self));
}

/* @pn: of the packet that it answers */
static void put_reset(uint64_t flow, uint32_t pn, unsigned int reason)
{
	p.len = 0;
	pkt_begin(&p, HDR_REV, flow, pn, 0);
	put8(&p, F_RESET);
	put8(&p, reason);
	put16(&p, 0);
}

static bool died(FIXTURE_DATA(receiver) *self, int error)
{
	char buf[256];
	struct received r;

	return dblp_recv_wait(self->tx, buf, sizeof(buf), &r) > 0 && r.completion &&
	       r.done.outcome == DBLP_OUTCOME_UNKNOWN && r.done.error == error &&
	       r.done.missing_bytes == L;
}

/* It must name the flow that is not known: a guess does nothing. */
TEST_F(receiver, reset_guessed)
{
	put_reset(self->raw.flow + 1, 0, 2);
	EXPECT_STREQ("flow+1", answered(self, "flow+1"));
	put_reset(self->raw.flow, 0, 0);
	EXPECT_STREQ("value+1", answered(self, "value+1"));
	EXPECT_TRUE(finish(self));
}

TEST_F(receiver, reset_closed)
{
	put_reset(self->raw.flow, 0, 2);
	EXPECT_STREQ("", answered(self, ""));
	EXPECT_TRUE(died(self, ECONNRESET));
}

TEST_F(receiver, reset_protocol)
{
	put_reset(self->raw.flow, 0, 3);
	EXPECT_STREQ("", answered(self, ""));
	EXPECT_TRUE(died(self, EPROTO));
}

/* What overtook the handshake was not known then, and the answer to it may be late. */
TEST_F(receiver, reset_unknown)
{
	put_reset(self->raw.flow, 1, 1);
	EXPECT_STREQ("reset_late+1", answered(self, "reset_late+1"));
	/* Of what was never sent nobody can say anything. */
	put_reset(self->raw.flow, self->raw.seen + 1000, 1);
	EXPECT_STREQ("reset_late+1", answered(self, "reset_late+1"));
	EXPECT_TRUE(finish(self));
	ASSERT_TRUE(next_message(self));
	put_reset(self->raw.flow, self->raw.seen, 1);
	EXPECT_STREQ("", answered(self, ""));
	EXPECT_TRUE(died(self, ECONNRESET));
}

TEST_F(receiver, undefined_values)
{
	answer(self);
	put_done(self->id, 2, 0, 0, 0, 0);
	EXPECT_STREQ("value+1", answered(self, "value+1"));
	answer(self);
	put8(&p, F_BUDGET);
	put8(&p, 3);
	put16(&p, 0);
	put32(&p, self->id);
	put32(&p, 0);
	EXPECT_STREQ("value+1", answered(self, "value+1"));
	answer(self);
	put8(&p, F_REFUSE);
	put8(&p, 2);
	put16(&p, 0);
	put32(&p, self->id);
	put64(&p, 5);
	EXPECT_STREQ("value+1", answered(self, "value+1"));
	/* Verdicts that contradict themselves or the bound. */
	answer(self);
	put_done(self->id, 0, 1, self->seg, 1, 0x1234);
	EXPECT_STREQ("map+1", answered(self, "map+1"));
	answer(self);
	put_done(self->id, 1, 0, self->seg, 1, 0x1234);
	EXPECT_STREQ("map+1", answered(self, "map+1"));
	answer(self);
	put_done(self->id, 1, 1, 0, 1, 0x1234);
	EXPECT_STREQ("map+1", answered(self, "map+1"));
	answer(self);
	put_done(self->id, 1, 1, L, 4, 0x1234);
	EXPECT_STREQ("map+1", answered(self, "map+1"));
	answer(self);
	put_done(self->id, 1, 1, L + 1, 3, 0x1234);
	EXPECT_STREQ("map+1", answered(self, "map+1"));
	answer(self);
	put_done(self->id, 1, 64, 1, 1, 0x1234);
	EXPECT_STREQ("map+1", answered(self, "map+1"));
	EXPECT_TRUE(finish(self));
}

TEST_F(receiver, refusal)
{
	char buf[256];
	struct received r;

	answer(self);
	put8(&p, F_REFUSE);
	put8(&p, 1);
	put16(&p, 0);
	put32(&p, self->id);
	put64(&p, 2999);
	EXPECT_STREQ("", answered(self, ""));
	ASSERT_GT(dblp_recv_wait(self->tx, buf, sizeof(buf), &r), 0);
	EXPECT_EQ(DBLP_OUTCOME_REFUSED, r.done.outcome);
	EXPECT_EQ(2999, r.done.limit);
}

TEST_F(receiver, replay)
{
	answer(self);
	put_ack(self, self->raw.seen, 1, 0);
	put16(&p, 0);
	put16(&p, 1);
	EXPECT_STREQ("", answered(self, ""));
	EXPECT_STREQ("dup_packet+1", answered(self, "dup_packet+1"));
	EXPECT_TRUE(finish(self));
}

TEST_HARNESS_MAIN

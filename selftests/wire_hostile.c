// SPDX-License-Identifier: GPL-2.0
/*
 * A sender that breaks the rules of the wire.  Each known offence moves exactly its
 * counter, and an honest flow to the same socket does not notice.
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
#define S	1000
#define BYSTANDER_TAG	0x62797374616e6465

static struct pkt p;

/* A hostile sender, an honest one, and the socket that hears both. */
FIXTURE(sender)
{
	struct raw raw;
	int rx, honest;
	union address to;
	uint32_t id;		/* of the message at hand; nothing below is held */
	struct counters before;
};

static bool honest_works(FIXTURE_DATA(sender) *self)
{
	struct dblp_send_params params = { .tag = BYSTANDER_TAG };
	struct send_extra x = { .params = &params };
	static unsigned char buf[100000];
	struct received r;

	pattern_fill(buf, 5000, 1, 0);
	if (dblp_send(self->honest, &self->to, buf, 5000, &x) != 5000)
		return false;
	/* What the hostile one completed comes first. */
	while (dblp_recv_wait(self->rx, buf, sizeof(buf), &r) >= 0)
		if (r.info.tag == BYSTANDER_TAG)
			return r.len == 5000 && !pattern_diff(buf, 5000, 1, 0);
	return false;
}

FIXTURE_SETUP(sender)
{
	ASSERT_TRUE(netns_enter());
	self->rx = dblp_open_bound(AF_INET, &self->to);
	ASSERT_GE(self->rx, 0);
	self->honest = dblp_open(0);
	ASSERT_GE(self->honest, 0);
	ASSERT_TRUE(raw_open(&self->raw, AF_INET, 0x1111222233334444));
	self->raw.peer = self->to;
	ASSERT_TRUE(honest_works(self));
	ASSERT_TRUE(raw_connect(&self->raw));
	self->id = 1;
	ASSERT_TRUE(quiet());
	ASSERT_TRUE(counters_read(&self->before));
}

FIXTURE_TEARDOWN(sender)
{
	EXPECT_TRUE(honest_works(self)) TH_LOG("the honest flow was disturbed");
	close(self->rx);
	close(self->honest);
	close(self->raw.fd);
}

/* Starts a packet about a new message. */
static void begin(FIXTURE_DATA(sender) *self)
{
	self->raw.low = ++self->id;
	p.len = 0;
	raw_begin(&self->raw, &p);
}

/* Starts another packet about the same message. */
static void again(FIXTURE_DATA(sender) *self)
{
	p.len = 0;
	raw_begin(&self->raw, &p);
}

static struct desc desc_of(FIXTURE_DATA(sender) *self)
{
	return (struct desc){ .id = self->id, .len = L, .size = S };
}

/* Sends what was built and names what it moved. */
static const char *verdict(FIXTURE_DATA(sender) *self, const char *want)
{
	counters_read(&self->before);
	if (!raw_send(&self->raw, &p))
		return strerror(errno);
	return moved_wait(&self->before, want);
}

TEST_F(sender, packets)
{
	static const struct {
		const char *want;
		unsigned int at, value, bytes;	/* what to write where in the header */
	} cases[] = {
		{ "version+1", 0, 0x00, 1 },
		{ "version+1", 0, 0x20, 1 },
		{ "version+1", 0, 0xf0, 1 },
		{ "reserved+1", 0, 0x18, 1 },
		{ "crypto+1", 0, 0x12, 1 },
		{ "crypto+1", 0, 0x14, 1 },
		{ "path+1", 1, 1, 1 },
		{ "path+1", 1, 255, 1 },
		{ "length+1", 2, 0, 2 },
		{ "length+1", 2, 19, 2 },
		{ "length+1", 2, 25, 2 },
		{ "length+1", 2, 0xffff, 2 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(self);
		put8(&p, F_PING);
		put_zero(&p, 3);
		pkt_end(&p);
		if (cases[i].bytes == 1)
			p.b[cases[i].at] = cases[i].value;
		else
			set16(p.b + cases[i].at, cases[i].value);
		counters_read(&self->before);
		ASSERT_EQ((ssize_t)p.len, sendto(self->raw.fd, p.b, p.len, 0, &self->to.sa,
					address_len(&self->to)));
		EXPECT_STREQ(cases[i].want, moved_wait(&self->before, cases[i].want))
			TH_LOG("case %zu", i);
	}
}

TEST_F(sender, datagram_too_short)
{
	size_t n;

	for (n = 1; n < HDR_LEN; n += 6) {
		begin(self);
		p.len = n;
		EXPECT_STREQ("truncated+1", verdict(self, "truncated+1")) TH_LOG("%zu", n);
	}
}

/* A bad packet does not hide the good one behind it in the datagram. */
TEST_F(sender, packet_behind_bad_one)
{
	begin(self);
	put8(&p, F_PING);
	put_zero(&p, 3);
	pkt_end(&p);
	p.b[1] = 7;
	raw_begin(&self->raw, &p);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("path+1", verdict(self, "path+1"));
	again(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("dup_segment+1", verdict(self, "dup_segment+1"));
}

TEST_F(sender, unknown_flow)
{
	size_t at;

	p.len = 0;
	pkt_begin(&p, 0, 0x4242424242424242, 77, 1);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("flow+1", verdict(self, "flow+1"));
	at = raw_expect(&self->raw, &p, F_RESET, DBLP_WAIT_MS);
	ASSERT_NE(0, at);
	EXPECT_EQ(0x4242424242424242, get64(p.b + p.start + 4));
	EXPECT_EQ(77, get32(p.b + p.start + 12));
	EXPECT_EQ(1, p.b[at + 1]);
	EXPECT_LE(p.len, HDR_LEN + 4);
	/* A RESET is never answered by one. */
	p.len = 0;
	pkt_begin(&p, 0, 0x4242424242424243, 1, 1);
	put8(&p, F_RESET);
	put8(&p, 1);
	put16(&p, 0);
	raw_send(&self->raw, &p);
	EXPECT_EQ(0, raw_expect(&self->raw, &p, F_RESET, 100));
}

TEST_F(sender, resets_are_limited)
{
	enum { COUNT = 5000 };
	struct counters after;
	long long resets, held;
	int i;

	for (i = 0; i < COUNT; i++) {
		p.len = 0;
		pkt_begin(&p, 0, 0x4242424200000000 + i, 1, 1);
		put8(&p, F_PING);
		put_zero(&p, 3);
		ASSERT_TRUE(raw_send(&self->raw, &p));
	}
	ASSERT_TRUE(counter_wait(DBLP_REJECT "flow", COUNT));
	ASSERT_TRUE(counters_read(&after));
	resets = counter_delta(&self->before, &after, "resets_sent");
	held = counter_delta(&self->before, &after, DBLP_REJECT "reset_rate");
	EXPECT_EQ(COUNT, resets + held);
	EXPECT_GT(resets, 0);
	EXPECT_GT(held, COUNT / 2);
}

TEST_F(sender, wrong_address)
{
	struct raw other = self->raw;

	ASSERT_TRUE(raw_open(&other, AF_INET, 5));
	other.peer = self->raw.peer;
	other.peer_flow = self->raw.peer_flow;
	p.len = 0;
	pkt_begin(&p, 0, other.peer_flow, 100, 1);
	put_data(&p, 0, 0, L, S, S, 1);
	counters_read(&self->before);
	ASSERT_TRUE(raw_send(&other, &p));
	EXPECT_STREQ("addr+1", moved_wait(&self->before, "addr+1"));
	close(other.fd);
}

TEST_F(sender, wrong_direction)
{
	static const struct {
		unsigned int type, len;
	} cases[] = {
		{ F_ACK, 32 }, { F_DONE, 24 }, { F_NEED, 29 }, { F_MAP, 13 },
		{ F_BUDGET, 12 }, { F_REFUSE, 16 }, { F_ACCEPT, 16 },
	};
	size_t i, start;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(self);
		start = p.len;
		put8(&p, cases[i].type);
		put_zero(&p, cases[i].len - 1);
		switch (cases[i].type) {
		case F_ACK:	/* one range, as long as it claims */
			p.b[start + 1] = 1;
			p.b[start + 31] = 1;
			break;
		case F_NEED:
			p.b[start + 25] = 8;
			p.b[start + 27] = 1;
			break;
		case F_MAP:
			p.b[start + 9] = 1;
			break;
		case F_BUDGET:
		case F_REFUSE:
			p.b[start + 1] = 1;
			break;
		}
		EXPECT_STREQ("direction+1", verdict(self, "direction+1"))
			TH_LOG("frame %u", cases[i].type);
	}
}

TEST_F(sender, frame_type)
{
	static const unsigned char types[] = { 18, 100, 255 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		begin(self);
		put_data(&p, 0, 0, L, S, S, 1);
		put8(&p, types[i]);
		put_data(&p, 0, 1, L, S, S, 1);
		EXPECT_STREQ("frame_type+1", verdict(self, "frame_type+1"));
		/* What came before it stands, what came after it does not. */
		again(self);
		put_data(&p, 0, 1, L, S, S, 1);
		put_data(&p, 0, 0, L, S, S, 1);
		EXPECT_STREQ("dup_segment+1", verdict(self, "dup_segment+1"));
	}
}

TEST_F(sender, replay)
{
	begin(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	EXPECT_STREQ("dup_packet+1", verdict(self, "dup_packet+1"));
	EXPECT_STREQ("dup_packet+1", verdict(self, "dup_packet+1"));
	/* The same segment in a packet of its own is another thing. */
	again(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("dup_segment+1", verdict(self, "dup_segment+1"));
}

TEST_F(sender, data_fields)
{
	static const struct {
		const char *want;
		uint32_t delta, seg, len, size, payload;
	} cases[] = {
		{ "segment+1", 0, 3, L, S, S },
		{ "segment+1", 0, ~0U, L, S, S },
		{ "segment+1", 0, 1, 100, 100, 100 },
		{ "msg_len+1", 0, 0, 0, S, 0 },
		{ "msg_len+1", 0, 0, DBLP_MAX_MESSAGE + 1, 8000, 8000 },
		{ "msg_len+1", 0, 0, ~0U, 8000, 8000 },
		{ "seg_size+1", 0, 0, L, 0, 0 },
		{ "seg_size+1", 0, 0, 10, 15, 10 },
		{ "seg_size+1", 0, 0, L, 508, 508 },
		{ "seg_size+1", 0, 0, L, 1002, 1002 },
		{ "seg_size+1", 0, 0, 100000, 8964, 8964 },
		{ "seg_size+1", 0, 0, 100000, 65532, 1000 },
		{ "seg_size+1", 0, 0, DBLP_MAX_MESSAGE, 1020, 1020 },
		{ "id_window+1", 1024, 0, L, S, S },
		{ "id_window+1", 65535, 0, L, S, S },
		{ "truncated+1", 0, 0, L, S, S - 1 },
		{ "truncated+1", 0, 0, L, S, 0 },
		{ "truncated+1", 0, 2, L, S, 999 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(self);
		put_data(&p, cases[i].delta, cases[i].seg, cases[i].len, cases[i].size,
			 cases[i].payload, 1);
		EXPECT_STREQ(cases[i].want, verdict(self, cases[i].want))
			TH_LOG("case %zu", i);
	}
}

TEST_F(sender, data_reserved)
{
	static const unsigned char at[] = { 1, 14, 15 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		begin(self);
		put_data(&p, 0, 0, L, S, S, 1);
		p.b[HDR_LEN + at[i]] = 1;
		EXPECT_STREQ("reserved+1", verdict(self, "reserved+1")) TH_LOG("%u", at[i]);
	}
}

TEST_F(sender, other_reserved)
{
	static const struct {
		unsigned int type, len, at;
	} cases[] = {
		{ F_MARK, 20, 1 }, { F_PING, 4, 1 }, { F_PING, 4, 3 },
		{ F_FIN, 4, 2 }, { F_PAD, 50, 49 }, { F_PAD, 2, 1 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(self);
		put8(&p, cases[i].type);
		put_zero(&p, cases[i].len - 1);
		if (cases[i].type == F_FIN)
			p.b[HDR_LEN + 1] = 1;
		p.b[HDR_LEN + cases[i].at] = 1;
		EXPECT_STREQ("reserved+1", verdict(self, "reserved+1")) TH_LOG("case %zu", i);
	}
}

/* Every frame, cut anywhere: never read beyond. */
TEST_F(sender, cut_frames)
{
	struct desc d = { .len = L, .size = S, .nranges = 2, .range = { { 0, 1 }, { 2, 1 } } };
	unsigned int type;
	size_t len, full;

	for (type = F_DESC; type <= F_FIN; type++) {
		if (type == F_ACK || type == F_NEED || type == F_MAP)
			continue;	/* their lists are cut below */
		p.len = HDR_LEN;
		if (type == F_DESC) {
			put_desc(&p, &d);
		} else {
			put8(&p, type);
			put_zero(&p, 60);
		}
		full = frame_len(p.b, HDR_LEN, p.len);
		ASSERT_NE(0, full);
		for (len = 1; len < full; len += len < 4 ? 1 : 7) {
			begin(self);
			if (type == F_DESC) {
				d.id = self->id;
				put_desc(&p, &d);
			} else {
				put8(&p, type);
				put_zero(&p, 60);
			}
			p.len = HDR_LEN + len;
			EXPECT_STREQ("truncated+1", verdict(self, "truncated+1"))
				TH_LOG("frame %u cut to %zu", type, len);
		}
	}
	/* Lists that are longer than the packet. */
	begin(self);
	put8(&p, F_ACK);
	put8(&p, 32);
	put8(&p, 16);
	put_zero(&p, 25 + 4 * 48 - 1);
	EXPECT_STREQ("truncated+1", verdict(self, "truncated+1"));
	begin(self);
	put8(&p, F_MAP);
	put_zero(&p, 7);
	put16(&p, 1000);
	put_zero(&p, 999 + 2);
	EXPECT_STREQ("truncated+1", verdict(self, "truncated+1"));
	begin(self);
	put8(&p, F_NEED);
	put_zero(&p, 23);
	put16(&p, 65535);
	put16(&p, 65535);
	put_zero(&p, 500);
	EXPECT_STREQ("truncated+1", verdict(self, "truncated+1"));
}

TEST_F(sender, mismatch)
{
	struct desc d;

	begin(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	again(self);
	put_data(&p, 0, 1, L + 1, S, S, 1);
	EXPECT_STREQ("msg_mismatch+1", verdict(self, "msg_mismatch+1"));
	again(self);
	put_data(&p, 0, 1, L, 1004, 1004, 1);
	EXPECT_STREQ("msg_mismatch+1", verdict(self, "msg_mismatch+1"));
	again(self);
	d = desc_of(self);
	d.len++;
	put_desc(&p, &d);
	EXPECT_STREQ("msg_mismatch+1", verdict(self, "msg_mismatch+1"));
	/* The right one is taken, and again; another one is not. */
	again(self);
	d.len = L;
	d.ppm = 1000;
	d.allow = 3;
	put_desc(&p, &d);
	EXPECT_STREQ("", verdict(self, ""));
	again(self);
	put_desc(&p, &d);
	EXPECT_STREQ("", verdict(self, ""));
	again(self);
	d.allow = L;
	put_desc(&p, &d);
	EXPECT_STREQ("msg_mismatch+1", verdict(self, "msg_mismatch+1"));
}

/* The flow was given up: RESET says so, once for every packet that still comes. */
static bool given_up(FIXTURE_DATA(sender) *self)
{
	size_t at = raw_expect(&self->raw, &p, F_RESET, DBLP_WAIT_MS);

	if (!at || get64(p.b + p.start + 4) != self->raw.peer_flow || p.b[at + 1] != 3)
		return false;
	again(self);
	put_data(&p, 0, 0, L, S, S, 1);
	return !strcmp("closed+1", verdict(self, "closed+1")) &&
	       raw_expect(&self->raw, &p, F_RESET, DBLP_WAIT_MS);
}

TEST_F(sender, contradictions_end_the_flow)
{
	int i;

	begin(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	for (i = 0; i < 8; i++) {
		again(self);
		put_data(&p, 0, 1, L + 1, S, S, 1);
		EXPECT_STREQ("msg_mismatch+1", verdict(self, "msg_mismatch+1"));
	}
	EXPECT_TRUE(given_up(self));
}

TEST_F(sender, low_that_falls)
{
	begin(self);
	self->raw.low += 5;
	again(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	self->raw.low--;
	again(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("low+1", verdict(self, "low+1"));
	EXPECT_TRUE(given_up(self));
}

TEST_F(sender, desc_fields)
{
	struct desc d;
	int i;

	for (i = 0; i < 9; i++) {
		begin(self);
		d = desc_of(self);
		d.nranges = 2;
		d.range[0][1] = 1;
		d.range[1][0] = 1;
		d.range[1][1] = 1;
		switch (i) {
		case 0:
			d.mode = 2;
			break;
		case 1:
			d.ppm = DBLP_PPM + 1;
			break;
		case 2:
			d.allow = L + 1;
			break;
		case 3:
			d.nranges = 33;
			break;
		case 4:			/* overlap */
			d.range[0][1] = 2;
			break;
		case 5:			/* descending */
			d.range[0][0] = 2;
			break;
		case 6:			/* beyond the message */
			d.range[1][1] = 3;
			break;
		case 7:			/* wraps */
			d.range[1][1] = ~0U;
			break;
		case 8:			/* empty */
			d.range[1][1] = 0;
			break;
		}
		put_desc(&p, &d);
		EXPECT_STREQ("desc+1", verdict(self, "desc+1")) TH_LOG("case %d", i);
	}
	begin(self);
	d = desc_of(self);
	d.flags = 0x80;
	put_desc(&p, &d);
	EXPECT_STREQ("reserved+1", verdict(self, "reserved+1"));
	begin(self);
	d = desc_of(self);
	d.len = 0;
	put_desc(&p, &d);
	EXPECT_STREQ("msg_len+1", verdict(self, "msg_len+1"));
	begin(self);
	d = desc_of(self);
	d.size = 13;
	put_desc(&p, &d);
	EXPECT_STREQ("seg_size+1", verdict(self, "seg_size+1"));
}

/* There is nothing to judge: the sender has to start again. */
TEST_F(sender, never_described)
{
	size_t at;

	begin(self);
	put_mark(&p, self->id, 1, 0);
	EXPECT_STREQ("no_desc+1", verdict(self, "no_desc+1"));
	at = raw_expect(&self->raw, &p, F_BUDGET, DBLP_WAIT_MS);
	ASSERT_NE(0, at);
	EXPECT_EQ(1, p.b[at + 1]);
	EXPECT_EQ(self->id, get32(p.b + at + 4));
	begin(self);
	put_close(&p, self->id, 1, 0);
	EXPECT_STREQ("no_desc+1", verdict(self, "no_desc+1"));
}

TEST_F(sender, undefined_values)
{
	begin(self);
	put_close(&p, self->id, 0, 0);
	EXPECT_STREQ("value+1", verdict(self, "value+1"));
	begin(self);
	put_close(&p, self->id, 4, 0);
	EXPECT_STREQ("value+1", verdict(self, "value+1"));
	begin(self);
	put_close(&p, self->id, 1, 1000001);
	EXPECT_STREQ("mark+1", verdict(self, "mark+1"));
	begin(self);
	put_mark(&p, self->id, 1, ~0U);
	EXPECT_STREQ("mark+1", verdict(self, "mark+1"));
	begin(self);
	put_close(&p, self->id, 1, 0);
	p.b[HDR_LEN + 3] = 0;
	EXPECT_STREQ("mark+1", verdict(self, "mark+1"));
	begin(self);
	put8(&p, F_FIN);
	put_zero(&p, 3);
	EXPECT_STREQ("value+1", verdict(self, "value+1"));
	begin(self);
	put8(&p, F_FIN);
	put8(&p, 3);
	put16(&p, 0);
	EXPECT_STREQ("value+1", verdict(self, "value+1"));
}

TEST_F(sender, stale)
{
	uint32_t old, late;

	begin(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	old = self->id;
	late = ++self->raw.pn;
	begin(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	/* A packet from before: the message is forgotten, and must not come back. */
	p.len = 0;
	pkt_begin(&p, 0, self->raw.peer_flow, late, old);
	put_data(&p, 0, 1, L, S, S, 1);
	EXPECT_STREQ("stale+1", verdict(self, "stale+1"));
	again(self);
	put_mark(&p, old, 1, 0);
	EXPECT_STREQ("stale+1", verdict(self, "stale+1"));
}

/* Judged with a hole, the message has it for ever. */
TEST_F(sender, late)
{
	unsigned char buf[L];
	struct received r;
	struct desc d;
	size_t at;

	begin(self);
	d = desc_of(self);
	d.ppm = 500000;
	d.allow = L / 2;
	d.tag = 7;
	put_desc(&p, &d);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	again(self);
	put_data(&p, 0, 2, L, S, S, 1);
	put_mark(&p, self->id, 1, 0);
	EXPECT_STREQ("", verdict(self, ""));
	at = raw_expect(&self->raw, &p, F_DONE, DBLP_WAIT_MS);
	ASSERT_NE(0, at);
	EXPECT_EQ(0, p.b[at + 1]);
	EXPECT_EQ(1, get16(p.b + at + 2));
	EXPECT_EQ(self->id, get32(p.b + at + 4));
	EXPECT_EQ(S, get32(p.b + at + 8));
	EXPECT_EQ(1, get32(p.b + at + 12));
	EXPECT_EQ(wire_digest(3, L, &(uint64_t){ 2 }), get64(p.b + at + 16));
	again(self);
	put_data(&p, 0, 1, L, S, S, 1);
	EXPECT_STREQ("late+1", verdict(self, "late+1"));
	ASSERT_EQ(L, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	EXPECT_EQ(7, r.info.tag);
	EXPECT_EQ(S, r.info.missing_bytes);
	ASSERT_TRUE(r.has_map);
	EXPECT_EQ(2, r.map[0]);
	EXPECT_EQ(0, message_diff(buf, L, 1, &r, 0));
}

/* Two of three segments, and the end of the pass: what does the receiver say? */
static size_t two_of_three(FIXTURE_DATA(sender) *self, struct desc *d, unsigned int type)
{
	begin(self);
	d->id = self->id;
	put_desc(&p, d);
	put_data(&p, 0, 0, L, S, S, 1);
	put_data(&p, 0, 2, L, S, S, 1);
	put_mark(&p, self->id, 1, 0);
	raw_drain(&self->raw);
	if (!raw_send(&self->raw, &p))
		return 0;
	return raw_expect(&self->raw, &p, type, DBLP_WAIT_MS);
}

/* To the byte. */
TEST_F(sender, edge_of_bound)
{
	struct desc d = desc_of(self);
	unsigned char buf[L];
	struct received r;
	size_t at;

	d.ppm = 333334;
	d.allow = S;
	ASSERT_NE(0, two_of_three(self, &d, F_DONE));
	ASSERT_EQ(L, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	EXPECT_EQ(S, r.info.missing_bytes);

	d.allow = S - 1;
	at = two_of_three(self, &d, F_NEED);
	ASSERT_NE(0, at);
	EXPECT_EQ(1, get16(p.b + at + 2));
	EXPECT_EQ(self->id, get32(p.b + at + 4));
	EXPECT_EQ(1, get32(p.b + at + 8));	/* one byte too many is missing */
	EXPECT_EQ(1, get32(p.b + at + 12));
	EXPECT_EQ(-1, dblp_recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT, &r));
	EXPECT_EQ(EAGAIN, errno);
}

/* However much may be missing, that may not. */
TEST_F(sender, protected_missing)
{
	struct desc d = desc_of(self);
	unsigned char buf[L];
	struct received r;
	size_t at;

	d.ppm = 900000;
	d.allow = L * 9 / 10;
	d.nranges = 1;
	d.range[0][0] = 1;
	d.range[0][1] = 1;
	at = two_of_three(self, &d, F_NEED);
	ASSERT_NE(0, at);
	EXPECT_EQ(S, get32(p.b + at + 8));
	EXPECT_EQ(-1, dblp_recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT, &r));
	EXPECT_EQ(EAGAIN, errno);
	again(self);
	put_data(&p, 0, 1, L, S, S, 1);
	ASSERT_TRUE(raw_send(&self->raw, &p));
	ASSERT_EQ(L, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	EXPECT_EQ(0, r.info.missing_bytes);
	EXPECT_EQ(0, pattern_diff(buf, L, 1, 0));
}

/* The whole message by hand, in the worst order, delivered once. */
TEST_F(sender, by_the_book)
{
	unsigned char buf[L];
	struct received r;
	struct desc d;
	size_t at;

	begin(self);
	put_data(&p, 0, 2, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	again(self);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	again(self);
	put_data(&p, 0, 1, L, S, S, 1);
	EXPECT_STREQ("", verdict(self, ""));
	/* All is there, but what it is has not been told. */
	EXPECT_EQ(-1, dblp_recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT, &r));
	again(self);
	d = desc_of(self);
	d.tag = 8;
	put_desc(&p, &d);
	put_mark(&p, self->id, 1, 0);
	EXPECT_STREQ("", verdict(self, ""));
	ASSERT_EQ(L, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	EXPECT_EQ(8, r.info.tag);
	EXPECT_EQ(0, pattern_diff(buf, L, 1, 0));
	/* Probed again, it is answered again and not delivered again. */
	raw_drain(&self->raw);
	again(self);
	put_desc(&p, &d);
	put_mark(&p, self->id, 1, 0);
	raw_send(&self->raw, &p);
	at = raw_expect(&self->raw, &p, F_ACK, DBLP_WAIT_MS);
	ASSERT_NE(0, at);
	EXPECT_EQ(-1, dblp_recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT, &r));
}

TEST_F(sender, refused)
{
	uint64_t limit = 50000;
	size_t at;

	ASSERT_EQ(0, setsockopt(self->rx, SOL_DBLP, DBLP_SO_MAX_MESSAGE, &limit, 8));
	begin(self);
	put_data(&p, 0, 0, 50001, S, S, 1);
	EXPECT_STREQ("refused+1", verdict(self, "refused+1"));
	at = raw_expect(&self->raw, &p, F_REFUSE, DBLP_WAIT_MS);
	ASSERT_NE(0, at);
	EXPECT_EQ(1, p.b[at + 1]);
	EXPECT_EQ(self->id, get32(p.b + at + 4));
	EXPECT_EQ(limit, get64(p.b + at + 8));
}

/* Small packets that announce enormous messages: no memory is given for them. */
TEST_F(sender, announcements)
{
	enum { COUNT = 200 };
	struct counters after;
	uint32_t i;

	ASSERT_EQ(0, set_int(self->rx, SOL_SOCKET, SO_RCVBUF, 1 << 20));
	begin(self);
	for (i = 0; i < COUNT; i++) {
		p.len = 0;
		raw_begin(&self->raw, &p);
		put_data(&p, i, 0, DBLP_MAX_MESSAGE, 8000, 8000, 1);
		ASSERT_TRUE(raw_send(&self->raw, &p));
	}
	for (i = 0; i < 1000; i++) {
		ASSERT_TRUE(counters_read(&after));
		if (counter_delta(&self->before, &after, DBLP_REJECT "busy") +
		    counter_delta(&self->before, &after, DBLP_REJECT "refused") >= COUNT - 1)
			break;
		poll(NULL, 0, 2);
	}
	EXPECT_LT(i, 1000) TH_LOG("%s", moved(&self->before));
	EXPECT_LE(counter_delta(&self->before, &after, "segs_received"), 1);
	/* Given up, they are forgotten, and others have their room. */
	begin(self);
	self->raw.low += COUNT;
	self->id += COUNT;
	again(self);
	put8(&p, F_FIN);
	put8(&p, 2);
	put16(&p, 0);
	ASSERT_TRUE(raw_send(&self->raw, &p));
}

TEST_F(sender, cookies)
{
	struct raw other;

	ASSERT_TRUE(raw_open(&other, AF_INET, 0x7777));
	other.peer = self->to;
	other.peer_flow = self->raw.peer_flow;
	other.cookie = self->raw.cookie;
	other.cookie_time = self->raw.cookie_time;

	/* Another's flow, then another's cookie for a flow that does not exist. */
	counters_read(&self->before);
	p.len = 0;
	raw_begin(&other, &p);
	put_echo(&p, &other);
	raw_send(&other, &p);
	EXPECT_STREQ("addr+1", moved_wait(&self->before, "addr+1"));
	other.peer_flow ^= 1;
	counters_read(&self->before);
	p.len = 0;
	raw_begin(&other, &p);
	put_echo(&p, &other);
	raw_send(&other, &p);
	EXPECT_STREQ("cookie+1", moved_wait(&self->before, "cookie+1"));

	/* One's own, changed. */
	p.len = 0;
	pkt_begin(&p, 0, 0, 1, 1);
	put_init(&p, &other);
	raw_send(&other, &p);
	ASSERT_NE(0, raw_expect(&other, &p, F_CHALLENGE, DBLP_WAIT_MS));
	other.peer_flow = get64(p.b + p.start + HDR_LEN + 12);
	other.cookie_time = get64(p.b + p.start + HDR_LEN + 28);
	other.cookie = get64(p.b + p.start + HDR_LEN + 36) ^ 1;
	counters_read(&self->before);
	p.len = 0;
	raw_begin(&other, &p);
	put_echo(&p, &other);
	raw_send(&other, &p);
	EXPECT_STREQ("cookie+1", moved_wait(&self->before, "cookie+1"));

	/* Right, but of another time. */
	other.cookie ^= 1;
	other.cookie_time -= 9000000;
	counters_read(&self->before);
	p.len = 0;
	raw_begin(&other, &p);
	put_echo(&p, &other);
	raw_send(&other, &p);
	EXPECT_STREQ("cookie+1", moved_wait(&self->before, "cookie+1"));
	other.cookie_time += 9000000;

	/* Right. */
	p.len = 0;
	raw_begin(&other, &p);
	put_echo(&p, &other);
	raw_send(&other, &p);
	EXPECT_NE(0, raw_expect(&other, &p, F_ACCEPT, DBLP_WAIT_MS));
	close(other.fd);
}

/* Asking costs the one who asks: no state here, no larger answer there. */
TEST_F(sender, inits_are_cheap)
{
	enum { COUNT = 300 };
	struct counters after;
	struct raw other;
	size_t asked, answers = 0;
	int i;

	ASSERT_TRUE(raw_open(&other, AF_INET, 1));
	other.peer = self->to;
	for (i = 0; i < COUNT; i++) {
		other.flow = i + 1;
		other.inc = ~i;
		p.len = 0;
		pkt_begin(&p, 0, 0, 1, 1);
		put_init(&p, &other);
		asked = p.len;
		ASSERT_TRUE(raw_send(&other, &p));
		if (raw_expect(&other, &p, F_CHALLENGE, i ? 100 : DBLP_WAIT_MS)) {
			answers++;
			EXPECT_LE(p.len, asked);
		}
	}
	EXPECT_GT(answers, 0);
	ASSERT_TRUE(counters_read(&after));
	EXPECT_EQ(0, counter_delta(&self->before, &after, "flows_opened"));
	EXPECT_EQ(answers, counter_delta(&self->before, &after, "challenges_sent"));
	close(other.fd);
}

TEST_F(sender, handshake_out_of_place)
{
	/* An answer to what nobody asked. */
	p.len = 0;
	pkt_begin(&p, HDR_REV, 0x9999, 1, 1);
	put8(&p, F_CHALLENGE);
	put_zero(&p, 3);
	put64(&p, 0x9999);
	put_zero(&p, 40);
	EXPECT_STREQ("flow+1", verdict(self, "flow+1"));
	/* ... that is not zero where it must be. */
	p.len = 0;
	pkt_begin(&p, 0, 0, 1, 1);
	put_init(&p, &self->raw);
	p.b[p.len - 1] = 1;
	EXPECT_STREQ("reserved+1", verdict(self, "reserved+1"));
	/* Data without a flow. */
	p.len = 0;
	pkt_begin(&p, 0, 0, 1, 1);
	put_data(&p, 0, 0, L, S, S, 1);
	EXPECT_STREQ("flow+1", verdict(self, "flow+1"));
	/* An INIT without an id, and one on a flow. */
	p.len = 0;
	pkt_begin(&p, 0, 0, 1, 1);
	put_init(&p, &self->raw);
	memset(p.b + HDR_LEN + 4, 0, 8);
	EXPECT_STREQ("handshake+1", verdict(self, "handshake+1"));
	p.len = 0;
	pkt_begin(&p, 0, 0x9999, 1, 1);
	put_init(&p, &self->raw);
	EXPECT_STREQ("handshake+1", verdict(self, "handshake+1"));
	begin(self);
	put_init(&p, &self->raw);
	EXPECT_STREQ("direction+1", verdict(self, "direction+1"));
	/* An ECHO on another flow than it says. */
	p.len = 0;
	pkt_begin(&p, 0, 0x9999, 1, 1);
	put_echo(&p, &self->raw);
	EXPECT_STREQ("handshake+1", verdict(self, "handshake+1"));
}

TEST_HARNESS_MAIN

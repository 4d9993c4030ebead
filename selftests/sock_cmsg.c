// SPDX-License-Identifier: GPL-2.0
/*
 * Control messages: each wrong one has its errno and sends nothing; each right one
 * arrives at the peer as it was given.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dblp_util.h"
#include "dblp_harness.h"

#define MESSAGE		8192

FIXTURE(cmsg)
{
	int tx, rx;
	union address to;
	unsigned char buf[MESSAGE], in[MESSAGE];
	struct counters before;
};

FIXTURE_SETUP(cmsg)
{
	ASSERT_TRUE(netns_enter());
	self->tx = dblp_open(0);
	ASSERT_GE(self->tx, 0);
	self->rx = dblp_open_bound(AF_INET, &self->to);
	ASSERT_GE(self->rx, 0);
	pattern_fill(self->buf, MESSAGE, 1, 0);
	ASSERT_TRUE(counters_read(&self->before));
}

FIXTURE_TEARDOWN(cmsg)
{
	close(self->tx);
	close(self->rx);
}

/* sendmsg() with one control message of any kind and length. */
static int send_raw(int fd, const union address *to, const void *buf, int level,
		    int type, const void *data, size_t len)
{
	static union {
		struct cmsghdr align;
		char b[4096];
	} c;
	struct iovec iov = { (void *)buf, MESSAGE };
	struct msghdr m = {
		.msg_name = (void *)&to->sa, .msg_namelen = address_len(to),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &c, .msg_controllen = CMSG_SPACE(len),
	};

	memset(&c, 0, sizeof(c));
	c.align.cmsg_level = level;
	c.align.cmsg_type = type;
	c.align.cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(&c.align), data, len);
	return sendmsg(fd, &m, 0) < 0 ? errno : 0;
}

/* Nothing has gone out: what comes first is the message that is sent now. */
static bool sent_nothing(int tx, int rx, const union address *to, unsigned char *in)
{
	struct received r;

	return dblp_send(tx, to, "good", 4, NULL) == 4 &&
	       dblp_recv_wait(rx, in, MESSAGE, &r) == 4 &&
	       dblp_recv(rx, in, MESSAGE, MSG_DONTWAIT, &r) == -1 && errno == EAGAIN;
}

TEST_F(cmsg, send_values)
{
	static const struct {
		const char *what;
		struct dblp_send_params p;
		int error;
	} cases[] = {
		{ "tolerance above one", { .tolerance_ppm = DBLP_PPM + 1 }, EINVAL },
		{ "largest tolerance", { .tolerance_ppm = ~0U }, EINVAL },
		{ "mode 2", { .mode = 2 }, EINVAL },
		{ "mode 255", { .mode = 255 }, EINVAL },
		{ "priority 8", { .priority = 8 }, EINVAL },
		{ "flag 2", { .flags = 2 }, EINVAL },
		{ "flag 0x80", { .flags = 0x80 }, EINVAL },
		{ "reserved", { .reserved = 1 }, EINVAL },
		{ "reserved2", { .reserved2 = 1 }, EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		EXPECT_EQ(cases[i].error,
			  send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				   DBLP_CMSG_SEND, &cases[i].p, sizeof(cases[i].p)))
			TH_LOG("%s", cases[i].what);
	EXPECT_TRUE(sent_nothing(self->tx, self->rx, &self->to, self->in));
}

TEST_F(cmsg, send_values_allowed)
{
	static const struct dblp_send_params cases[] = {
		{ },
		{ .tolerance_ppm = DBLP_PPM },
		{ .mode = DBLP_MODE_EAGER },
		{ .priority = 7, .phase = 255 },
		{ .flags = DBLP_SEND_ORDERED },
		{ .deadline_us = ~0U },
		{ .max_rounds = 0xffff },
		{ .group = ~0U },
		{ .tag = ~0ULL },
	};
	struct received r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_EQ(0, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				      DBLP_CMSG_SEND, &cases[i], sizeof(cases[i])))
			TH_LOG("case %zu: %s", i, strerror(errno));
		ASSERT_EQ(MESSAGE, dblp_recv_wait(self->rx, self->in, MESSAGE, &r));
		EXPECT_EQ(cases[i].tag, r.info.tag);
	}
}

TEST_F(cmsg, send_size)
{
	union {
		struct dblp_send_params p;
		char b[256];
	} v = { };
	size_t len = sizeof(v.p);

	/* Shorter than the first version. */
	EXPECT_EQ(EINVAL, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				   DBLP_CMSG_SEND, &v, len - 1));
	EXPECT_EQ(EINVAL, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				   DBLP_CMSG_SEND, &v, len - 8));
	EXPECT_EQ(EINVAL, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				   DBLP_CMSG_SEND, &v, 0));
	/* From a later version, using what this one does not know. */
	v.b[len] = 1;
	EXPECT_EQ(E2BIG, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				  DBLP_CMSG_SEND, &v, len + 8));
	v.b[len] = 0;
	v.b[255] = 1;
	EXPECT_EQ(E2BIG, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				  DBLP_CMSG_SEND, &v, 256));
	EXPECT_TRUE(sent_nothing(self->tx, self->rx, &self->to, self->in));
	/* From a later version, not using it. */
	EXPECT_EQ(0, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
			      DBLP_CMSG_SEND, &v, 255));
	EXPECT_EQ(0, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
			      DBLP_CMSG_SEND, &v, len + 1));
}

TEST_F(cmsg, wrong_kind)
{
	struct dblp_send_params p = { };
	static const struct {
		int level, type;
	} cases[] = {
		{ SOL_DBLP, 0 },
		{ SOL_DBLP, DBLP_CMSG_RECV },
		{ SOL_DBLP, DBLP_CMSG_MAP },
		{ SOL_DBLP, 5 },
		{ SOL_DBLP, -1 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		EXPECT_EQ(EINVAL, send_raw(self->tx, &self->to, self->buf, cases[i].level,
					   cases[i].type, &p, sizeof(p)))
			TH_LOG("level %d type %d", cases[i].level, cases[i].type);
	EXPECT_TRUE(sent_nothing(self->tx, self->rx, &self->to, self->in));
}

/* Control messages of other levels are for others. */
TEST_F(cmsg, other_level)
{
	struct dblp_send_params p = { .tolerance_ppm = ~0U };
	struct received r;

	ASSERT_EQ(0, send_raw(self->tx, &self->to, self->buf, IPPROTO_TCP, DBLP_CMSG_SEND, &p,
			      sizeof(p)));
	ASSERT_EQ(MESSAGE, dblp_recv_wait(self->rx, self->in, MESSAGE, &r));
	EXPECT_EQ(0, r.info.tolerance_ppm);
}

TEST_F(cmsg, broken_headers)
{
	struct iovec iov = { self->buf, MESSAGE };
	union {
		struct cmsghdr h;
		char b[512];
	} c;
	struct msghdr m = {
		.msg_name = &self->to.sa, .msg_namelen = address_len(&self->to),
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c,
	};
	static const struct {
		size_t cmsg_len, control;
	} cases[] = {
		{ sizeof(struct cmsghdr) - 1, 128 },
		{ 0, 128 },
		{ 129, 128 },
		{ SIZE_MAX, 128 },
		{ SIZE_MAX / 2, 128 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(&c, 0, sizeof(c));
		c.h.cmsg_level = SOL_DBLP;
		c.h.cmsg_type = DBLP_CMSG_SEND;
		c.h.cmsg_len = cases[i].cmsg_len;
		m.msg_controllen = cases[i].control;
		EXPECT_EQ(-1, sendmsg(self->tx, &m, 0)) TH_LOG("case %zu", i);
		EXPECT_EQ(EINVAL, errno);
	}
	m.msg_control = (void *)8;
	m.msg_controllen = 64;
	EXPECT_EQ(-1, sendmsg(self->tx, &m, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(sent_nothing(self->tx, self->rx, &self->to, self->in));
}

TEST_F(cmsg, twice)
{
	struct dblp_send_params p = { };
	struct dblp_range range = { 0, 1 };
	struct iovec iov = { self->buf, MESSAGE };
	union {
		struct cmsghdr h;
		char b[512];
	} c = { };
	struct msghdr m = {
		.msg_name = &self->to.sa, .msg_namelen = address_len(&self->to),
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c,
	};
	struct cmsghdr *second;

	m.msg_controllen = 2 * CMSG_SPACE(sizeof(p));
	c.h.cmsg_level = SOL_DBLP;
	c.h.cmsg_type = DBLP_CMSG_SEND;
	c.h.cmsg_len = CMSG_LEN(sizeof(p));
	second = (void *)(c.b + CMSG_SPACE(sizeof(p)));
	*second = c.h;
	EXPECT_EQ(-1, sendmsg(self->tx, &m, 0));
	EXPECT_EQ(EINVAL, errno);

	m.msg_controllen = 2 * CMSG_SPACE(sizeof(range));
	c.h.cmsg_type = DBLP_CMSG_PROTECT;
	c.h.cmsg_len = CMSG_LEN(sizeof(range));
	memcpy(CMSG_DATA(&c.h), &range, sizeof(range));
	second = (void *)(c.b + CMSG_SPACE(sizeof(range)));
	*second = c.h;
	memcpy(CMSG_DATA(second), &range, sizeof(range));
	EXPECT_EQ(-1, sendmsg(self->tx, &m, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_TRUE(sent_nothing(self->tx, self->rx, &self->to, self->in));
}

TEST_F(cmsg, protect_values)
{
	static const struct {
		const char *what;
		struct dblp_range r[2];
		size_t len;
		int error;
	} cases[] = {
		{ "empty range", { { 0, 0 } }, 16, EINVAL },
		{ "empty second range", { { 0, 1 }, { 5, 0 } }, 32, EINVAL },
		{ "past the end", { { MESSAGE, 1 } }, 16, ERANGE },
		{ "over the end", { { MESSAGE - 1, 2 } }, 16, ERANGE },
		{ "length wraps", { { 1, ~0ULL } }, 16, ERANGE },
		{ "offset wraps", { { ~0ULL, 2 } }, 16, ERANGE },
		{ "both wrap", { { ~0ULL, ~0ULL } }, 16, ERANGE },
		{ "second past the end", { { 0, 1 }, { 1 << 20, 1 } }, 32, ERANGE },
		{ "cut array", { { 0, 1 }, { 2, 1 } }, 31, EINVAL },
		{ "half a range", { { 0, 1 } }, 8, EINVAL },
		{ "no range", { { 0, 1 } }, 0, EINVAL },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		EXPECT_EQ(cases[i].error,
			  send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				   DBLP_CMSG_PROTECT, cases[i].r, cases[i].len))
			TH_LOG("%s", cases[i].what);
	EXPECT_TRUE(sent_nothing(self->tx, self->rx, &self->to, self->in));
}

TEST_F(cmsg, protect_values_allowed)
{
	static const struct dblp_range cases[][2] = {
		{ { 0, MESSAGE }, { 0, MESSAGE } },		/* all, twice */
		{ { MESSAGE - 1, 1 }, { 0, 1 } },		/* not in order */
		{ { 0, 100 }, { 50, 100 } },			/* overlap */
		{ { 0, 100 }, { 100, 100 } },			/* touch */
	};
	struct received r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_EQ(0, send_raw(self->tx, &self->to, self->buf, SOL_DBLP,
				      DBLP_CMSG_PROTECT, cases[i], sizeof(cases[i])))
			TH_LOG("case %zu", i);
		ASSERT_EQ(MESSAGE, dblp_recv_wait(self->rx, self->in, MESSAGE, &r));
		EXPECT_EQ(0, pattern_diff(self->in, MESSAGE, 1, 0));
	}
}

/* The limit is on what is left after widening to segments and merging. */
TEST_F(cmsg, protect_count)
{
	enum { BIG = 4 << 20 };
	struct dblp_range far[DBLP_MAX_PROTECT + 1], near[1025];
	struct send_extra x = { .ranges = far, .nranges = DBLP_MAX_PROTECT };
	static unsigned char big[BIG];
	struct received r;
	size_t i;

	ASSERT_TRUE(set_buffers(self->tx, 2 * BIG));
	ASSERT_TRUE(set_buffers(self->rx, 4 * BIG));
	/* The largest segment is less than 10000 bytes: these never touch. */
	for (i = 0; i < ARRAY_SIZE(far); i++)
		far[i] = (struct dblp_range){ i * 100000, 1 };
	for (i = 0; i < ARRAY_SIZE(near); i++)
		near[i] = (struct dblp_range){ i * 2, 1 };
	pattern_fill(big, BIG, 2, 0);
	ASSERT_EQ(BIG, dblp_send(self->tx, &self->to, big, BIG, &x));
	ASSERT_EQ(BIG, dblp_recv_wait(self->rx, big, BIG, &r));
	x.nranges++;
	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, big, BIG, &x));
	EXPECT_EQ(E2BIG, errno);
	x.ranges = near;
	x.nranges = ARRAY_SIZE(near);
	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, big, BIG, &x));
	EXPECT_EQ(E2BIG, errno);
	x.nranges--;
	ASSERT_EQ(BIG, dblp_send(self->tx, &self->to, big, BIG, &x));
	ASSERT_EQ(BIG, dblp_recv_wait(self->rx, big, BIG, &r));
	EXPECT_EQ(0, pattern_diff(big, BIG, 2, 0));
}

TEST_F(cmsg, received_as_sent)
{
	static const struct dblp_send_params p = {
		.tolerance_ppm = 123456, .mode = DBLP_MODE_EAGER, .phase = 77,
		.priority = 5, .group = 0xabcdef01, .tag = 0x1122334455667788,
	};
	struct send_extra x = { .params = &p };
	struct received r;

	/* One segment, so eager has nothing to give up. */
	ASSERT_EQ(100, dblp_send(self->tx, &self->to, self->buf, 100, &x));
	ASSERT_EQ(100, dblp_recv_wait(self->rx, self->in, MESSAGE, &r));
	EXPECT_EQ(0, pattern_diff(self->in, 100, 1, 0));
	EXPECT_FALSE(r.flags & (MSG_TRUNC | MSG_CTRUNC | MSG_NOTIFICATION));
	ASSERT_TRUE(r.has_info);
	EXPECT_FALSE(r.has_map);
	EXPECT_EQ(1, r.info.msg_id);
	EXPECT_EQ(100, r.info.len);
	EXPECT_EQ(0, r.info.missing_bytes);
	EXPECT_EQ(0, r.info.missing_segs);
	EXPECT_EQ(1, r.info.nr_segs);
	EXPECT_GE(r.info.seg_size, 100);
	EXPECT_EQ(p.tag, r.info.tag);
	EXPECT_EQ(p.tolerance_ppm, r.info.tolerance_ppm);
	EXPECT_EQ(p.mode, r.info.mode);
	EXPECT_EQ(p.phase, r.info.phase);
	EXPECT_EQ(p.priority, r.info.priority);
	EXPECT_EQ(p.group, r.info.group);
	EXPECT_EQ(0, r.info.flags);
	EXPECT_EQ(0, r.info.reserved);

	/* The next one counts on, and has its own values only. */
	ASSERT_EQ(200, dblp_send(self->tx, &self->to, self->buf, 200, NULL));
	ASSERT_EQ(200, dblp_recv_wait(self->rx, self->in, MESSAGE, &r));
	ASSERT_TRUE(r.has_info);
	EXPECT_EQ(2, r.info.msg_id);
	EXPECT_EQ(0, r.info.tag);
	EXPECT_EQ(0, r.info.tolerance_ppm);
	EXPECT_EQ(0, r.info.allowed_bytes);
	EXPECT_EQ(DBLP_MODE_PRESSURE, r.info.mode);
}

TEST_F(cmsg, allowance)
{
	static const struct {
		uint32_t ppm, len, allowed;
	} cases[] = {
		{ 0, 8192, 0 },
		{ 1, 8192, 0 },
		{ 122, 8192, 0 },		/* 0.9994 bytes */
		{ 123, 8192, 1 },		/* 1.0076 bytes */
		{ 500000, 8191, 4095 },
		{ 999999, 8192, 8191 },
		{ DBLP_PPM, 8192, 8192 },
	};
	struct dblp_send_params p = { };
	struct send_extra x = { .params = &p };
	struct received r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		p.tolerance_ppm = cases[i].ppm;
		ASSERT_EQ(cases[i].len, dblp_send(self->tx, &self->to, self->buf,
						  cases[i].len, &x));
		ASSERT_EQ(cases[i].len, dblp_recv_wait(self->rx, self->in, MESSAGE, &r));
		EXPECT_EQ(cases[i].allowed, r.info.allowed_bytes)
			TH_LOG("%u ppm of %u", cases[i].ppm, cases[i].len);
	}
}

/* Too little room for what comes with a message costs only that. */
TEST_F(cmsg, control_truncated)
{
	static const size_t sizes[] = {
		1, CMSG_LEN(0), CMSG_LEN(8), CMSG_SPACE(sizeof(struct dblp_recv_info)) - 8,
	};
	struct iovec iov = { self->in, MESSAGE };
	union {
		struct cmsghdr h;
		unsigned char b[512];
	} c;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(&c, 0xee, sizeof(c));
		m.msg_control = &c;
		m.msg_controllen = sizes[i];
		m.msg_flags = 0;
		ASSERT_EQ(300, dblp_send(self->tx, &self->to, self->buf, 300, NULL));
		ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
		memset(self->in, 0, MESSAGE);
		ASSERT_EQ(300, recvmsg(self->rx, &m, 0));
		EXPECT_EQ(0, pattern_diff(self->in, 300, 1, 0));
		EXPECT_TRUE(m.msg_flags & MSG_CTRUNC) TH_LOG("room %zu", sizes[i]);
		EXPECT_FALSE(m.msg_flags & MSG_TRUNC);
		EXPECT_LE(m.msg_controllen, sizes[i]);
		for (j = sizes[i]; j < sizeof(c); j++)
			ASSERT_EQ(0xee, c.b[j]) TH_LOG("written at %zu", j);
	}
	/* Who gives no room wants nothing. */
	m.msg_control = NULL;
	m.msg_controllen = 0;
	ASSERT_EQ(300, dblp_send(self->tx, &self->to, self->buf, 300, NULL));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(300, recvmsg(self->rx, &m, 0));
	EXPECT_FALSE(m.msg_flags & MSG_CTRUNC);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * Every socket option: what it starts with, what can be set and read back, what not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dblp_util.h"
#include "dblp_harness.h"

FIXTURE(option)
{
	int fd;
	union address self;
};

FIXTURE_SETUP(option)
{
	ASSERT_TRUE(netns_enter());
	self->fd = dblp_open_bound(AF_INET, &self->self);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(option)
{
	close(self->fd);
}

static int set(int fd, int option, const void *value, socklen_t len)
{
	return setsockopt(fd, SOL_DBLP, option, value, len) ? errno : 0;
}

static int get(int fd, int option, void *value, socklen_t *len)
{
	return getsockopt(fd, SOL_DBLP, option, value, len) ? errno : 0;
}

TEST_F(option, unknown)
{
	int v = 0;
	socklen_t len = sizeof(v);

	EXPECT_EQ(ENOPROTOOPT, set(self->fd, 0, &v, sizeof(v)));
	EXPECT_EQ(ENOPROTOOPT, set(self->fd, 99, &v, sizeof(v)));
	EXPECT_EQ(ENOPROTOOPT, get(self->fd, 0, &v, &len));
	EXPECT_EQ(ENOPROTOOPT, get(self->fd, 99, &v, &len));
	EXPECT_EQ(-1, setsockopt(self->fd, IPPROTO_TCP, 1, &v, sizeof(v)));
	EXPECT_EQ(ENOPROTOOPT, errno);
	EXPECT_EQ(-1, getsockopt(self->fd, IPPROTO_TCP, 1, &v, &len));
	EXPECT_EQ(ENOPROTOOPT, errno);
}

/* Integers with a range: { option, first value, allowed ..., refused ... }. */
TEST_F(option, integers)
{
	static const struct {
		int option, initial, max;
	} cases[] = {
		{ DBLP_SO_COMPLETIONS, 0, 1 },
		{ DBLP_SO_PARTIAL, 0, 1 },
		{ DBLP_SO_HOLES, DBLP_HOLES_ZERO, DBLP_HOLES_KEEP },
	};
	socklen_t len;
	char wide[16];
	int i, v, w;

	for (i = 0; i < (int)ARRAY_SIZE(cases); i++) {
		int o = cases[i].option;

		len = sizeof(v);
		ASSERT_EQ(0, get(self->fd, o, &v, &len));
		EXPECT_EQ(sizeof(v), len);
		EXPECT_EQ(cases[i].initial, v);
		for (w = 0; w <= cases[i].max; w++) {
			EXPECT_EQ(0, set(self->fd, o, &w, sizeof(w)));
			len = sizeof(v);
			ASSERT_EQ(0, get(self->fd, o, &v, &len));
			EXPECT_EQ(w, v);
		}
		w = cases[i].max + 1;
		EXPECT_EQ(EINVAL, set(self->fd, o, &w, sizeof(w)));
		w = -1;
		EXPECT_EQ(EINVAL, set(self->fd, o, &w, sizeof(w)));
		w = 0;
		EXPECT_EQ(EINVAL, set(self->fd, o, &w, 3));
		EXPECT_EQ(EINVAL, set(self->fd, o, &w, 0));
		EXPECT_EQ(EFAULT, set(self->fd, o, (void *)8, sizeof(w)));
		/* None of that took effect. */
		len = sizeof(v);
		ASSERT_EQ(0, get(self->fd, o, &v, &len));
		EXPECT_EQ(cases[i].max, v);
		/* Reading fills what fits. */
		memset(wide, 0xee, sizeof(wide));
		len = 2;
		EXPECT_EQ(0, get(self->fd, o, wide, &len));
		EXPECT_EQ(2, len);
		EXPECT_EQ((char)0xee, wide[2]);
		len = sizeof(wide);
		EXPECT_EQ(0, get(self->fd, o, wide, &len));
		EXPECT_EQ(sizeof(v), len);
		len = -1;
		EXPECT_EQ(EINVAL, get(self->fd, o, wide, &len));
		len = sizeof(v);
		EXPECT_EQ(EFAULT, get(self->fd, o, (void *)8, &len));
	}
}

TEST_F(option, send)
{
	static const struct dblp_send_params wrong[] = {
		{ .tolerance_ppm = DBLP_PPM + 1 },
		{ .mode = 2 },
		{ .priority = 8 },
		{ .flags = 2 },
		{ .reserved = 1 },
		{ .reserved2 = 1 },
	};
	static const struct dblp_send_params good = {
		.tolerance_ppm = 5, .mode = DBLP_MODE_EAGER, .phase = 6, .priority = 7,
		.flags = DBLP_SEND_ORDERED, .deadline_us = 8, .max_rounds = 9, .group = 10,
		.tag = 11,
	};
	union {
		struct dblp_send_params p;
		char b[128];
	} v = { }, zero = { };
	socklen_t len = sizeof(v.p);
	size_t i;

	ASSERT_EQ(0, get(self->fd, DBLP_SO_SEND, &v, &len));
	EXPECT_EQ(sizeof(v.p), len);
	EXPECT_EQ(0, memcmp(&v, &zero, len));

	ASSERT_EQ(0, set(self->fd, DBLP_SO_SEND, &good, sizeof(good)));
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		EXPECT_EQ(EINVAL, set(self->fd, DBLP_SO_SEND, &wrong[i], sizeof(wrong[i])))
			TH_LOG("case %zu", i);
	EXPECT_EQ(EINVAL, set(self->fd, DBLP_SO_SEND, &zero, sizeof(zero.p) - 1));
	EXPECT_EQ(EFAULT, set(self->fd, DBLP_SO_SEND, (void *)8, sizeof(zero.p)));
	v.p = good;
	v.b[sizeof(v.p)] = 1;
	EXPECT_EQ(E2BIG, set(self->fd, DBLP_SO_SEND, &v, sizeof(v.p) + 1));
	EXPECT_EQ(E2BIG, set(self->fd, DBLP_SO_SEND, &v, sizeof(v)));

	memset(&v, 0xee, sizeof(v));
	len = sizeof(v);
	ASSERT_EQ(0, get(self->fd, DBLP_SO_SEND, &v, &len));
	EXPECT_EQ(sizeof(v.p), len);
	EXPECT_EQ(0, memcmp(&v, &good, sizeof(good)));
	EXPECT_EQ((char)0xee, v.b[sizeof(v.p)]);
	memset(&v, 0xee, sizeof(v));
	len = 4;
	ASSERT_EQ(0, get(self->fd, DBLP_SO_SEND, &v, &len));
	EXPECT_EQ(4, len);
	EXPECT_EQ(5, v.p.tolerance_ppm);
	EXPECT_EQ((char)0xee, v.b[4]);
	/* Longer, from a later version that uses nothing of it. */
	EXPECT_EQ(0, set(self->fd, DBLP_SO_SEND, &zero, sizeof(zero)));
}

/* The default applies to messages without a control message, and only to them. */
TEST_F(option, send_applies)
{
	struct dblp_send_params def = { .tolerance_ppm = 100000, .phase = 3, .tag = 42 };
	struct dblp_send_params own = { .tag = 43 };
	struct send_extra x = { .params = &own };
	struct received r;
	char buf[16];
	int tx = dblp_open(0);

	ASSERT_GE(tx, 0);
	ASSERT_EQ(0, set(tx, DBLP_SO_SEND, &def, sizeof(def)));
	ASSERT_EQ(2, dblp_send(tx, &self->self, "aa", 2, NULL));
	ASSERT_EQ(2, dblp_recv_wait(self->fd, buf, sizeof(buf), &r));
	EXPECT_EQ(42, r.info.tag);
	EXPECT_EQ(3, r.info.phase);
	EXPECT_EQ(100000, r.info.tolerance_ppm);
	ASSERT_EQ(2, dblp_send(tx, &self->self, "bb", 2, &x));
	ASSERT_EQ(2, dblp_recv_wait(self->fd, buf, sizeof(buf), &r));
	EXPECT_EQ(43, r.info.tag);
	EXPECT_EQ(0, r.info.phase);
	EXPECT_EQ(0, r.info.tolerance_ppm);
	close(tx);
}

TEST_F(option, congestion)
{
	char name[32] = "";
	socklen_t len = sizeof(name);

	ASSERT_EQ(0, get(self->fd, DBLP_SO_CONGESTION, name, &len));
	EXPECT_STREQ("bdp", name);
	EXPECT_EQ(0, set(self->fd, DBLP_SO_CONGESTION, "bdp", 3));
	EXPECT_EQ(0, set(self->fd, DBLP_SO_CONGESTION, "fixed", 6));
	len = sizeof(name);
	ASSERT_EQ(0, get(self->fd, DBLP_SO_CONGESTION, name, &len));
	EXPECT_STREQ("fixed", name);
	EXPECT_EQ(ENOENT, set(self->fd, DBLP_SO_CONGESTION, "cubic", 5));
	EXPECT_EQ(ENOENT, set(self->fd, DBLP_SO_CONGESTION, "fixedfixedfixedfixed", 20));
	EXPECT_EQ(EINVAL, set(self->fd, DBLP_SO_CONGESTION, "", 0));
	EXPECT_EQ(EFAULT, set(self->fd, DBLP_SO_CONGESTION, (void *)8, 5));
	len = sizeof(name);
	ASSERT_EQ(0, get(self->fd, DBLP_SO_CONGESTION, name, &len));
	EXPECT_STREQ("fixed", name);
}

TEST_F(option, rate)
{
	uint64_t v = 0, rate = 1000000;
	socklen_t len = sizeof(v);

	EXPECT_EQ(EINVAL, set(self->fd, DBLP_SO_RATE, &rate, 4));
	ASSERT_EQ(0, set(self->fd, DBLP_SO_RATE, &rate, sizeof(rate)));
	ASSERT_EQ(0, get(self->fd, DBLP_SO_RATE, &v, &len));
	EXPECT_EQ(sizeof(v), len);
	EXPECT_EQ(rate, v);
	ASSERT_EQ(0, setresuid(65534, 65534, 65534));
	EXPECT_EQ(EPERM, set(self->fd, DBLP_SO_RATE, &rate, sizeof(rate)));
	EXPECT_EQ(0, get(self->fd, DBLP_SO_RATE, &v, &len));
}

TEST_F(option, fixed_needs_privilege)
{
	ASSERT_EQ(0, setresuid(65534, 65534, 65534));
	EXPECT_EQ(EPERM, set(self->fd, DBLP_SO_CONGESTION, "fixed", 5));
	EXPECT_EQ(0, set(self->fd, DBLP_SO_CONGESTION, "bdp", 3));
}

TEST_F(option, dead_time)
{
	static const struct {
		uint32_t value;
		int error;
	} cases[] = {
		{ 100, 0 }, { 600000, 0 }, { 12345, 0 }, { 99, ERANGE }, { 0, ERANGE },
		{ 600001, ERANGE }, { ~0U, ERANGE },
	};
	uint32_t v = 0, last = 10000;
	socklen_t len = sizeof(v);
	size_t i;

	ASSERT_EQ(0, get(self->fd, DBLP_SO_DEAD_TIME, &v, &len));
	EXPECT_EQ(last, v);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(cases[i].error, set(self->fd, DBLP_SO_DEAD_TIME, &cases[i].value, 4))
			TH_LOG("%u", cases[i].value);
		if (!cases[i].error)
			last = cases[i].value;
		len = sizeof(v);
		ASSERT_EQ(0, get(self->fd, DBLP_SO_DEAD_TIME, &v, &len));
		EXPECT_EQ(last, v);
	}
	EXPECT_EQ(EINVAL, set(self->fd, DBLP_SO_DEAD_TIME, &v, 2));
}

/* What a socket takes is the least of its own limit, the system's, and its buffer. */
TEST_F(option, max_message)
{
	static const struct {
		uint64_t value;
		int error;
	} cases[] = {
		{ 1, 0 }, { 65536, 0 }, { DBLP_MAX_MESSAGE, 0 }, { 0, EINVAL },
		{ DBLP_MAX_MESSAGE + 1ULL, EINVAL }, { ~0ULL, EINVAL },
	};
	uint64_t v = 0, most, last;
	socklen_t len = sizeof(v);
	int buffer = 0;
	size_t i;
	FILE *f;

	f = fopen("/proc/sys/net/dblp/max_message", "r");
	ASSERT_TRUE(!!f);
	ASSERT_EQ(1, fscanf(f, "%lu", &most));
	fclose(f);
	ASSERT_EQ(0, getsockopt(self->fd, SOL_SOCKET, SO_RCVBUF, &buffer,
				&(socklen_t){ sizeof(buffer) }));
	if (most > (uint64_t)buffer)
		most = buffer;
	ASSERT_EQ(0, get(self->fd, DBLP_SO_MAX_MESSAGE, &v, &len));
	EXPECT_EQ(most, v);
	last = v;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(cases[i].error,
			  set(self->fd, DBLP_SO_MAX_MESSAGE, &cases[i].value, 8))
			TH_LOG("%llu", (unsigned long long)cases[i].value);
		if (!cases[i].error)
			last = cases[i].value < most ? cases[i].value : most;
		len = sizeof(v);
		ASSERT_EQ(0, get(self->fd, DBLP_SO_MAX_MESSAGE, &v, &len));
		EXPECT_EQ(last, v);
	}
	EXPECT_EQ(EINVAL, set(self->fd, DBLP_SO_MAX_MESSAGE, &last, 4));
	ASSERT_EQ(0, set_int(self->fd, SOL_SOCKET, SO_RCVBUF, 50000));
	ASSERT_EQ(0, getsockopt(self->fd, SOL_SOCKET, SO_RCVBUF, &buffer,
				&(socklen_t){ sizeof(buffer) }));
	ASSERT_EQ(0, get(self->fd, DBLP_SO_MAX_MESSAGE, &v, &len));
	EXPECT_EQ(buffer, v);
}

TEST_F(option, incarnation)
{
	union address a;
	uint64_t one = 0, two = 0, again = 0;
	socklen_t len = sizeof(one);
	int fd;

	ASSERT_EQ(0, get(self->fd, DBLP_SO_INCARNATION, &one, &len));
	EXPECT_EQ(sizeof(one), len);
	EXPECT_NE(0, one);
	ASSERT_EQ(0, get(self->fd, DBLP_SO_INCARNATION, &again, &len));
	EXPECT_EQ(one, again);
	EXPECT_EQ(ENOPROTOOPT, set(self->fd, DBLP_SO_INCARNATION, &one, sizeof(one)));
	fd = dblp_open_bound(AF_INET, &a);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, get(fd, DBLP_SO_INCARNATION, &two, &len));
	EXPECT_NE(one, two);
	close(fd);
}

TEST_F(option, buffers)
{
	static const int options[] = { SO_SNDBUF, SO_RCVBUF };
	socklen_t len = sizeof(int);
	size_t i;
	int v, w;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		ASSERT_EQ(0, getsockopt(self->fd, SOL_SOCKET, options[i], &v, &len));
		/* The system's default of 208 KB would not hold a gradient. */
		EXPECT_GE(v, 1 << 20);
		ASSERT_EQ(0, set_int(self->fd, SOL_SOCKET, options[i], 100000));
		ASSERT_EQ(0, getsockopt(self->fd, SOL_SOCKET, options[i], &w, &len));
		EXPECT_GE(w, 100000);
		EXPECT_LE(w, 200000);
	}
}

TEST_F(option, timeouts)
{
	struct timeval t = { .tv_sec = 1, .tv_usec = 500000 }, got = { };
	socklen_t len = sizeof(got);

	ASSERT_EQ(0, setsockopt(self->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	ASSERT_EQ(0, getsockopt(self->fd, SOL_SOCKET, SO_RCVTIMEO, &got, &len));
	EXPECT_EQ(1, got.tv_sec);
	EXPECT_NE(0, got.tv_usec);
}

TEST_F(option, info)
{
	static unsigned char buf[100000];
	struct dblp_info info;
	struct received r;
	union address to;
	socklen_t len = sizeof(info);
	int fd, rx;

	EXPECT_EQ(ENOTCONN, get(self->fd, DBLP_SO_INFO, &info, &len));
	rx = dblp_open_bound(AF_INET, &to);
	ASSERT_GE(rx, 0);
	fd = dblp_open(0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, connect(fd, &to.sa, sizeof(to.v4)));
	EXPECT_EQ(ENOPROTOOPT, set(fd, DBLP_SO_INFO, &info, sizeof(info)));
	memset(&info, 0xff, sizeof(info));
	len = sizeof(info);
	ASSERT_EQ(0, get(fd, DBLP_SO_INFO, &info, &len));
	EXPECT_EQ(sizeof(info), len);
	EXPECT_EQ(DBLP_FLOW_NONE, info.state);
	EXPECT_EQ(0, info.msgs_sent);

	ASSERT_EQ(0, set_int(fd, SOL_DBLP, DBLP_SO_COMPLETIONS, 1));
	pattern_fill(buf, sizeof(buf), 1, 0);
	ASSERT_EQ(sizeof(buf), send(fd, buf, sizeof(buf), 0));
	ASSERT_EQ(sizeof(buf), dblp_recv_wait(rx, buf, sizeof(buf), &r));
	ASSERT_GT(dblp_recv_wait(fd, buf, sizeof(buf), &r), 0);
	ASSERT_TRUE(r.completion);
	len = sizeof(info);
	ASSERT_EQ(0, get(fd, DBLP_SO_INFO, &info, &len));
	EXPECT_EQ(DBLP_FLOW_OPEN, info.state);
	EXPECT_EQ(1, info.msgs_sent);
	EXPECT_EQ(1, info.msgs_ok);
	EXPECT_EQ(0, info.msgs_below + info.msgs_refused + info.msgs_unknown);
	EXPECT_EQ(sizeof(buf), info.data_sent);
	EXPECT_EQ(r.done.retransmitted_bytes, info.data_retransmitted);
	EXPECT_EQ((sizeof(buf) + info.seg_size - 1) / info.seg_size, info.segs_sent);
	EXPECT_GT(info.bytes_sent, sizeof(buf));
	EXPECT_GE(info.bytes_sent, info.bytes_delivered);
	EXPECT_GT(info.min_rtt_ns, 0);
	EXPECT_GE(info.srtt_ns, info.min_rtt_ns);
	EXPECT_EQ(0, info.reserved | info.reserved2);
	/* As much as there is room for. */
	memset(&info, 0xff, sizeof(info));
	len = 1;
	ASSERT_EQ(0, get(fd, DBLP_SO_INFO, &info, &len));
	EXPECT_EQ(1, len);
	EXPECT_EQ(DBLP_FLOW_OPEN, info.state);
	EXPECT_EQ(0xff, info.app_limited);
	close(fd);
	close(rx);
}

TEST_HARNESS_MAIN

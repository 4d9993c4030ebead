// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of every size, whole and once; the flags of send and receive; poll and
 * time-outs.  On loopback, over both IP versions.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "dblp_util.h"
#include "dblp_harness.h"

#define LARGEST		(64 << 20)

FIXTURE(message)
{
	int tx, rx;
	union address to;
};

FIXTURE_VARIANT(message)
{
	int family;
};

FIXTURE_VARIANT_ADD(message, v4)
{
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(message, v6)
{
	.family = AF_INET6,
};

FIXTURE_SETUP(message)
{
	union address from;

	ASSERT_TRUE(netns_enter());
	self->tx = dblp_open_bound(variant->family, &from);
	ASSERT_GE(self->tx, 0);
	self->rx = dblp_open_bound(variant->family, &self->to);
	ASSERT_GE(self->rx, 0);
}

FIXTURE_TEARDOWN(message)
{
	close(self->tx);
	close(self->rx);
}

/* Sends one message and checks what comes out; returns 0 if it is right. */
static int round_trip(int tx, int rx, const union address *to, unsigned char *out,
		      unsigned char *in, size_t len, uint64_t seed)
{
	struct received r;

	pattern_fill(out, len, seed, 0);
	if (dblp_send(tx, to, out, len, NULL) != (ssize_t)len)
		return -1;
	if (dblp_recv_wait(rx, in, len + 1, &r) != (ssize_t)len)
		return -2;
	if (r.flags & (MSG_TRUNC | MSG_CTRUNC))
		return -3;
	if (!r.has_info || r.info.len != len || r.info.missing_bytes || r.has_map)
		return -4;
	if (r.info.nr_segs != (len + r.info.seg_size - 1) / r.info.seg_size)
		return -5;
	return pattern_diff(in, len, seed, 0) ? -6 : 0;
}

TEST_F_TIMEOUT(message, sizes, 300)
{
	static const size_t fixed[] = {
		1, 2, 7, 15, 16, 17, 63, 64, 65, 511, 512, 513, 1023, 1024, 1399, 1400,
		1401, 1471, 1472, 1473, 4095, 4096, 4097, 16383, 16384, 65507, 65535, 65536,
		65537, 1000003, 1 << 20,
	};
	unsigned char *out = malloc(1 << 20), *in = malloc((1 << 20) + 1);
	struct received r;
	size_t i, s, n;

	ASSERT_TRUE(set_buffers(self->tx, 8 << 20));
	ASSERT_TRUE(set_buffers(self->rx, 8 << 20));
	for (i = 0; i < ARRAY_SIZE(fixed); i++)
		ASSERT_EQ(0, round_trip(self->tx, self->rx, &self->to, out, in, fixed[i], i))
			TH_LOG("%zu bytes: %s", fixed[i], strerror(errno));

	/* Around whole numbers of segments, whatever a segment is here. */
	ASSERT_EQ(1, dblp_send(self->tx, &self->to, out, 1, NULL));
	ASSERT_EQ(1, dblp_recv_wait(self->rx, in, 1, &r));
	s = r.info.seg_size;
	ASSERT_GE(s, 16);
	for (n = 1; n <= 65; n = n < 4 ? n + 1 : n * 4 + 1)
		for (i = n * s - 1; i <= n * s + 1; i++)
			ASSERT_EQ(0, round_trip(self->tx, self->rx, &self->to, out, in, i, i))
				TH_LOG("%zu bytes, segments of %zu", i, s);
	free(out);
	free(in);
}

TEST_F_TIMEOUT(message, large, 600)
{
	unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST + 1);
	size_t len;

	ASSERT_TRUE(out && in);
	ASSERT_TRUE(set_buffers(self->tx, 2 * LARGEST - 1));
	ASSERT_TRUE(set_buffers(self->rx, 2 * LARGEST - 1));
	for (len = 16 << 20; len <= LARGEST; len *= 4)
		ASSERT_EQ(0, round_trip(self->tx, self->rx, &self->to, out, in, len, len))
			TH_LOG("%zu bytes: %s", len, strerror(errno));
	free(out);
	free(in);
}

/* Any order, but each exactly once. */
TEST_F_TIMEOUT(message, many_small, 300)
{
	enum { COUNT = 1500, LEN = 100 };
	struct dblp_send_params p = { };
	struct send_extra x = { .params = &p, .flags = MSG_DONTWAIT };
	unsigned char buf[LEN], seen[COUNT] = { };
	struct received r;
	int sent = 0, got = 0;
	bool full = false;

	while (got < COUNT) {
		while (sent < COUNT && !full) {
			p.tag = sent;
			pattern_fill(buf, LEN, sent, 0);
			if (dblp_send(self->tx, &self->to, buf, LEN, &x) == LEN) {
				sent++;
				continue;
			}
			ASSERT_EQ(EAGAIN, errno);
			full = true;
		}
		full = false;
		ASSERT_EQ(LEN, dblp_recv_wait(self->rx, buf, LEN, &r))
			TH_LOG("sent %d, got %d", sent, got);
		ASSERT_LT(r.info.tag, COUNT);
		ASSERT_EQ(0, seen[r.info.tag]++);
		ASSERT_EQ(0, pattern_diff(buf, LEN, r.info.tag, 0));
		got++;
	}
	EXPECT_EQ(-1, dblp_recv(self->rx, buf, LEN, MSG_DONTWAIT, &r));
}

TEST_F(message, both_ways)
{
	enum { LEN = 200000, ROUNDS = 5 };
	unsigned char *a = malloc(LEN), *b = malloc(LEN);
	struct received r;
	union address back;
	int i;

	ASSERT_EQ(0, getsockname(self->tx, &back.sa, &(socklen_t){ sizeof(back) }));
	for (i = 0; i < ROUNDS; i++) {
		pattern_fill(a, LEN, i, 0);
		pattern_fill(b, LEN, i + 100, 0);
		ASSERT_EQ(LEN, dblp_send(self->tx, &self->to, a, LEN, NULL));
		ASSERT_EQ(LEN, dblp_send(self->rx, &back, b, LEN, NULL));
		ASSERT_EQ(LEN, dblp_recv_wait(self->rx, b, LEN, &r));
		ASSERT_EQ(LEN, dblp_recv_wait(self->tx, a, LEN, &r));
		EXPECT_EQ(0, pattern_diff(b, LEN, i, 0));
		EXPECT_EQ(0, pattern_diff(a, LEN, i + 100, 0));
	}
	free(a);
	free(b);
}

/* A socket can send to itself. */
TEST_F(message, to_itself)
{
	struct received r;
	char buf[8];

	ASSERT_EQ(4, dblp_send(self->rx, &self->to, "self", 4, NULL));
	ASSERT_EQ(4, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	EXPECT_EQ(0, memcmp(buf, "self", 4));
}

TEST_F(message, gather_scatter)
{
	unsigned char out[3000], in[3000];
	struct iovec o[] = {
		{ out, 1 }, { out + 1, 0 }, { out + 1, 1999 }, { out + 2000, 1000 },
	};
	struct iovec i[] = { { in, 700 }, { in + 700, 2299 }, { in + 2999, 1 } };
	struct msghdr m = {
		.msg_name = &self->to.sa, .msg_namelen = address_len(&self->to),
		.msg_iov = o, .msg_iovlen = 4,
	};

	pattern_fill(out, sizeof(out), 9, 0);
	ASSERT_EQ(3000, sendmsg(self->tx, &m, 0));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(3000, readv(self->rx, i, 3));
	EXPECT_EQ(0, pattern_diff(in, sizeof(in), 9, 0));

	ASSERT_EQ(0, connect(self->tx, &self->to.sa, address_len(&self->to)));
	ASSERT_EQ(3000, write(self->tx, out, 3000));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(3000, read(self->rx, in, 3000));
}

TEST_F(message, sendmmsg)
{
	struct mmsghdr m[3] = {};
	struct iovec iov[3];
	unsigned char in[100];
	struct received r;
	int i, seen = 0;

	for (i = 0; i < 3; i++) {
		static unsigned char out[3][100];

		memset(out[i], i + 1, sizeof(out[i]));
		iov[i] = (struct iovec){ out[i], 10 * (i + 1) };
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
		m[i].msg_hdr.msg_name = &self->to.sa;
		m[i].msg_hdr.msg_namelen = address_len(&self->to);
	}
	ASSERT_EQ(3, sendmmsg(self->tx, m, 3, 0));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(10 * (i + 1), m[i].msg_len);
		ASSERT_GT(dblp_recv_wait(self->rx, in, sizeof(in), &r), 0);
		EXPECT_EQ(10 * in[0], r.len);
		seen |= 1 << in[0];
	}
	EXPECT_EQ(2 + 4 + 8, seen);
}

TEST_F(message, send_lengths)
{
	static char byte;

	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, &byte, 0, NULL));
	EXPECT_EQ(EINVAL, errno);
	/* The length is judged before the memory is touched. */
	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, &byte, DBLP_MAX_MESSAGE + 1UL, NULL));
	EXPECT_EQ(EMSGSIZE, errno);
	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, &byte, 0x7ffff000UL, NULL));
	EXPECT_EQ(EMSGSIZE, errno);
	/* Larger than the socket's buffer: it could never be sent. */
	ASSERT_EQ(0, set_int(self->tx, SOL_SOCKET, SO_SNDBUF, 100000));
	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, &byte, 300000, NULL));
	EXPECT_EQ(EMSGSIZE, errno);
}

TEST_F(message, bad_memory)
{
	unsigned char *page, buf[64];
	struct received r;

	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, munmap(page + 4096, 4096));
	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, (void *)8, 10, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, page, 5000, NULL));
	EXPECT_EQ(EFAULT, errno);
	/* Nothing of them is sent, nor stays behind in the buffer. */
	ASSERT_EQ(5, dblp_send(self->tx, &self->to, "after", 5, NULL));
	ASSERT_EQ(5, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	EXPECT_EQ(0, memcmp(buf, "after", 5));
	EXPECT_EQ(1, r.info.msg_id);

	ASSERT_EQ(5, dblp_send(self->tx, &self->to, "again", 5, NULL));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	EXPECT_EQ(-1, recv(self->rx, (void *)8, 100, MSG_DONTWAIT));
	EXPECT_EQ(EFAULT, errno);
	/* It is not lost for that. */
	ASSERT_EQ(5, dblp_recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT, &r));
	EXPECT_EQ(0, memcmp(buf, "again", 5));
	munmap(page, 4096);
}

TEST_F(message, send_flags)
{
	static const int refused[] = {
		MSG_OOB, MSG_MORE, MSG_FASTOPEN, MSG_ZEROCOPY, MSG_PEEK,
		MSG_EOR, MSG_CONFIRM, MSG_DONTROUTE,
	};
	struct send_extra x = { };
	struct received r;
	char buf[8];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		x.flags = refused[i];
		EXPECT_EQ(-1, dblp_send(self->tx, &self->to, "no", 2, &x))
			TH_LOG("flag 0x%x", refused[i]);
		EXPECT_EQ(EOPNOTSUPP, errno) TH_LOG("flag 0x%x", refused[i]);
	}
	x.flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	EXPECT_EQ(3, dblp_send(self->tx, &self->to, "yes", 3, &x));
	ASSERT_EQ(3, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
}

TEST_F(message, receive_flags)
{
	char buf[64];

	EXPECT_EQ(-1, recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-1, recv(self->rx, buf, sizeof(buf), MSG_OOB));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(-1, recv(self->rx, buf, sizeof(buf), MSG_ERRQUEUE));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-1, recv(self->rx, buf, sizeof(buf), MSG_DONTWAIT | MSG_CONFIRM));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(message, peek)
{
	unsigned char out[5000], in[5000];
	struct received r;

	pattern_fill(out, sizeof(out), 3, 0);
	ASSERT_EQ(5000, dblp_send(self->tx, &self->to, out, 5000, NULL));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(10, dblp_recv(self->rx, in, 10, MSG_PEEK, &r));
	EXPECT_TRUE(r.flags & MSG_TRUNC);
	EXPECT_EQ(5000, r.info.len);
	ASSERT_EQ(5000, dblp_recv(self->rx, in, 10, MSG_PEEK | MSG_TRUNC, &r));
	ASSERT_EQ(5000, dblp_recv(self->rx, in, 5000, MSG_PEEK, &r));
	EXPECT_EQ(0, pattern_diff(in, sizeof(in), 3, 0));
	EXPECT_FALSE(r.flags & MSG_TRUNC);
	memset(in, 0, sizeof(in));
	ASSERT_EQ(5000, dblp_recv(self->rx, in, 5000, 0, &r));
	EXPECT_EQ(0, pattern_diff(in, sizeof(in), 3, 0));
	EXPECT_EQ(-1, dblp_recv(self->rx, in, 5000, MSG_DONTWAIT | MSG_PEEK, &r));
	EXPECT_EQ(EAGAIN, errno);
}

TEST_F(message, truncated)
{
	unsigned char out[30000], in[30000];
	struct received r;

	pattern_fill(out, sizeof(out), 4, 0);
	ASSERT_EQ(30000, dblp_send(self->tx, &self->to, out, 30000, NULL));
	ASSERT_EQ(12345, dblp_recv_wait(self->rx, in, 12345, &r));
	EXPECT_TRUE(r.flags & MSG_TRUNC);
	EXPECT_EQ(30000, r.info.len);
	EXPECT_EQ(0, pattern_diff(in, 12345, 4, 0));
	/* The rest is gone, not another message. */
	EXPECT_EQ(-1, dblp_recv(self->rx, in, sizeof(in), MSG_DONTWAIT, &r));
	EXPECT_EQ(EAGAIN, errno);
	/* Asked for, the real length is returned. */
	ASSERT_EQ(30000, dblp_send(self->tx, &self->to, out, 30000, NULL));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	in[100] = 0xee;
	ASSERT_EQ(30000, dblp_recv(self->rx, in, 100, MSG_TRUNC, &r));
	EXPECT_TRUE(r.flags & MSG_TRUNC);
	EXPECT_EQ(0, pattern_diff(in, 100, 4, 0));
	EXPECT_EQ(0xee, in[100]);
	ASSERT_EQ(30000, dblp_send(self->tx, &self->to, out, 30000, NULL));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(30000, dblp_recv(self->rx, NULL, 0, MSG_TRUNC, &r));
}

TEST_F(message, no_name_wanted)
{
	unsigned char name[sizeof(struct sockaddr_in6) + 8], in[8];
	struct iovec iov = { in, sizeof(in) };
	struct msghdr m = {
		.msg_name = name, .msg_namelen = 4, .msg_iov = &iov, .msg_iovlen = 1,
	};

	memset(name, 0xee, sizeof(name));
	ASSERT_EQ(1, dblp_send(self->tx, &self->to, "x", 1, NULL));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	/* A name that does not fit is cut, and its length told. */
	ASSERT_EQ(1, recvmsg(self->rx, &m, 0));
	EXPECT_EQ(address_len(&self->to), m.msg_namelen);
	EXPECT_EQ(0xee, name[4]);
	ASSERT_EQ(1, dblp_send(self->tx, &self->to, "x", 1, NULL));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(1, recv(self->rx, in, sizeof(in), 0));
}

TEST_F(message, poll_states)
{
	struct received r;
	char buf[8];

	EXPECT_EQ(POLLOUT, wait_events(self->rx, POLLIN | POLLOUT, 0));
	ASSERT_EQ(1, dblp_send(self->tx, &self->to, "x", 1, NULL));
	EXPECT_EQ(POLLIN, wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	EXPECT_EQ(POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM,
		  wait_events(self->rx, POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM, 0));
	ASSERT_EQ(1, dblp_recv(self->rx, buf, sizeof(buf), 0, &r));
	EXPECT_EQ(0, wait_events(self->rx, POLLIN, 0));
}

/* A full buffer says EAGAIN and no POLLOUT; both end when the peer reads. */
TEST_F(message, full)
{
	enum { LEN = 100000 };
	static unsigned char buf[LEN];
	struct send_extra x = { .flags = MSG_DONTWAIT };
	struct timeval t = { .tv_usec = 50000 };
	struct received r;
	int sent = 0, got = 0;

	ASSERT_EQ(0, set_int(self->tx, SOL_SOCKET, SO_SNDBUF, 4 * LEN));
	ASSERT_EQ(0, set_int(self->rx, SOL_SOCKET, SO_RCVBUF, 4 * LEN));
	pattern_fill(buf, LEN, 5, 0);
	while (dblp_send(self->tx, &self->to, buf, LEN, &x) == LEN)
		ASSERT_LT(sent++, 1000);
	EXPECT_EQ(EAGAIN, errno);
	/* Some may have moved to the peer since then: fill up what that freed. */
	do {
		while (dblp_send(self->tx, &self->to, buf, LEN, &x) == LEN)
			ASSERT_LT(sent++, 1000);
	} while (wait_events(self->tx, POLLOUT, 500));
	EXPECT_GT(sent, 2);
	EXPECT_LT(sent, 100);
	ASSERT_EQ(0, setsockopt(self->tx, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)));
	x.flags = 0;
	EXPECT_EQ(-1, dblp_send(self->tx, &self->to, buf, LEN, &x));
	EXPECT_EQ(EAGAIN, errno);

	while (got < sent) {
		ASSERT_EQ(LEN, dblp_recv_wait(self->rx, buf, LEN, &r));
		ASSERT_EQ(0, pattern_diff(buf, LEN, 5, 0));
		got++;
	}
	EXPECT_TRUE(wait_events(self->tx, POLLOUT, DBLP_WAIT_MS) & POLLOUT);
	EXPECT_EQ(LEN, dblp_send(self->tx, &self->to, buf, LEN, &x));
}

TEST_F(message, receive_timeout)
{
	struct timeval t = { .tv_usec = 50000 };
	uint64_t begin;
	char buf[8];

	ASSERT_EQ(0, setsockopt(self->rx, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	begin = now_ms();
	EXPECT_EQ(-1, recv(self->rx, buf, sizeof(buf), 0));
	EXPECT_EQ(EAGAIN, errno);
	/* A busy machine catches up with its ticks, so this is no clock. */
	EXPECT_GE(now_ms() - begin, 20);
}

TEST_F(message, blocking_receive)
{
	char buf[8];
	pid_t pid;
	int status;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(recv(self->rx, buf, sizeof(buf), 0) == 4 ? 0 : 1);
	ASSERT_EQ(4, dblp_send(self->tx, &self->to, "wake", 4, NULL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* What is unread is told by SIOCINQ, what is unfinished by SIOCOUTQ. */
TEST_F(message, queues)
{
	struct received r;
	uint64_t end;
	char buf[700];
	int v;

	ASSERT_EQ(600, dblp_send(self->tx, &self->to, memset(buf, 1, 600), 600, NULL));
	ASSERT_EQ(50, dblp_send(self->tx, &self->to, buf, 50, NULL));
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	ASSERT_EQ(0, ioctl(self->rx, SIOCINQ, &v));
	EXPECT_TRUE(v == 600 || v == 50) TH_LOG("%d", v);
	ASSERT_EQ(v, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
	/* Read or not, a finished message leaves the sender. */
	for (end = now_ms() + DBLP_WAIT_MS; now_ms() < end; poll(NULL, 0, 2)) {
		ASSERT_EQ(0, ioctl(self->tx, SIOCOUTQ, &v));
		if (!v)
			break;
	}
	EXPECT_EQ(0, v);
}

/* The sender may close at once: what was accepted is still delivered or reported. */
TEST_F(message, close_after_send)
{
	enum { LEN = 300000 };
	static unsigned char buf[LEN];
	struct received r;

	pattern_fill(buf, LEN, 6, 0);
	ASSERT_EQ(LEN, dblp_send(self->tx, &self->to, buf, LEN, NULL));
	/* It is in the peer's queue before the close, so that the close cannot hurt. */
	ASSERT_TRUE(wait_events(self->rx, POLLIN, DBLP_WAIT_MS));
	close(self->tx);
	self->tx = -1;
	memset(buf, 0, LEN);
	ASSERT_EQ(LEN, dblp_recv_wait(self->rx, buf, LEN, &r));
	EXPECT_EQ(0, pattern_diff(buf, LEN, 6, 0));
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring: SENDMSG, RECVMSG, and multishot RECVMSG with provided buffers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dblp_util.h"
#include "dblp_harness.h"

#ifdef HAVE_LIBURING
#include <liburing.h>

FIXTURE(uring)
{
	struct io_uring ring;
	int tx, rx;
	union address to;
};

FIXTURE_SETUP(uring)
{
	int err;

	ASSERT_TRUE(netns_enter());
	err = io_uring_queue_init(64, &self->ring, 0);
	ASSERT_EQ(0, err);
	self->tx = dblp_open(0);
	ASSERT_GE(self->tx, 0);
	self->rx = dblp_open_bound(AF_INET, &self->to);
	ASSERT_GE(self->rx, 0);
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->ring);
	close(self->tx);
	close(self->rx);
}

/* Result of the operation with this user data; those of others are kept out. */
static int wait_for(struct io_uring *ring, uint64_t data, unsigned int *flags)
{
	struct __kernel_timespec t = { .tv_sec = DBLP_WAIT_MS / 1000 };
	struct io_uring_cqe *cqe;
	int res;

	if (io_uring_wait_cqe_timeout(ring, &cqe, &t))
		return -ETIME;
	res = cqe->user_data == data ? cqe->res : -EBADE;
	if (flags)
		*flags = cqe->flags;
	io_uring_cqe_seen(ring, cqe);
	return res;
}

TEST_F(uring, send_and_receive)
{
	enum { LEN = 50000 };
	static unsigned char out[LEN], in[LEN];
	struct dblp_send_params p = { .tag = 99 };
	union {
		struct cmsghdr h;
		char b[256];
	} oc = { }, ic = { };
	struct iovec oi = { out, LEN }, ii = { in, LEN };
	struct msghdr om = {
		.msg_name = &self->to.sa, .msg_namelen = address_len(&self->to),
		.msg_iov = &oi, .msg_iovlen = 1, .msg_control = &oc,
		.msg_controllen = CMSG_SPACE(sizeof(p)),
	};
	union address from;
	struct msghdr im = {
		.msg_name = &from.sa, .msg_namelen = sizeof(from), .msg_iov = &ii,
		.msg_iovlen = 1, .msg_control = &ic, .msg_controllen = sizeof(ic),
	};
	struct dblp_recv_info info;
	struct io_uring_sqe *sqe;
	struct cmsghdr *c;

	oc.h.cmsg_level = SOL_DBLP;
	oc.h.cmsg_type = DBLP_CMSG_SEND;
	oc.h.cmsg_len = CMSG_LEN(sizeof(p));
	memcpy(CMSG_DATA(&oc.h), &p, sizeof(p));
	pattern_fill(out, LEN, 7, 0);

	/* The receive waits in the ring before there is anything to receive. */
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_recvmsg(sqe, self->rx, &im, 0);
	sqe->user_data = 1;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_sendmsg(sqe, self->tx, &om, 0);
	sqe->user_data = 2;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(LEN, wait_for(&self->ring, 2, NULL));
	ASSERT_EQ(LEN, wait_for(&self->ring, 1, NULL));
	EXPECT_EQ(0, pattern_diff(in, LEN, 7, 0));
	EXPECT_NE(0, address_port(&from));
	c = CMSG_FIRSTHDR(&im);
	ASSERT_NE(NULL, c);
	ASSERT_EQ(SOL_DBLP, c->cmsg_level);
	ASSERT_EQ(DBLP_CMSG_RECV, c->cmsg_type);
	memcpy(&info, CMSG_DATA(c), sizeof(info));
	EXPECT_EQ(99, info.tag);
	EXPECT_EQ(LEN, info.len);
}

TEST_F(uring, multishot)
{
	enum { BUFS = 32, SIZE = 8192, COUNT = 20 };
	unsigned char out[4000], *pool, seen[COUNT] = { };
	struct io_uring_recvmsg_out *o;
	struct msghdr m = { .msg_namelen = sizeof(union address), .msg_controllen = 256 };
	struct dblp_send_params p = { };
	struct send_extra x = { .params = &p };
	struct dblp_recv_info info;
	struct io_uring_buf_ring *br;
	struct io_uring_buf_reg reg = { .ring_entries = BUFS, .bgid = 1 };
	struct io_uring_sqe *sqe;
	struct cmsghdr *c;
	unsigned int flags, len;
	int i, res;

	ASSERT_EQ(0, posix_memalign((void **)&br, 4096, BUFS * sizeof(struct io_uring_buf)));
	pool = malloc(BUFS * SIZE);
	reg.ring_addr = (uintptr_t)br;
	res = io_uring_register_buf_ring(&self->ring, &reg, 0);
	if (res == -EINVAL)
		SKIP(return, "no provided buffer rings in this kernel");
	ASSERT_EQ(0, res);
	io_uring_buf_ring_init(br);
	for (i = 0; i < BUFS; i++)
		io_uring_buf_ring_add(br, pool + i * SIZE, SIZE, i,
				      io_uring_buf_ring_mask(BUFS), i);
	io_uring_buf_ring_advance(br, BUFS);

	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_recvmsg_multishot(sqe, self->rx, &m, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 1;
	sqe->user_data = 3;
	ASSERT_EQ(1, io_uring_submit(&self->ring));

	for (i = 0; i < COUNT; i++) {
		p.tag = i;
		pattern_fill(out, 100 + i * 190, i, 0);
		ASSERT_EQ(100 + i * 190,
			  dblp_send(self->tx, &self->to, out, 100 + i * 190, &x));
	}
	for (i = 0; i < COUNT; i++) {
		res = wait_for(&self->ring, 3, &flags);
		ASSERT_GT(res, 0) TH_LOG("%s", strerror(-res));
		ASSERT_TRUE(flags & IORING_CQE_F_BUFFER);
		/* One request serves them all. */
		ASSERT_TRUE(flags & IORING_CQE_F_MORE);
		o = io_uring_recvmsg_validate(pool + (flags >> IORING_CQE_BUFFER_SHIFT) * SIZE,
					      res, &m);
		ASSERT_NE(NULL, o);
		EXPECT_FALSE(o->flags & (MSG_TRUNC | MSG_CTRUNC));
		c = io_uring_recvmsg_cmsg_firsthdr(o, &m);
		ASSERT_NE(NULL, c);
		ASSERT_EQ(DBLP_CMSG_RECV, c->cmsg_type);
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		ASSERT_LT(info.tag, COUNT);
		ASSERT_EQ(0, seen[info.tag]++);
		len = io_uring_recvmsg_payload_length(o, res, &m);
		ASSERT_EQ(100 + info.tag * 190, len);
		EXPECT_EQ(0, pattern_diff(io_uring_recvmsg_payload(o, &m), len, info.tag, 0));
	}
	free(pool);
}

/* A completion waiting at the socket must not make other requests slow or fail. */
TEST_F(uring, completion)
{
	struct dblp_completion done;
	struct iovec ii = { &done, sizeof(done) };
	union address from;
	struct msghdr im = {
		.msg_name = &from.sa, .msg_namelen = sizeof(from), .msg_iov = &ii,
		.msg_iovlen = 1,
	};
	struct io_uring_sqe *sqe;

	ASSERT_EQ(0, set_int(self->tx, SOL_DBLP, DBLP_SO_COMPLETIONS, 1));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_recvmsg(sqe, self->tx, &im, 0);
	sqe->user_data = 4;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(3, dblp_send(self->tx, &self->to, "abc", 3, NULL));
	ASSERT_EQ((int)sizeof(done), wait_for(&self->ring, 4, NULL));
	EXPECT_TRUE(im.msg_flags & MSG_NOTIFICATION);
	EXPECT_EQ(DBLP_OUTCOME_OK, done.outcome);
	EXPECT_EQ(3, done.len);
	EXPECT_EQ(address_port(&self->to), address_port(&from));
}

TEST_F(uring, cancel)
{
	char buf[8];
	struct iovec ii = { buf, sizeof(buf) };
	struct msghdr im = { .msg_iov = &ii, .msg_iovlen = 1 };
	struct io_uring_sqe *sqe;
	struct received r;

	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_recvmsg(sqe, self->rx, &im, 0);
	sqe->user_data = 5;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, 5, 0);
	sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
	sqe->user_data = 6;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	ASSERT_EQ(-ECANCELED, wait_for(&self->ring, 5, NULL));
	/* It took no message with it. */
	ASSERT_EQ(1, dblp_send(self->tx, &self->to, "x", 1, NULL));
	EXPECT_EQ(1, dblp_recv_wait(self->rx, buf, sizeof(buf), &r));
}

#else

TEST(uring)
{
	SKIP(return, "built without liburing");
}

#endif

TEST_HARNESS_MAIN

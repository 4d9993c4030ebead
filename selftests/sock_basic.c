// SPDX-License-Identifier: GPL-2.0
/*
 * socket(), bind(), connect(), names, and which calls and addresses are refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "dblp_util.h"
#include "dblp_harness.h"

#ifndef SOL_DBLP
#error "linux/dblp.h is not the project's"
#endif

FIXTURE(basic)
{
	int a, b;
	union address aa, ba;
};

FIXTURE_SETUP(basic)
{
	ASSERT_TRUE(netns_enter());
	self->a = dblp_open(0);
	ASSERT_GE(self->a, 0) TH_LOG("is the module loaded?");
	self->b = dblp_open_bound(AF_INET, &self->ba);
	ASSERT_GE(self->b, 0);
}

FIXTURE_TEARDOWN(basic)
{
	close(self->a);
	close(self->b);
}

TEST_F(basic, types)
{
	static const struct {
		int type, protocol, error;
	} cases[] = {
		{ SOCK_STREAM, 0, ESOCKTNOSUPPORT },
		{ SOCK_DGRAM, 0, ESOCKTNOSUPPORT },
		{ SOCK_SEQPACKET, 0, ESOCKTNOSUPPORT },
		{ SOCK_RAW, 0, ESOCKTNOSUPPORT },
		{ SOCK_RDM, IPPROTO_UDP, EPROTONOSUPPORT },
		{ SOCK_RDM, 1, EPROTONOSUPPORT },
	};
	int pair[2];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(-1, socket(dblp_family(), cases[i].type, cases[i].protocol));
		EXPECT_EQ(cases[i].error, errno) TH_LOG("case %zu", i);
	}
	EXPECT_EQ(-1, socketpair(dblp_family(), SOCK_RDM, 0, pair));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(basic, socket_flags)
{
	int fd = dblp_open(SOCK_NONBLOCK | SOCK_CLOEXEC);

	ASSERT_GE(fd, 0);
	EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

TEST_F(basic, identity)
{
	socklen_t len = sizeof(int);
	int v;

	ASSERT_EQ(0, getsockopt(self->a, SOL_SOCKET, SO_DOMAIN, &v, &len));
	EXPECT_EQ(dblp_family(), v);
	ASSERT_EQ(0, getsockopt(self->a, SOL_SOCKET, SO_TYPE, &v, &len));
	EXPECT_EQ(SOCK_RDM, v);
	ASSERT_EQ(0, getsockopt(self->a, SOL_SOCKET, SO_PROTOCOL, &v, &len));
	EXPECT_EQ(0, v);
	ASSERT_EQ(0, getsockopt(self->a, SOL_SOCKET, SO_ERROR, &v, &len));
	EXPECT_EQ(0, v);
}

TEST_F(basic, no_connections)
{
	EXPECT_EQ(-1, listen(self->b, 1));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(-1, accept(self->b, NULL, NULL));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(basic, bind_refused)
{
	static const struct {
		const char *address;
		int error;
	} cases[] = {
		{ "192.0.2.1", EADDRNOTAVAIL },
		{ "224.0.0.1", EADDRNOTAVAIL },
		{ "255.255.255.255", EADDRNOTAVAIL },
		{ "2001:db8::1", EADDRNOTAVAIL },
		{ "ff02::1", EADDRNOTAVAIL },
		{ "fe80::1", EINVAL },		/* no scope */
	};
	union address a = { };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_TRUE(address_parse(&a, cases[i].address, 0));
		EXPECT_EQ(-1, bind(self->a, &a.sa, address_len(&a)));
		EXPECT_EQ(cases[i].error, errno) TH_LOG("%s", cases[i].address);
	}
}

TEST_F(basic, bind_wrong_address)
{
	union address a = { };

	a.sa.sa_family = AF_UNIX;
	EXPECT_EQ(-1, bind(self->a, &a.sa, sizeof(a)));
	EXPECT_EQ(EAFNOSUPPORT, errno);
	a.sa.sa_family = dblp_family();
	EXPECT_EQ(-1, bind(self->a, &a.sa, sizeof(a)));
	EXPECT_EQ(EAFNOSUPPORT, errno);
	a.sa.sa_family = AF_UNSPEC;
	EXPECT_EQ(-1, bind(self->a, &a.sa, sizeof(a)));
	EXPECT_EQ(EAFNOSUPPORT, errno);

	address_parse(&a, "127.0.0.1", 0);
	EXPECT_EQ(-1, bind(self->a, &a.sa, sizeof(a.v4) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, bind(self->a, &a.sa, 1));
	EXPECT_EQ(EINVAL, errno);
	address_parse(&a, "::1", 0);
	EXPECT_EQ(-1, bind(self->a, &a.sa, sizeof(a.v4)));
	EXPECT_EQ(EINVAL, errno);
	/* After all that it can still be bound. */
	EXPECT_EQ(0, bind(self->a, &a.sa, sizeof(a.v6)));
}

TEST_F(basic, bind_twice)
{
	union address a;

	address_parse(&a, "127.0.0.1", 0);
	EXPECT_EQ(-1, bind(self->b, &a.sa, address_len(&a)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, bind(self->a, &self->ba.sa, address_len(&self->ba)));
	EXPECT_EQ(EADDRINUSE, errno);
	/* A port that plain UDP has is taken, too: it is the same port. */
	close(self->b);
	self->b = socket(AF_INET, SOCK_DGRAM, 0);
	ASSERT_GE(self->b, 0);
	ASSERT_EQ(0, bind(self->b, &a.sa, address_len(&a)));
	ASSERT_EQ(0, getsockname(self->b, &a.sa, &(socklen_t){ sizeof(a) }));
	EXPECT_EQ(-1, bind(self->a, &a.sa, address_len(&a)));
	EXPECT_EQ(EADDRINUSE, errno);
}

TEST_F(basic, port_is_free_after_close)
{
	int i, fd;

	for (i = 0; i < 5; i++) {
		close(self->b);
		fd = dblp_open(0);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, bind(fd, &self->ba.sa, address_len(&self->ba)))
			TH_LOG("round %d: %s", i, strerror(errno));
		self->b = fd;
	}
}

TEST_F(basic, privileged_port)
{
	union address a;

	address_parse(&a, "127.0.0.1", 99);
	ASSERT_EQ(0, setresuid(65534, 65534, 65534));
	EXPECT_EQ(-1, bind(self->a, &a.sa, address_len(&a)));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(basic, names)
{
	union address a = { };
	socklen_t len = sizeof(a);

	EXPECT_EQ(-1, getpeername(self->b, &a.sa, &len));
	EXPECT_EQ(ENOTCONN, errno);
	/* Not bound, it is nobody of either version. */
	ASSERT_EQ(0, getsockname(self->a, &a.sa, &len));
	EXPECT_EQ(sizeof(a.v6), len);
	EXPECT_EQ(AF_INET6, a.sa.sa_family);
	EXPECT_EQ(0, address_port(&a));
	EXPECT_TRUE(IN6_IS_ADDR_UNSPECIFIED(&a.v6.sin6_addr));
	len = sizeof(a);
	ASSERT_EQ(0, getsockname(self->b, &a.sa, &len));
	EXPECT_EQ(sizeof(a.v4), len);
	EXPECT_EQ(AF_INET, a.sa.sa_family);
	EXPECT_EQ(htonl(INADDR_LOOPBACK), a.v4.sin_addr.s_addr);
	EXPECT_NE(0, a.v4.sin_port);

	ASSERT_EQ(0, connect(self->a, &self->ba.sa, address_len(&self->ba)));
	len = sizeof(a);
	ASSERT_EQ(0, getpeername(self->a, &a.sa, &len));
	EXPECT_EQ(0, memcmp(&a.v4, &self->ba.v4, 8));
	len = sizeof(a);
	/* connect() binds. */
	ASSERT_EQ(0, getsockname(self->a, &a.sa, &len));
	EXPECT_NE(0, address_port(&a));
}

TEST_F(basic, connect_refused)
{
	static const struct {
		const char *address;
		int port, error;
	} cases[] = {
		{ "127.0.0.1", 0, EINVAL },
		{ "0.0.0.0", 5, ENETUNREACH },
		{ "::", 5, ENETUNREACH },
		{ "224.0.0.1", 5, ENETUNREACH },
		{ "255.255.255.255", 5, ENETUNREACH },
		{ "ff02::1", 5, ENETUNREACH },
		{ "192.0.2.1", 5, ENETUNREACH },
		{ "fe80::1", 5, EINVAL },
	};
	union address a = { };
	char byte = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_TRUE(address_parse(&a, cases[i].address, cases[i].port));
		EXPECT_EQ(-1, connect(self->a, &a.sa, address_len(&a)));
		EXPECT_EQ(cases[i].error, errno) TH_LOG("%s", cases[i].address);
		EXPECT_EQ(-1, sendto(self->a, &byte, 1, 0, &a.sa, address_len(&a)));
		EXPECT_EQ(cases[i].error, errno) TH_LOG("sendto %s", cases[i].address);
	}
	a.sa.sa_family = AF_UNIX;
	EXPECT_EQ(-1, connect(self->a, &a.sa, sizeof(a)));
	EXPECT_EQ(EAFNOSUPPORT, errno);
	EXPECT_EQ(-1, connect(self->a, &self->ba.sa, 4));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, getpeername(self->a, &a.sa, &(socklen_t){ sizeof(a) }));
	EXPECT_EQ(ENOTCONN, errno);
}

TEST_F(basic, disconnect)
{
	union address a = { .sa.sa_family = AF_UNSPEC };
	char byte = 0;

	ASSERT_EQ(0, connect(self->a, &self->ba.sa, address_len(&self->ba)));
	EXPECT_EQ(1, send(self->a, &byte, 1, 0));
	ASSERT_EQ(0, connect(self->a, &a.sa, sizeof(a.sa)));
	EXPECT_EQ(-1, getpeername(self->a, &a.sa, &(socklen_t){ sizeof(a) }));
	EXPECT_EQ(ENOTCONN, errno);
	EXPECT_EQ(-1, send(self->a, &byte, 1, 0));
	EXPECT_EQ(EDESTADDRREQ, errno);
}

TEST_F(basic, destination_needed)
{
	char byte = 0;

	EXPECT_EQ(-1, send(self->a, &byte, 1, 0));
	EXPECT_EQ(EDESTADDRREQ, errno);
	EXPECT_EQ(-1, write(self->b, &byte, 1));
	EXPECT_EQ(EDESTADDRREQ, errno);
}

TEST_F(basic, autobind)
{
	struct received r;
	union address a;
	char buf[8];

	ASSERT_EQ(3, dblp_send(self->a, &self->ba, "abc", 3, NULL));
	ASSERT_EQ(0, getsockname(self->a, &a.sa, &(socklen_t){ sizeof(a) }));
	EXPECT_NE(0, address_port(&a));
	ASSERT_EQ(3, dblp_recv_wait(self->b, buf, sizeof(buf), &r));
	EXPECT_EQ(0, memcmp(buf, "abc", 3));
	EXPECT_EQ(address_port(&a), address_port(&r.peer));
	EXPECT_EQ(AF_INET, r.peer.sa.sa_family);
	EXPECT_EQ(htonl(INADDR_LOOPBACK), r.peer.v4.sin_addr.s_addr);
	/* The answer goes to the name that came with it. */
	ASSERT_EQ(4, dblp_send(self->b, &r.peer, "back", 4, NULL));
	ASSERT_EQ(4, dblp_recv_wait(self->a, buf, sizeof(buf), &r));
	EXPECT_EQ(address_port(&self->ba), address_port(&r.peer));
	/* Who began with a sockaddr_in sees such ones. */
	EXPECT_EQ(AF_INET, r.peer.sa.sa_family);
}

/* Not bound, one socket talks both IPv4 and IPv6. */
TEST_F(basic, autobind_dual_stack)
{
	struct received r;
	union address a6;
	char buf[8];
	int fd6;

	fd6 = dblp_open_bound(AF_INET6, &a6);
	ASSERT_GE(fd6, 0);
	ASSERT_EQ(2, dblp_send(self->a, &self->ba, "v4", 2, NULL));
	ASSERT_EQ(2, dblp_send(self->a, &a6, "v6", 2, NULL));
	ASSERT_EQ(2, dblp_recv_wait(self->b, buf, sizeof(buf), &r));
	EXPECT_EQ(0, memcmp(buf, "v4", 2));
	ASSERT_EQ(2, dblp_recv_wait(fd6, buf, sizeof(buf), &r));
	EXPECT_EQ(0, memcmp(buf, "v6", 2));
	EXPECT_EQ(AF_INET6, r.peer.sa.sa_family);
	ASSERT_EQ(1, dblp_send(fd6, &r.peer, "6", 1, NULL));
	ASSERT_EQ(1, dblp_recv_wait(self->a, buf, sizeof(buf), &r));
}

TEST_F(basic, dual_stack_wildcard)
{
	union address any, to;
	struct received r;
	char buf[8];
	int fd;

	fd = dblp_open(0);
	ASSERT_GE(fd, 0);
	address_parse(&any, "::", 0);
	ASSERT_EQ(0, bind(fd, &any.sa, address_len(&any)));
	ASSERT_EQ(0, getsockname(fd, &any.sa, &(socklen_t){ sizeof(any) }));

	/* From IPv4: comes in with a mapped address, and can be answered there. */
	address_parse(&to, "127.0.0.1", address_port(&any));
	ASSERT_EQ(2, dblp_send(self->b, &to, "v4", 2, NULL));
	ASSERT_EQ(2, dblp_recv_wait(fd, buf, sizeof(buf), &r));
	EXPECT_EQ(AF_INET6, r.peer.sa.sa_family);
	EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&r.peer.v6.sin6_addr));
	EXPECT_EQ(address_port(&self->ba), address_port(&r.peer));
	ASSERT_EQ(4, dblp_send(fd, &r.peer, "back", 4, NULL));
	ASSERT_EQ(4, dblp_recv_wait(self->b, buf, sizeof(buf), &r));
	EXPECT_EQ(address_port(&any), address_port(&r.peer));

	address_parse(&to, "::1", address_port(&any));
	ASSERT_EQ(2, dblp_send(self->a, &to, "v6", 2, NULL));
	ASSERT_EQ(2, dblp_recv_wait(fd, buf, sizeof(buf), &r));
	EXPECT_FALSE(IN6_IS_ADDR_V4MAPPED(&r.peer.v6.sin6_addr));
	close(fd);
}

TEST_F(basic, v6only)
{
	union address any, to;
	int fd, fd2;

	fd = dblp_open(0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, set_int(fd, SOL_IPV6, IPV6_V6ONLY, 1));
	address_parse(&any, "::", 0);
	ASSERT_EQ(0, bind(fd, &any.sa, address_len(&any)));
	ASSERT_EQ(0, getsockname(fd, &any.sa, &(socklen_t){ sizeof(any) }));
	EXPECT_EQ(-1, set_int(fd, SOL_IPV6, IPV6_V6ONLY, 0));
	EXPECT_EQ(EINVAL, errno);
	/* So the IPv4 port is still free. */
	fd2 = dblp_open(0);
	address_parse(&to, "0.0.0.0", address_port(&any));
	EXPECT_EQ(0, bind(fd2, &to.sa, address_len(&to))) TH_LOG("%s", strerror(errno));
	close(fd);
	close(fd2);
}

TEST_F(basic, family_mismatch)
{
	union address to;
	char byte = 0;

	/* A socket bound to an IPv4 address cannot reach IPv6. */
	address_parse(&to, "::1", 9);
	EXPECT_EQ(-1, sendto(self->b, &byte, 1, 0, &to.sa, address_len(&to)));
	EXPECT_EQ(EAFNOSUPPORT, errno);
	EXPECT_EQ(-1, connect(self->b, &to.sa, address_len(&to)));
	EXPECT_EQ(EAFNOSUPPORT, errno);
	close(self->a);
	self->a = dblp_open_bound(AF_INET6, &self->aa);
	ASSERT_GE(self->a, 0);
	EXPECT_EQ(-1, dblp_send(self->a, &self->ba, &byte, 1, NULL));
	EXPECT_EQ(EAFNOSUPPORT, errno);
}

TEST_F(basic, bind_mapped)
{
	union address a;
	struct received r;
	char buf[4];

	address_parse(&a, "::ffff:127.0.0.1", 0);
	ASSERT_EQ(0, bind(self->a, &a.sa, address_len(&a)));
	ASSERT_EQ(0, getsockname(self->a, &a.sa, &(socklen_t){ sizeof(a) }));
	EXPECT_EQ(AF_INET6, a.sa.sa_family);
	EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&a.v6.sin6_addr));
	address_parse(&a, "127.0.0.1", address_port(&a));
	ASSERT_EQ(1, dblp_send(self->b, &a, "x", 1, NULL));
	ASSERT_EQ(1, dblp_recv_wait(self->a, buf, sizeof(buf), &r));
	EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&r.peer.v6.sin6_addr));
}

TEST_F(basic, connected_filters)
{
	union address ca, a;
	struct received r;
	char buf[8];
	int c;

	c = dblp_open_bound(AF_INET, &ca);
	ASSERT_GE(c, 0);
	ASSERT_EQ(0, connect(self->a, &self->ba.sa, address_len(&self->ba)));
	ASSERT_EQ(0, getsockname(self->a, &a.sa, &(socklen_t){ sizeof(a) }));
	/* Who speaks IPv4 is told so; the wildcard is reached by the loopback address. */
	EXPECT_EQ(AF_INET, a.sa.sa_family);
	EXPECT_EQ(0, a.v4.sin_addr.s_addr);
	address_parse(&a, "127.0.0.1", address_port(&a));
	/* From a third party, then from the peer: only the second is seen. */
	ASSERT_EQ(2, dblp_send(c, &a, "no", 2, NULL));
	ASSERT_EQ(3, dblp_send(self->b, &a, "yes", 3, NULL));
	ASSERT_EQ(3, dblp_recv_wait(self->a, buf, sizeof(buf), &r));
	EXPECT_EQ(0, memcmp(buf, "yes", 3));
	EXPECT_EQ(-1, dblp_recv(self->a, buf, sizeof(buf), MSG_DONTWAIT, &r));
	EXPECT_EQ(EAGAIN, errno);
	close(c);
}

TEST_F(basic, shutdown)
{
	char byte = 0;

	EXPECT_EQ(-1, shutdown(self->a, 7));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, connect(self->a, &self->ba.sa, address_len(&self->ba)));
	ASSERT_EQ(0, shutdown(self->a, SHUT_WR));
	EXPECT_EQ(-1, send(self->a, &byte, 1, MSG_NOSIGNAL));
	EXPECT_EQ(EPIPE, errno);
	ASSERT_EQ(0, shutdown(self->a, SHUT_RD));
	EXPECT_EQ(0, recv(self->a, &byte, 1, 0));
	EXPECT_TRUE(wait_events(self->a, POLLIN | POLLRDHUP, 0) & POLLIN);
}

TEST_F(basic, shutdown_wakes_reader)
{
	char byte;
	pid_t pid;
	int status;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(recv(self->b, &byte, 1, 0) == 0 ? 0 : 1);
	/* Until it sleeps in there. */
	for (;;) {
		char path[64], state = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		f = fopen(path, "r");
		ASSERT_NE(NULL, f);
		ASSERT_EQ(1, fscanf(f, "%*d (%*[^)]) %c", &state));
		fclose(f);
		if (state == 'S')
			break;
		poll(NULL, 0, 1);
	}
	ASSERT_EQ(0, shutdown(self->b, SHUT_RD));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(basic, ioctls)
{
	int v = -1, one = 1;
	char buf[64];

	ASSERT_EQ(0, ioctl(self->b, FIONBIO, &one));
	EXPECT_EQ(-1, recv(self->b, buf, sizeof(buf), 0));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, ioctl(self->b, SIOCINQ, &v));
	EXPECT_EQ(0, v);
	ASSERT_EQ(0, ioctl(self->a, SIOCOUTQ, &v));
	EXPECT_EQ(0, v);
	ASSERT_EQ(5, dblp_send(self->a, &self->ba, "12345", 5, NULL));
	ASSERT_TRUE(wait_events(self->b, POLLIN, DBLP_WAIT_MS));
	/* The length of the next message. */
	ASSERT_EQ(0, ioctl(self->b, SIOCINQ, &v));
	EXPECT_EQ(5, v);
	EXPECT_EQ(-1, ioctl(self->b, 0x4242, &v));
	EXPECT_EQ(ENOTTY, errno);
}

TEST_F(basic, bind_to_device)
{
	union address any;
	int fd = dblp_open(0);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2));
	address_parse(&any, "0.0.0.0", 0);
	ASSERT_EQ(0, bind(fd, &any.sa, address_len(&any)));
	EXPECT_EQ(1, dblp_send(fd, &self->ba, "x", 1, NULL));
	EXPECT_TRUE(wait_events(self->b, POLLIN, DBLP_WAIT_MS));
	close(fd);
}

TEST_F(basic, close_with_unread)
{
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(5, dblp_send(self->a, &self->ba, "12345", 5, NULL));
	ASSERT_TRUE(wait_events(self->b, POLLIN, DBLP_WAIT_MS));
	EXPECT_EQ(0, close(self->b));
	EXPECT_EQ(0, close(self->a));
	self->a = dblp_open(0);
	self->b = dblp_open_bound(AF_INET, &self->ba);
	EXPECT_GE(self->b, 0);
}

TEST_HARNESS_MAIN

// SPDX-License-Identifier: GPL-2.0
/*
 * Sends a megabyte of which a twentieth may be missing, but never the first 64 bytes,
 * and prints what became of it.
 *
 *	bounded_send ADDRESS PORT
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/dblp.h>

static float gradient[250000];
static char map[4096];

int main(int argc, char **argv)
{
	struct dblp_send_params params = { .tolerance_ppm = 50000, .tag = 7 };
	struct dblp_range header = { .off = 0, .len = 64 };
	char control[CMSG_SPACE(sizeof(params)) + CMSG_SPACE(sizeof(header))] = { 0 };
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct iovec iov = { gradient, sizeof(gradient) };
	struct msghdr msg = {
		.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct dblp_completion done;
	const struct dblp_map *holes;
	struct cmsghdr *c;
	int fd, on = 1;

	if (argc != 3 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
		errx(2, "usage: bounded_send ADDRESS PORT");
	to.sin_port = htons(atoi(argv[2]));
	fd = socket(AF_DBLP, SOCK_RDM, 0);
	if (fd < 0)
		err(1, "socket (is the dblp module loaded?)");
	if (setsockopt(fd, SOL_DBLP, DBLP_SO_COMPLETIONS, &on, sizeof(on)))
		err(1, "setsockopt");

	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_DBLP;
	c->cmsg_type = DBLP_CMSG_SEND;
	c->cmsg_len = CMSG_LEN(sizeof(params));
	memcpy(CMSG_DATA(c), &params, sizeof(params));
	c = CMSG_NXTHDR(&msg, c);
	c->cmsg_level = SOL_DBLP;
	c->cmsg_type = DBLP_CMSG_PROTECT;
	c->cmsg_len = CMSG_LEN(sizeof(header));
	memcpy(CMSG_DATA(c), &header, sizeof(header));
	if (sendmsg(fd, &msg, 0) < 0)
		err(1, "sendmsg");

	/* The buffer is free again.  What became of the message comes as a message. */
	iov = (struct iovec){ &done, sizeof(done) };
	msg.msg_control = map;
	msg.msg_controllen = sizeof(map);
	if (recvmsg(fd, &msg, 0) < (ssize_t)sizeof(done))
		err(1, "recvmsg");
	printf("outcome %u, message of %llu bytes, %llu bytes missing at the receiver\n",
	       done.outcome, (unsigned long long)done.len,
	       (unsigned long long)done.missing_bytes);
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_DBLP || c->cmsg_type != DBLP_CMSG_MAP)
			continue;
		holes = (const struct dblp_map *)CMSG_DATA(c);
		for (unsigned int i = 0; i < holes->nr_segs; i++)
			if (holes->bits[i / 64] >> (i % 64) & 1)
				printf("missing: %u bytes from %u\n", holes->seg_size,
				       i * holes->seg_size);
	}
	return done.outcome != DBLP_OUTCOME_OK;
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Sends or receives messages whose every byte is known, and prints what became of each
 * as one line of key=value words.  For the scripts; see usage().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dblp_util.h"

#define MAX_RANGES	64
#define MAX_SOCKETS	256

static struct {
	bool send, ask, partial, keep, hold, any;
	const char *address;
	int port, sockets, buffer;
	size_t size, count, window;
	uint64_t tag, limit;
	uint32_t dead;
	long timeout;
	struct dblp_send_params p;
	struct dblp_range range[MAX_RANGES];
	size_t nranges;
} o = {
	.address = "::", .sockets = 1, .size = 1 << 20, .count = 1, .window = SIZE_MAX,
	.tag = 1, .timeout = 300, .buffer = 256 << 20,
};

static void usage(FILE *f)
{
	fputs("usage: dblp_xfer recv [-l ADDRESS] [-p PORT] [-n COUNT] ...\n"
	      "       dblp_xfer send -d ADDRESS -p PORT [-s SIZE] [-n COUNT] ...\n"
	      "both:     -n messages  -B buffer bytes  -t seconds until it fails\n"
	      "          -D dead time in ms\n"
	      "receiver: -l address  -M largest message taken  -P partial messages too\n"
	      "          -k keep holes  -z do not read before a line comes on stdin\n"
	      "          -u any payload will do\n"
	      "sender:   -d address  -s bytes  -T tolerance in ppm  -E eager  -o ordered\n"
	      "          -R OFF:LEN protect (repeat)  -x deadline in us  -r rounds\n"
	      "          -g group  -a tag of the first message  -w unfinished at most\n"
	      "          -S sockets  -i send one message for each line on stdin\n"
	      "Prints \"ready port=N\", a line for each message (rx ...) or completion\n"
	      "(tx ...), and \"done ...\". Fails if payload is wrong or time is over.\n", f);
}

static __attribute__((noreturn, format(printf, 1, 2))) void die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("dblp_xfer: ", stderr);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void expired(int sig)
{
	static const char text[] = "dblp_xfer: time is over\n";

	if (write(2, text, sizeof(text) - 1))
		_exit(3);
	_exit(3);
}

static unsigned long long number(const char *s)
{
	char *end;
	unsigned long long v = strtoull(s, &end, 0);

	switch (*end) {
	case 'G':
		v <<= 10;
		/* fall through */
	case 'M':
		v <<= 10;
		/* fall through */
	case 'K':
		v <<= 10;
		end++;
	}
	if (end == s || *end)
		die("'%s' is no number", s);
	return v;
}

static void parse(int argc, char **argv)
{
	char *colon;
	int c;

	if (argc < 2)
		goto wrong;
	if (!strcmp(argv[1], "send"))
		o.send = true;
	else if (strcmp(argv[1], "recv"))
		goto wrong;
	while ((c = getopt(argc - 1, argv + 1,
			   "hl:d:p:n:B:t:D:M:Pkzus:T:EoR:x:r:g:a:w:S:i")) != -1) {
		switch (c) {
		case 'l':
		case 'd':
			o.address = optarg;
			break;
		case 'p':
			o.port = number(optarg);
			break;
		case 'n':
			o.count = number(optarg);
			break;
		case 'B':
			o.buffer = number(optarg);
			break;
		case 't':
			o.timeout = number(optarg);
			break;
		case 'D':
			o.dead = number(optarg);
			break;
		case 'M':
			o.limit = number(optarg);
			break;
		case 'P':
			o.partial = true;
			break;
		case 'k':
			o.keep = true;
			break;
		case 'z':
			o.hold = true;
			break;
		case 'u':
			o.any = true;
			break;
		case 's':
			o.size = number(optarg);
			break;
		case 'T':
			o.p.tolerance_ppm = number(optarg);
			break;
		case 'E':
			o.p.mode = DBLP_MODE_EAGER;
			break;
		case 'o':
			o.p.flags |= DBLP_SEND_ORDERED;
			break;
		case 'R':
			colon = strchr(optarg, ':');
			if (!colon || o.nranges == MAX_RANGES)
				die("-R wants OFF:LEN, %d times at most", MAX_RANGES);
			*colon = '\0';
			o.range[o.nranges].off = number(optarg);
			o.range[o.nranges++].len = number(colon + 1);
			break;
		case 'x':
			o.p.deadline_us = number(optarg);
			break;
		case 'r':
			o.p.max_rounds = number(optarg);
			break;
		case 'g':
			o.p.group = number(optarg);
			break;
		case 'a':
			o.tag = number(optarg);
			break;
		case 'w':
			o.window = number(optarg);
			break;
		case 'S':
			o.sockets = number(optarg);
			break;
		case 'i':
			o.ask = true;
			o.window = 1;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			goto wrong;
		}
	}
	if (o.sockets < 1 || o.sockets > MAX_SOCKETS)
		die("-S: 1 to %d", MAX_SOCKETS);
	if (o.send && !o.port)
		die("send wants -p");
	return;
wrong:
	usage(stderr);
	exit(2);
}

static int open_socket(void)
{
	int fd = dblp_open(0);

	if (fd < 0)
		die("socket: %s", strerror(errno));
	if (!set_buffers(fd, o.buffer))
		die("buffers: %s", strerror(errno));
	if (o.dead && setsockopt(fd, SOL_DBLP, DBLP_SO_DEAD_TIME, &o.dead, sizeof(o.dead)))
		die("dead time: %s", strerror(errno));
	return fd;
}

/* Waits for a line on standard input; false at its end. */
static bool go(void)
{
	char c;

	while (read(0, &c, 1) == 1)
		if (c == '\n')
			return true;
	return false;
}

static unsigned long long digest(const struct received *r)
{
	return r->has_map ? map_digest(r->map_segs, r->map, r->map_words) : 0;
}

/* Bytes of the protected ranges that lie in missing segments. */
static size_t protected_missing(const struct received *r)
{
	size_t n = 0, i, off;

	if (!r->has_map)
		return 0;
	for (i = 0; i < o.nranges; i++)
		for (off = o.range[i].off; off < o.range[i].off + o.range[i].len; off++)
			n += map_test(r->map, off / r->map_seg_size);
	return n;
}

/*
 * The sender may still have to learn what became of its last message, and a socket that
 * is closed answers nothing.  SIGTERM is blocked, so it may have come long ago.
 */
static void wait_for_term(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigwait(&set, &sig);
}

static void block_term(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int receive(void)
{
	static unsigned char small[4096];
	unsigned char *buf = NULL;
	size_t size = 0, n, wrong, bad = 0;
	union address a;
	struct received r;
	unsigned char hole = 0;
	int fd = open_socket();

	if (!address_parse(&a, o.address, o.port))
		die("'%s' is no address", o.address);
	if (bind(fd, &a.sa, address_len(&a)))
		die("bind: %s", strerror(errno));
	if (o.limit && setsockopt(fd, SOL_DBLP, DBLP_SO_MAX_MESSAGE, &o.limit, 8))
		die("limit: %s", strerror(errno));
	if (o.partial && set_int(fd, SOL_DBLP, DBLP_SO_PARTIAL, 1))
		die("partial: %s", strerror(errno));
	if (o.keep) {
		if (set_int(fd, SOL_DBLP, DBLP_SO_HOLES, DBLP_HOLES_KEEP))
			die("holes: %s", strerror(errno));
		hole = 0xee;
	}
	getsockname(fd, &a.sa, &(socklen_t){ sizeof(a) });
	printf("ready port=%u\n", address_port(&a));
	if (o.hold)
		go();
	for (n = 0; n < o.count; n++) {
		if (dblp_recv(fd, small, 1, MSG_PEEK | MSG_TRUNC, &r) < 0)
			die("recvmsg: %s", strerror(errno));
		if (r.info.len > size) {
			size = r.info.len;
			buf = realloc(buf, size);
			if (!buf)
				die("no memory for %zu bytes", size);
		}
		/* What a hole or a missing write leaves must not look right. */
		memset(buf, 0xee, r.info.len);
		if (dblp_recv(fd, buf, size, 0, &r) < 0)
			die("recvmsg: %s", strerror(errno));
		wrong = r.flags & (MSG_TRUNC | MSG_CTRUNC) || !r.has_info ||
			(size_t)r.len != r.info.len || r.has_map != !!r.info.missing_segs;
		if (!o.any)
			wrong += message_diff(buf, r.len, r.info.tag, &r, hole);
		bad += wrong;
		printf("rx tag=%llu from=%s id=%llu len=%llu missing=%llu allowed=%llu nr_segs=%u seg_size=%u missing_segs=%u map=%016llx partial=%d bad=%zu\n",
		       (unsigned long long)r.info.tag, address_text(&r.peer),
		       (unsigned long long)r.info.msg_id, (unsigned long long)r.info.len,
		       (unsigned long long)r.info.missing_bytes,
		       (unsigned long long)r.info.allowed_bytes, r.info.nr_segs,
		       r.info.seg_size, r.info.missing_segs, digest(&r),
		       r.info.flags & DBLP_RECV_PARTIAL ? 1 : 0, wrong);
	}
	printf("done received=%zu bad=%zu\n", n, bad);
	wait_for_term();
	return bad ? 1 : 0;
}

static const char *const outcomes[] = { "ok", "below", "refused", "unknown" };

static void print_completion(const struct received *r)
{
	const struct dblp_completion *d = &r->done;

	printf("tx tag=%llu peer=%s id=%llu outcome=%s error=%d len=%llu missing=%llu limit=%llu sent=%llu retransmitted=%llu nr_segs=%u seg_size=%u missing_segs=%u lost_segs=%u rounds=%u duration_us=%u map=%016llx protected_missing=%zu\n",
	       (unsigned long long)d->tag, address_text(&r->peer),
	       (unsigned long long)d->msg_id,
	       d->outcome < 4 ? outcomes[d->outcome] : "wrong", d->error,
	       (unsigned long long)d->len, (unsigned long long)d->missing_bytes,
	       (unsigned long long)d->limit, (unsigned long long)d->sent_bytes,
	       (unsigned long long)d->retransmitted_bytes, d->nr_segs, d->seg_size,
	       d->missing_segs, d->lost_segs, d->rounds, d->duration_us, digest(r),
	       protected_missing(r));
}

/* Takes one completion from any of the sockets. */
static bool take_completion(struct pollfd *fds, size_t *count)
{
	char buf[512];
	struct received r;
	int i;

	for (i = 0; i < o.sockets; i++) {
		if (!(fds[i].revents & POLLIN))
			continue;
		if (dblp_recv(fds[i].fd, buf, sizeof(buf), MSG_DONTWAIT, &r) < 0)
			die("completion: %s", strerror(errno));
		if (!r.completion)
			die("a message from %s where a completion was due",
			    address_text(&r.peer));
		print_completion(&r);
		count[r.done.outcome & 3]++;
		return true;
	}
	return false;
}

static int send_all(void)
{
	struct send_extra x = {
		.params = &o.p, .ranges = o.range, .nranges = o.nranges,
		.flags = MSG_DONTWAIT,
	};
	unsigned char *buf = malloc(o.size);
	size_t sent = 0, done = 0, count[4] = { }, total = o.count * o.sockets;
	struct pollfd fds[MAX_SOCKETS] = { };
	uint64_t filled = 0;
	union address a;
	bool full;
	int i;

	if (!buf)
		die("no memory");
	if (!address_parse(&a, o.address, o.port))
		die("'%s' is no address", o.address);
	for (i = 0; i < o.sockets; i++) {
		fds[i].fd = open_socket();
		if (set_int(fds[i].fd, SOL_DBLP, DBLP_SO_COMPLETIONS, 1))
			die("completions: %s", strerror(errno));
	}
	printf("ready port=0\n");
	while (done < total) {
		full = false;
		while (sent < total && sent - done < o.window && !full) {
			if (o.ask && !go()) {
				total = sent;
				break;
			}
			o.p.tag = o.tag + sent;
			if (filled != o.p.tag) {
				pattern_fill(buf, o.size, o.p.tag, 0);
				filled = o.p.tag;
			}
			if (dblp_send(fds[sent % o.sockets].fd, &a, buf, o.size, &x) < 0) {
				if (errno != EAGAIN)
					die("sendmsg: %s", strerror(errno));
				full = true;
			} else {
				sent++;
			}
		}
		if (done >= total)
			break;
		for (i = 0; i < o.sockets; i++)
			fds[i].events = POLLIN;
		if (full)
			fds[sent % o.sockets].events |= POLLOUT;
		if (poll(fds, o.sockets, -1) < 0)
			die("poll: %s", strerror(errno));
		done += take_completion(fds, count);
	}
	printf("done sent=%zu ok=%zu below=%zu refused=%zu unknown=%zu\n", sent, count[0],
	       count[1], count[2], count[3]);
	return 0;
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, expired);
	alarm(o.timeout);
	if (o.send)
		return send_all();
	block_term();
	return receive();
}

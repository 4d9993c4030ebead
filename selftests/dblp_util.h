/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests share: sockets, control messages, counters, payloads whose
 * every byte is known.
 */
#ifndef DBLP_UTIL_H
#define DBLP_UTIL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <linux/dblp.h>

#ifndef MSG_NOTIFICATION
#define MSG_NOTIFICATION	0x8000	/* not in the C library's headers */
#endif

/* Long enough for a loaded emulator, short enough for the harness to report. */
#define DBLP_WAIT_MS	20000

#define DBLP_COUNTERS	"/proc/net/dblp/snmp"
#define DBLP_REJECT	"reject_"	/* how the counters of discards begin */

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage ss;
};

static inline socklen_t address_len(const union address *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

/* Returns false if @text is no address. */
bool address_parse(union address *a, const char *text, uint16_t port);
uint16_t address_port(const union address *a);
/* "1.2.3.4:5" or "[::1]:5", in a static buffer. */
const char *address_text(const union address *a);

/* The address family of the loaded module. */
int dblp_family(void);
/* Both return a socket, or -1 with errno. */
int dblp_open(int flags);
/* ... bound to a free port of the loopback address of @family; @self gets it. */
int dblp_open_bound(int family, union address *self);

/* A network namespace of its own for this process, with a working loopback. */
bool netns_enter(void);
/* Makes the loopback like a common network, so that segments are short. */
bool loopback_mtu(int mtu);
int set_int(int fd, int level, int option, int value);
/* Room for @bytes at both ends of the socket, beyond the system's limits. */
bool set_buffers(int fd, int bytes);
/* Waits for poll() events; returns revents, 0 after @ms. */
int wait_events(int fd, int events, int ms);
/* Monotonic clock. */
uint64_t now_ms(void);

/* Payload: byte @off of message @seed is always the same. */
void pattern_fill(void *buf, size_t len, uint64_t seed, uint64_t off);
/* Returns how many bytes differ from it. */
size_t pattern_diff(const void *buf, size_t len, uint64_t seed, uint64_t off);
size_t byte_diff(const void *buf, size_t len, unsigned char value);

/* What goes with a message; all but @params may be left zero. */
struct send_extra {
	const struct dblp_send_params *params;
	const struct dblp_range *ranges;
	size_t nranges;
	int flags;
};

/* sendmsg(); @to and @x may be NULL. */
ssize_t dblp_send(int fd, const union address *to, const void *buf, size_t len,
		  const struct send_extra *x);

/* What one recvmsg() returned; @map points to memory of the last call. */
struct received {
	ssize_t len;
	int flags;
	union address peer;
	bool has_info, has_map, completion;
	struct dblp_recv_info info;
	struct dblp_completion done;
	uint32_t map_segs, map_seg_size;
	size_t map_words;
	const uint64_t *map;
};

/* recvmsg() of a message or a completion; returns its length, or -1. */
ssize_t dblp_recv(int fd, void *buf, size_t size, int flags, struct received *r);
/* The same, waiting DBLP_WAIT_MS at most (then -1, ETIMEDOUT). */
ssize_t dblp_recv_wait(int fd, void *buf, size_t size, struct received *r);

static inline bool map_test(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

/* FNV-1a over segment count and words: the same maps have the same digest. */
uint64_t map_digest(uint32_t nsegs, const uint64_t *map, size_t words);

/*
 * Checks a message of @len bytes against pattern @seed: what is there must be right,
 * what is missing must be @hole.  Returns wrong bytes.
 */
size_t message_diff(const unsigned char *buf, size_t len, uint64_t seed,
		    const struct received *r, unsigned char hole);

/* All counters at one moment. */
struct counters {
	struct counter {
		char name[48];
		long long value;
	} c[256];
	size_t n;
};

/* Returns false if there is no such file. */
bool counters_read(struct counters *s);
/* Value of a counter, -1 if there is none of this name. */
long long counter_of(const struct counters *s, const char *name);
long long counter(const char *name);
/* By how much @name grew between two readings. */
long long counter_delta(const struct counters *a, const struct counters *b,
			const char *name);
/* Waits until counter @name is at least @value. */
bool counter_wait(const char *name, long long value);
/* Which counters of discards moved since @a, as "name+n name+n". */
const char *moved(const struct counters *a);
/* Waits until a packet was read and what moved is @want; else says what did. */
const char *moved_wait(const struct counters *a, const char *want);
/* Waits until probes and late answers of earlier messages are over. */
bool quiet(void);

#endif /* DBLP_UTIL_H */

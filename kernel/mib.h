/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of a network namespace, /proc/net/dblp/snmp: "name value" lines, first
 * those below, then one reject_NAME for each reason of core/reject.h.
 */
#ifndef DBLP_MIB_H
#define DBLP_MIB_H

#include <linux/types.h>
#include "reject.h"

/* X(NAME, name, what moves it) */
#define DBLP_MIBS(X)                                                              \
	X(MSGS_SENT, msgs_sent, "messages taken by sendmsg()")                    \
	X(MSGS_OK, msgs_ok, "sent messages that ended OK")                        \
	X(MSGS_BELOW, msgs_below, "sent messages that ended below their bound")   \
	X(MSGS_REFUSED, msgs_refused, "sent messages too large for the peer")     \
	X(MSGS_UNKNOWN, msgs_unknown, "sent messages whose flow died first")      \
	X(MSGS_COMPLETED, msgs_completed, "the sum of these four")                \
	X(MSGS_RECEIVED, msgs_received, "messages put into a receive queue")      \
	X(MSGS_PARTIAL, msgs_partial, "of them those below their bound")          \
	X(MSGS_UNWANTED, msgs_unwanted, "judged below the bound and dropped")     \
	X(BYTES_TOLERATED, bytes_tolerated, "missing in received messages that ended OK") \
	X(PKTS_SENT, pkts_sent, "packets sent")                                   \
	X(PKTS_RECEIVED, pkts_received, "packets received, rejected ones included") \
	X(SEGS_SENT, segs_sent, "segments sent for the first time")               \
	X(SEGS_RETRANSMITTED, segs_retransmitted, "segments sent again")          \
	X(BYTES_SENT, bytes_sent, "payload bytes sent for the first time")        \
	X(BYTES_RETRANSMITTED, bytes_retransmitted, "payload bytes sent again")   \
	X(SEGS_RECEIVED, segs_received, "segments kept")                          \
	X(BYTES_RECEIVED, bytes_received, "payload bytes kept")                   \
	X(PROBES_SENT, probes_sent, "expirations of the probe timer")             \
	X(NEEDS_SENT, needs_sent, "requests for repair")                          \
	X(BUSY_SENT, busy_sent, "messages told to wait for room")                 \
	X(BUSY_RECEIVED, busy_received, "… that the peer told so")                \
	X(GRANTS_SENT, grants_sent, "messages told that they have room")          \
	X(FLOWS_OPENED, flows_opened, "flows opened, as sender or receiver")      \
	X(FLOWS_DIED, flows_died, "flows killed by RESET, silence or ICMP")       \
	X(FLOWS_IDLE, flows_idle, "flows ended because nothing happened")         \
	X(RESETS_SENT, resets_sent, "RESET packets sent")                         \
	X(RESETS_RECEIVED, resets_received, "RESET packets obeyed")               \
	X(CHALLENGES_SENT, challenges_sent, "handshakes answered")                \
	X(XMIT_DROPPED, xmit_dropped, "packets not sent: no route or memory")     \
	X(XMIT_HELD, xmit_held, "sending paused: too much in the device queue")   \
	X(COMPLETIONS, completions, "completions put into a receive queue")       \
	X(MEMORY_PRESSURE, memory_pressure, "charges refused by net.dblp.mem or the cgroup")

enum dblp_mib {
#define X(name, str, what) DBLP_MIB_##name,
	DBLP_MIBS(X)
#undef X
	DBLP_MIB_REJECT,	/* + enum dblp_reject - 1 */
	DBLP_MIB_MAX = DBLP_MIB_REJECT + DBLP_REJECT_COUNT - 1,
};

struct dblp_mibs {
	u64 v[DBLP_MIB_MAX];
};

struct dblp_net;

/* Adds to a counter; any context. */
void dblp_mib_add(struct dblp_net *dn, enum dblp_mib i, u64 n);

static inline void dblp_mib_inc(struct dblp_net *dn, enum dblp_mib i)
{
	dblp_mib_add(dn, i, 1);
}

/* The sum over all CPUs. */
u64 dblp_mib_sum(struct dblp_net *dn, unsigned int i);
/* The name in the file; reject_NAME is put together by the caller. */
const char *dblp_mib_name(unsigned int i);

int dblp_mib_init(struct dblp_net *dn);
void dblp_mib_exit(struct dblp_net *dn);

#endif /* DBLP_MIB_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Every reason for which something received is discarded, once: the enum, the name
 * of the counter and the string in the trace all come from this list.
 */
#ifndef DBLP_REJECT_H
#define DBLP_REJECT_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, string, what moves it) */
#define DBLP_REJECTS(X)                                                           \
	X(VERSION, "version", "packet of another protocol version")               \
	X(TRUNCATED, "truncated", "datagram, packet or frame shorter than it says") \
	X(LENGTH, "length", "packet length below the header's or beyond the datagram") \
	X(RESERVED, "reserved", "a reserved field or flag is not zero")           \
	X(CRYPTO, "crypto", "tag or key epoch on a flow without keys")            \
	X(PATH, "path", "path number that is not in use")                         \
	X(CHECKSUM, "checksum", "UDP checksum is wrong")                          \
	X(FLOW, "flow", "no flow with this id (answered by RESET, rate-limited)") \
	X(ADDR, "addr", "right flow id from a wrong address, or sent to a group") \
	X(DIRECTION, "direction", "frame that this end of a flow never gets")     \
	X(FRAME_TYPE, "frame_type", "unknown frame type")                         \
	X(DUP_PACKET, "dup_packet", "packet number that was received before")     \
	X(SEGMENT, "segment", "segment number beyond the message")                \
	X(MSG_LEN, "msg_len", "message length of 0 or beyond the protocol's limit") \
	X(SEG_SIZE, "seg_size", "segment size that the protocol does not allow")  \
	X(MSG_MISMATCH, "msg_mismatch", "length, segment size or DESC differs from before") \
	X(ID_WINDOW, "id_window", "message id more than 1023 above low")          \
	X(STALE, "stale", "message id below low: finished long ago")              \
	X(LATE, "late", "segment of a message that has been judged")              \
	X(DUP_SEGMENT, "dup_segment", "segment that is there already")            \
	X(DESC, "desc", "DESC with an impossible value")                          \
	X(MARK, "mark", "MARK or CLOSE with an impossible pass or window")         \
	X(VALUE, "value", "verdict, operation or reason that is not defined")     \
	X(NO_DESC, "no_desc", "MARK or CLOSE for a message never described")      \
	X(BUSY, "busy", "data dropped: no room for the message yet")              \
	X(REFUSED, "refused", "message larger than this socket takes")            \
	X(MEMORY, "memory", "allocation failed")                                  \
	X(ACK, "ack", "ACK of what was never sent, or with impossible ranges")    \
	X(MSG_UNKNOWN, "msg_unknown", "answer about a message not outstanding")   \
	X(PASS, "pass", "NEED for another pass: not obeyed")                      \
	X(MAP, "map", "map or list with impossible contents")                     \
	X(DIGEST, "digest", "map parts do not match their digest")                \
	X(LOW, "low", "low fell: the flow is given up (RESET)")                   \
	X(COOKIE, "cookie", "handshake cookie wrong or expired")                  \
	X(HANDSHAKE, "handshake", "handshake frame that fits no state")           \
	X(RESET_LATE, "reset_late", "RESET of an unknown flow for a packet from before OPEN") \
	X(RESET_RATE, "reset_rate", "answer suppressed by the RESET rate limit")  \
	X(FLOWS, "flows", "too many flows on this socket")                        \
	X(CLOSED, "closed", "packet for a socket that is closing")

enum dblp_reject {
	DBLP_REJECT_NONE = 0,
#define X(name, str, what) DBLP_REJECT_##name,
	DBLP_REJECTS(X)
#undef X
	DBLP_REJECT_COUNT
};

/**
 * dblp_reject_name() - counter name and trace string of a reason
 * @r: the reason
 *
 * Return: a static string, "none" for 0 and "?" outside the list.
 */
const char *dblp_reject_name(enum dblp_reject r);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_REJECT_H */

/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The receiver's half of the handshake: stateless until the cookie comes back.
 * dblp-wire.rst §5 "Handshake".  The sender's half is in tx.c.
 */
#ifndef DBLP_HANDSHAKE_H
#define DBLP_HANDSHAKE_H

#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLP_COOKIE_LIFE_US	(8 * 1000000ULL)

/* Peer and local address and ports, in any fixed form that the caller chooses. */
#define DBLP_HS_ADDR_MAX	40

/**
 * struct dblp_hs - an endpoint's handshake secrets
 * @incarnation: of this bound socket
 * @mac: keyed 64-bit hash (SipHash); @label separates its uses
 * @key: for @mac
 */
struct dblp_hs {
	u64 incarnation;
	u64 (*mac)(const void *key, u32 label, const u8 *data, u32 len);
	const void *key;
};

/**
 * dblp_hs_challenge() - answer an INIT without keeping anything
 * @hs: secrets
 * @init: the INIT frame
 * @addr: addresses, @addr_len bytes
 * @addr_len: at most DBLP_HS_ADDR_MAX
 * @first_kib: first flight allowed without a grant
 * @now: ns
 * @buf: gets a whole packet
 * @room: bytes at @buf
 *
 * Return: length of the packet, 0 if it does not fit.
 */
u32 dblp_hs_challenge(const struct dblp_hs *hs, const struct dblp_f_hello *init,
		      const u8 *addr, u32 addr_len, u32 first_kib, u64 now, u8 *buf,
		      u32 room);

/**
 * dblp_hs_check() - is this ECHO the answer to a challenge of ours?
 * @hs: secrets
 * @echo: the ECHO frame
 * @addr: addresses, as for dblp_hs_challenge()
 * @addr_len: their length
 * @now: ns
 * @rtt_ns: gets the age of the cookie: about one round trip
 *
 * Return: 0, or COOKIE.
 */
int dblp_hs_check(const struct dblp_hs *hs, const struct dblp_f_hello *echo,
		  const u8 *addr, u32 addr_len, u64 now, u64 *rtt_ns);

/**
 * dblp_hs_reset() - build a RESET
 * @flow: the id that is not known or has ended, echoed
 * @pn: number of the packet that it answers, low 32 bits; 0: none
 * @reason: enum dblp_reset_reason
 * @buf: gets a whole packet
 * @room: bytes at @buf
 *
 * Return: length of the packet, 0 if it does not fit.
 */
u32 dblp_hs_reset(u64 flow, u32 pn, u8 reason, u8 *buf, u32 room);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_HANDSHAKE_H */

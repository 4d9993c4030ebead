/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The one door between the protocol core and the world it is compiled into.
 *
 * The core has no clock, no allocator, no lock and no source of randomness: time
 * (nanoseconds since any origin), seeds and memory come in as arguments, and the
 * caller serialises access to each object.  This header provides what is left:
 * integer types, unaligned big-endian access, division, memory functions, a list
 * and a check for the core's own mistakes.
 */
#ifndef DBLP_DEPS_H
#define DBLP_DEPS_H

#ifdef __KERNEL__

#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/math64.h>
#include <linux/list.h>
#include <linux/bug.h>
#include <linux/bitops.h>
#include "dblp_unaligned.h"

/* A broken invariant of our own; never for what a peer or a user can cause. */
#define DBLP_CHECK(cond) WARN_ON_ONCE(!(cond))

#else /* userspace */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define U8_MAX UINT8_MAX
#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX

#ifndef __cplusplus
#define min(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); _a > _b ? _a : _b; })
#define min_t(t, a, b) ({ t _a = (a); t _b = (b); _a < _b ? _a : _b; })
#define max_t(t, a, b) ({ t _a = (a); t _b = (b); _a > _b ? _a : _b; })
#define clamp_t(t, v, lo, hi) min_t(t, max_t(t, v, lo), hi)
#define fallthrough __attribute__((__fallthrough__))
#endif

#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#ifndef container_of
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#endif

static inline u64 div64_u64(u64 a, u64 b) { return a / b; }
static inline u64 div_u64(u64 a, u32 b) { return a / b; }

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	return (u64)((unsigned __int128)a * b / c);
}

static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline unsigned int hweight64(u64 x) { return (unsigned int)__builtin_popcountll(x); }
static inline unsigned long __ffs64(u64 x) { return (unsigned long)__builtin_ctzll(x); }

static inline u16 get_unaligned_be16(const void *p)
{
	const u8 *b = (const u8 *)p;

	return (u16)(b[0] << 8 | b[1]);
}

static inline u32 get_unaligned_be32(const void *p)
{
	const u8 *b = (const u8 *)p;

	return (u32)b[0] << 24 | (u32)b[1] << 16 | (u32)b[2] << 8 | b[3];
}

static inline u64 get_unaligned_be64(const void *p)
{
	const u8 *b = (const u8 *)p;

	return (u64)get_unaligned_be32(b) << 32 | get_unaligned_be32(b + 4);
}

static inline void put_unaligned_be16(u16 v, void *p)
{
	u8 *b = (u8 *)p;

	b[0] = (u8)(v >> 8);
	b[1] = (u8)v;
}

static inline void put_unaligned_be32(u32 v, void *p)
{
	u8 *b = (u8 *)p;

	put_unaligned_be16((u16)(v >> 16), b);
	put_unaligned_be16((u16)v, b + 2);
}

static inline void put_unaligned_be64(u64 v, void *p)
{
	u8 *b = (u8 *)p;

	put_unaligned_be32((u32)(v >> 32), b);
	put_unaligned_be32((u32)v, b + 4);
}

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list_head *l) { return l->next == l; }

static inline void list_add_between(struct list_head *n, struct list_head *p,
				    struct list_head *q)
{
	n->prev = p;
	n->next = q;
	p->next = n;
	q->prev = n;
}

static inline void list_add(struct list_head *n, struct list_head *h)
{
	list_add_between(n, h, h->next);
}

static inline void list_add_tail(struct list_head *n, struct list_head *h)
{
	list_add_between(n, h->prev, h);
}

static inline void list_del_init(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	INIT_LIST_HEAD(n);
}

static inline void list_move_tail(struct list_head *n, struct list_head *h)
{
	list_del_init(n);
	list_add_tail(n, h);
}

#define list_entry(p, type, m) container_of(p, type, m)
#define list_first_entry(h, type, m) list_entry((h)->next, type, m)
#define list_last_entry(h, type, m) list_entry((h)->prev, type, m)
#define list_first_entry_or_null(h, type, m) \
	(list_empty(h) ? NULL : list_first_entry(h, type, m))
#define list_for_each_entry(pos, h, m)                                            \
	for (pos = list_first_entry(h, __typeof__(*pos), m); &pos->m != (h);      \
	     pos = list_entry(pos->m.next, __typeof__(*pos), m))
#define list_for_each_entry_safe(pos, n, h, m)                                    \
	for (pos = list_first_entry(h, __typeof__(*pos), m),                      \
	    n = list_entry(pos->m.next, __typeof__(*pos), m);                     \
	     &pos->m != (h); pos = n, n = list_entry(n->m.next, __typeof__(*n), m))

/* Aborts the test, fuzzer or simulator; false is returned to nobody. */
#define DBLP_CHECK(cond)                                                          \
	({                                                                        \
		bool _bad = !(cond);                                              \
		if (_bad) {                                                       \
			fprintf(stderr, "%s:%d: DBLP_CHECK(%s)\n", __FILE__,      \
				__LINE__, #cond);                                 \
			abort();                                                  \
		}                                                                 \
		_bad;                                                             \
	})

#ifdef __cplusplus
}
#endif

#endif /* __KERNEL__ */

#define DBLP_NSEC_PER_USEC 1000ULL
#define DBLP_NSEC_PER_MSEC 1000000ULL
#define DBLP_NSEC_PER_SEC  1000000000ULL
#define DBLP_NEVER	   U64_MAX	/* "no timer" */

#endif /* DBLP_DEPS_H */

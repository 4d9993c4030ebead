/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One bit per segment of a message, in leaves of at most a page, so that the map of
 * the largest message can be had in softirq.  Which sense a bit has (present or
 * missing) is the owner's business; the list codec and the digest take "missing".
 */
#ifndef DBLP_SEGMAP_H
#define DBLP_SEGMAP_H

#include "wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DBLP_LEAF_BITS	32768	/* 4 KiB of u64 */
#define DBLP_LEAVES	(DBLP_NSEGS_MAX / DBLP_LEAF_BITS)

/**
 * struct dblp_segmap - a set of segments
 * @nbits: segments of the message
 * @set: bits that are set
 * @leaf: words; leaf i covers bits i * DBLP_LEAF_BITS onwards.  Memory of the caller,
 *	zeroed; the last leaf may be cut to DIV_ROUND_UP(bits, 64) words
 */
struct dblp_segmap {
	u32 nbits;
	u32 set;
	u64 *leaf[DBLP_LEAVES];
};

static inline u32 dblp_segmap_leaves(u32 nbits)
{
	return DIV_ROUND_UP(nbits, DBLP_LEAF_BITS);
}

/* Bytes of leaf @i of a map of @nbits. */
static inline u32 dblp_segmap_leaf_bytes(u32 nbits, u32 i)
{
	u32 left = nbits - i * DBLP_LEAF_BITS;

	if (left > DBLP_LEAF_BITS)
		left = DBLP_LEAF_BITS;
	return DIV_ROUND_UP(left, 64) * 8;
}

bool dblp_segmap_test(const struct dblp_segmap *m, u32 bit);
/* Sets / clears; return whether the bit changed. */
bool dblp_segmap_set(struct dblp_segmap *m, u32 bit);
bool dblp_segmap_clear(struct dblp_segmap *m, u32 bit);
/* Clears all / sets bits 0..nbits-1. */
void dblp_segmap_zero(struct dblp_segmap *m);
void dblp_segmap_fill(struct dblp_segmap *m);
/* First bit >= from that is set (next) or clear (next_zero); nbits if none. */
u32 dblp_segmap_next(const struct dblp_segmap *m, u32 from);
u32 dblp_segmap_next_zero(const struct dblp_segmap *m, u32 from);
/* Bits set of those from @first up to, not including, @end <= nbits. */
u32 dblp_segmap_count(const struct dblp_segmap *m, u32 first, u32 end);
/* Word i of the map, bits beyond nbits zero. */
u64 dblp_segmap_word(const struct dblp_segmap *m, u32 i);

/* Number of MAP parts of a message of nsegs segments. */
static inline u32 dblp_map_parts(u32 nsegs)
{
	return DIV_ROUND_UP(nsegs, DBLP_PART_SEGS);
}

/**
 * dblp_list_encode() - write the set bits of a stretch as a list, the shorter way
 * @m: the map, set = missing
 * @base: first bit, a multiple of 8
 * @nsegs: bits to cover, in and out: cut down (to a multiple of 8 unless at the end
 *	of the map) to what @room holds in the better encoding
 * @room: bytes at @out
 * @out: the list
 * @enc: enum dblp_list_enc chosen
 *
 * Return: bytes written.
 */
u32 dblp_list_encode(const struct dblp_segmap *m, u32 base, u32 *nsegs, u32 room,
		     u8 *out, u8 *enc);

/* Called by dblp_list_decode() for each run of missing segments, ascending. */
typedef void (*dblp_run_fn)(void *ctx, u32 first, u32 count);

/**
 * dblp_list_decode() - read and check a list from the wire
 * @enc: its encoding
 * @list: its bytes
 * @len: number of them
 * @base: first segment it covers
 * @nsegs: segments it covers; base + nsegs is within the message (caller checked)
 * @fn: called for each run; NULL: check only
 * @ctx: for @fn
 *
 * Checks everything before the first call of @fn.
 *
 * Return: 0 or MAP.
 */
int dblp_list_decode(u8 enc, const u8 *list, u32 len, u32 base, u32 nsegs,
		     dblp_run_fn fn, void *ctx);

/* Digest of a map (dblp-wire.rst §6), set = missing. */
u64 dblp_map_digest(const struct dblp_segmap *m, u32 msg_len);

#ifdef __cplusplus
}
#endif
#endif /* DBLP_SEGMAP_H */

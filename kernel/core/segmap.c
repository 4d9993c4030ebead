// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "segmap.h"

#define WORD_BITS	64
#define LEAF_WORDS	(DBLP_LEAF_BITS / WORD_BITS)
#define RANGE_BYTES	4

/* A stretch of a list: lengths on the wire have 16 bits, cuts are at whole bytes. */
#define STRETCH_MAX	(U16_MAX & ~7U)

static u64 *word_at(const struct dblp_segmap *m, u32 i)
{
	return &m->leaf[i / LEAF_WORDS][i % LEAF_WORDS];
}

static u64 bit_mask(u32 bit)
{
	return 1ULL << (bit % WORD_BITS);
}

static u32 nwords(const struct dblp_segmap *m)
{
	return DIV_ROUND_UP(m->nbits, WORD_BITS);
}

/* Valid bits of word @i. */
static u64 valid_mask(const struct dblp_segmap *m, u32 i)
{
	u32 tail = m->nbits - i * WORD_BITS;

	return tail >= WORD_BITS ? U64_MAX : bit_mask(tail) - 1;
}

bool dblp_segmap_test(const struct dblp_segmap *m, u32 bit)
{
	if (DBLP_CHECK(bit < m->nbits))
		return false;
	return *word_at(m, bit / WORD_BITS) & bit_mask(bit);
}

bool dblp_segmap_set(struct dblp_segmap *m, u32 bit)
{
	u64 *w;

	if (DBLP_CHECK(bit < m->nbits))
		return false;
	w = word_at(m, bit / WORD_BITS);
	if (*w & bit_mask(bit))
		return false;
	*w |= bit_mask(bit);
	m->set++;
	return true;
}

bool dblp_segmap_clear(struct dblp_segmap *m, u32 bit)
{
	u64 *w;

	if (DBLP_CHECK(bit < m->nbits))
		return false;
	w = word_at(m, bit / WORD_BITS);
	if (!(*w & bit_mask(bit)))
		return false;
	*w &= ~bit_mask(bit);
	m->set--;
	return true;
}

static void fill_leaves(struct dblp_segmap *m, int byte)
{
	u32 i;

	for (i = 0; i < dblp_segmap_leaves(m->nbits); i++)
		memset(m->leaf[i], byte, dblp_segmap_leaf_bytes(m->nbits, i));
}

void dblp_segmap_zero(struct dblp_segmap *m)
{
	fill_leaves(m, 0);
	m->set = 0;
}

void dblp_segmap_fill(struct dblp_segmap *m)
{
	u32 n = nwords(m);

	fill_leaves(m, 0xff);
	if (n)
		*word_at(m, n - 1) = valid_mask(m, n - 1);
	m->set = m->nbits;
}

/*
 * First bit in [@from, @end) that is set after xor with @flip; @end if there is none.
 * @end is at most nbits.
 */
static u32 scan(const struct dblp_segmap *m, u32 from, u32 end, u64 flip)
{
	u32 i = from / WORD_BITS;
	u64 w;

	if (from >= end)
		return end;
	w = (*word_at(m, i) ^ flip) & ~(bit_mask(from) - 1);
	while (!w) {
		i++;
		if (i * WORD_BITS >= end)
			return end;
		w = *word_at(m, i) ^ flip;
	}
	return min_t(u32, i * WORD_BITS + (u32)__ffs64(w), end);
}

u32 dblp_segmap_next(const struct dblp_segmap *m, u32 from)
{
	return scan(m, from, m->nbits, 0);
}

u32 dblp_segmap_next_zero(const struct dblp_segmap *m, u32 from)
{
	return scan(m, from, m->nbits, U64_MAX);
}

u32 dblp_segmap_count(const struct dblp_segmap *m, u32 first, u32 end)
{
	u32 i, n = 0;
	u64 w;

	if (first >= end)
		return 0;
	for (i = first / 64; i <= (end - 1) / 64; i++) {
		w = dblp_segmap_word(m, i);
		if (i == first / 64)
			w &= ~0ULL << (first % 64);
		if (i == (end - 1) / 64)
			w &= ~0ULL >> (63 - (end - 1) % 64);
		n += (u32)hweight64(w);
	}
	return n;
}

u64 dblp_segmap_word(const struct dblp_segmap *m, u32 i)
{
	return i < nwords(m) ? *word_at(m, i) & valid_mask(m, i) : 0;
}

/* Next run of set bits in [@at, @end); false if there is none. */
static bool next_run(const struct dblp_segmap *m, u32 at, u32 end, u32 *first, u32 *stop)
{
	*first = scan(m, at, end, 0);
	*stop = scan(m, *first, end, U64_MAX);
	return *first < end;
}

/*
 * Bits of [base, base + nsegs) that @most ranges cover; *@used of them.  If not all,
 * the cut is at the last whole byte before the first run that did not fit.
 */
static u32 ranges_cover(const struct dblp_segmap *m, u32 base, u32 nsegs, u32 most,
			u32 *used)
{
	u32 end = base + nsegs;
	u32 at = base, byte = U32_MAX;
	u32 in_byte = 0;	/* runs that start in the byte of the last one */
	u32 first, stop;

	for (*used = 0; next_run(m, at, end, &first, &stop); (*used)++) {
		if (byte != first / 8) {
			byte = first / 8;
			in_byte = 0;
		}
		if (*used == most) {
			*used -= in_byte;
			return (first - base) & ~7U;
		}
		in_byte++;
		at = stop;
	}
	return nsegs;
}

static void put_ranges(const struct dblp_segmap *m, u32 base, u32 nsegs, u8 *out)
{
	u32 end = base + nsegs;
	u32 at = base;
	u32 first, stop;

	while (next_run(m, at, end, &first, &stop)) {
		put_unaligned_be16((u16)(first - base), out);
		put_unaligned_be16((u16)(stop - first), out + 2);
		out += RANGE_BYTES;
		at = stop;
	}
}

static void put_bits(const struct dblp_segmap *m, u32 base, u32 nsegs, u8 *out)
{
	u32 bytes = DIV_ROUND_UP(nsegs, 8);
	u32 i, bit;

	for (i = 0; i < bytes; i++) {
		bit = base + i * 8;
		out[i] = (u8)(*word_at(m, bit / WORD_BITS) >> (bit % WORD_BITS));
	}
	if (nsegs % 8)
		out[bytes - 1] &= (u8)((1U << (nsegs % 8)) - 1);
}

u32 dblp_list_encode(const struct dblp_segmap *m, u32 base, u32 *nsegs, u32 room,
		     u8 *out, u8 *enc)
{
	u32 want = base < m->nbits ? min_t(u32, *nsegs, m->nbits - base) : 0;
	u32 by_bits, by_ranges, used;

	if (want > U16_MAX)
		want = STRETCH_MAX;
	by_bits = room < DIV_ROUND_UP(want, 8) ? room * 8 : want;
	by_ranges = ranges_cover(m, base, want, room / RANGE_BYTES, &used);

	/* What covers more is also the shorter one for that stretch. */
	if (by_ranges > by_bits ||
	    (by_ranges == by_bits && used * RANGE_BYTES < DIV_ROUND_UP(by_bits, 8))) {
		put_ranges(m, base, by_ranges, out);
		*nsegs = by_ranges;
		*enc = DBLP_LIST_RANGES;
		return used * RANGE_BYTES;
	}
	put_bits(m, base, by_bits, out);
	*nsegs = by_bits;
	*enc = DBLP_LIST_BITS;
	return DIV_ROUND_UP(by_bits, 8);
}

static void call_runs(const u8 *list, u32 base, u32 nsegs, dblp_run_fn fn, void *ctx)
{
	u32 first = 0, count = 0;
	u32 i;

	for (i = 0; i < nsegs; i++) {
		if (!count && i % 8 == 0 && !list[i / 8]) {
			i += 7;
			continue;
		}
		if (list[i / 8] & (1U << (i % 8))) {
			if (!count)
				first = i;
			count++;
		} else if (count) {
			fn(ctx, base + first, count);
			count = 0;
		}
	}
	if (count)
		fn(ctx, base + first, count);
}

static int decode_bits(const u8 *list, u32 len, u32 base, u32 nsegs, dblp_run_fn fn,
		       void *ctx)
{
	if (len != DIV_ROUND_UP(nsegs, 8))
		return DBLP_REJECT_MAP;
	if (nsegs % 8 && list[len - 1] >> (nsegs % 8))
		return DBLP_REJECT_MAP;
	if (fn)
		call_runs(list, base, nsegs, fn, ctx);
	return 0;
}

static int decode_ranges(const u8 *list, u32 len, u32 base, u32 nsegs, dblp_run_fn fn,
			 void *ctx)
{
	u32 i, start, count, at = 0;

	if (len % RANGE_BYTES)
		return DBLP_REJECT_MAP;
	for (i = 0; i < len; i += RANGE_BYTES) {
		start = get_unaligned_be16(list + i);
		count = get_unaligned_be16(list + i + 2);
		if (!count || start < at || start + count > nsegs)
			return DBLP_REJECT_MAP;
		at = start + count;
	}
	for (i = 0; fn && i < len; i += RANGE_BYTES)
		fn(ctx, base + get_unaligned_be16(list + i), get_unaligned_be16(list + i + 2));
	return 0;
}

int dblp_list_decode(u8 enc, const u8 *list, u32 len, u32 base, u32 nsegs,
		     dblp_run_fn fn, void *ctx)
{
	if (enc == DBLP_LIST_BITS)
		return decode_bits(list, len, base, nsegs, fn, ctx);
	if (enc == DBLP_LIST_RANGES)
		return decode_ranges(list, len, base, nsegs, fn, ctx);
	return DBLP_REJECT_MAP;
}

static u64 fnv1a(u64 hash, u64 v)
{
	u32 i;

	for (i = 0; i < 8; i++) {
		hash = (hash ^ (v & 0xff)) * 0x100000001b3ULL;
		v >>= 8;
	}
	return hash;
}

u64 dblp_map_digest(const struct dblp_segmap *m, u32 msg_len)
{
	u64 hash = 0xcbf29ce484222325ULL;
	u32 i;

	hash = fnv1a(hash, m->nbits);
	hash = fnv1a(hash, msg_len);
	for (i = 0; i < nwords(m); i++)
		hash = fnv1a(hash, dblp_segmap_word(m, i));
	return hash;
}

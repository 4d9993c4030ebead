// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "bound.h"

#define PPM		1000000U
#define LOSS_CLAMP_PPM	950000U

u64 dblp_allowance(u32 ppm, u64 bytes)
{
	u64 whole = div_u64(bytes, PPM);

	/* In two parts: ppm * bytes may not fit. */
	return ppm * whole + div_u64(ppm * (bytes - whole * PPM), PPM);
}

u32 dblp_group_admit(struct dblp_group *g, u32 ppm, u32 msg_len, u32 seg_size)
{
	u64 left, share;
	u32 allow;

	if (g->ppm != ppm) {
		g->ppm = ppm;
		g->bytes = 0;
		g->used = 0;
	}
	g->bytes += msg_len;

	left = dblp_allowance(ppm, g->bytes);
	left = left > g->used ? left - g->used : 0;
	share = dblp_allowance(ppm, msg_len) + seg_size;
	if (share > msg_len)
		share = msg_len;
	allow = (u32)min_t(u64, left, share);
	g->used += allow;
	return allow;
}

void dblp_group_settle(struct dblp_group *g, u32 allow, u32 missing)
{
	g->used += missing;
	g->used = g->used > allow ? g->used - allow : 0;
}

enum dblp_judgement dblp_judge(const struct dblp_judge_in *in)
{
	bool met = dblp_bound_met(in);

	if (!in->desc)
		return DBLP_JUDGE_WAIT;
	if (!in->missing)
		return DBLP_JUDGE_OK;
	if (met && (in->mode == DBLP_WIRE_EAGER || (in->mark && in->reo_over)))
		return DBLP_JUDGE_OK;
	if ((in->close && in->reo_over) || in->hold_over)
		return met ? DBLP_JUDGE_OK : DBLP_JUDGE_BELOW;
	if (in->mark && in->reo_over)
		return DBLP_JUDGE_NEED;
	return DBLP_JUDGE_WAIT;
}

u64 dblp_repair_bytes(u64 need, u64 missing, u32 loss_ppm, u32 seg_size)
{
	u32 loss = min_t(u32, loss_ppm, LOSS_CLAMP_PPM);
	u64 sigma, bytes;

	/* Below 2^29 bytes, 2^14 bytes per segment and 2^20 ppm nothing overflows. */
	missing = min_t(u64, missing, DBLP_MSG_LEN_MAX);
	need = min_t(u64, need, missing);
	seg_size = min_t(u32, seg_size, DBLP_SEG_MAX);

	/* S * sqrt(need / S * p) */
	sigma = dblp_isqrt(div_u64(need * seg_size * loss, PPM));
	bytes = div_u64((need + 3 * sigma) * PPM + PPM - loss - 1, PPM - loss);
	return min_t(u64, bytes, missing);
}

u32 dblp_isqrt(u64 v)
{
	u64 bit = 1ULL << 62;
	u64 root = 0;

	for (; bit; bit >>= 2) {
		if (v >= root + bit) {
			v -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return (u32)root;
}

/* One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static u64 splitmix64(u64 *state)
{
	u64 z;

	*state += 0x9e3779b97f4a7c15ULL;
	z = *state;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static bool coprime(u32 a, u32 b)
{
	u32 t;

	while (b) {
		t = a % b;
		a = b;
		b = t;
	}
	return a == 1;
}

/*
 * A stride of 1 or n - 1 would keep neighbours together, so that a burst of loss takes
 * one stretch of the tensor; it is used where there is no other (n = 3, 4, 6).
 */
static u32 stride(u32 n, u64 r)
{
	u32 choices = n - 3;	/* 2 .. n - 2 */
	u32 tries, at;

	at = choices ? (u32)(r >> 32) % choices : 0;
	for (tries = 0; tries < choices; tries++) {
		if (coprime(at + 2, n))
			return at + 2;
		at = at + 1 < choices ? at + 1 : 0;
	}
	return r & 1 ? 1 : n - 1;
}

void dblp_perm_init(struct dblp_perm *p, u32 n, u64 key, bool ordered)
{
	u64 state = key;

	p->a = 1;
	p->b = 0;
	p->n = n;
	if (ordered || n < 3)
		return;
	p->a = stride(n, splitmix64(&state));
	p->b = (u32)(splitmix64(&state) >> 32) % n;
}

u32 dblp_perm_at(const struct dblp_perm *p, u32 i)
{
	u64 v = (u64)p->a * i + p->b;

	return (u32)(v - div_u64(v, p->n) * p->n);
}

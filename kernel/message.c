// SPDX-License-Identifier: GPL-2.0
/*
 * Messages.  One that is sent keeps a copy of the user's payload in pages until its
 * verdict; each transmission copies from there.  One that is received keeps the skbs
 * that brought its segments.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include "flow.h"
#include "message.h"
#include "trace.h"

#define DBLP_ORDER	3		/* of compound pages for payload */
#define DBLP_SMALL	PAGE_SIZE	/* payload up to this comes from kmalloc() */

static_assert(DBLP_SLOTS * sizeof(void *) <= PAGE_SIZE);

/* ---- sending -------------------------------------------------------------------- */

static u32 dblp_map_words(u32 nsegs)
{
	return DIV_ROUND_UP(nsegs, 64);
}

/* Memory of a map beyond what is in the message itself. */
static u32 dblp_map_bytes(u32 nsegs)
{
	u32 words = dblp_map_words(nsegs);

	return words > DBLP_SMALL_MAP ? words * sizeof(u64) : 0;
}

static void dblp_map_free(struct dblp_segmap *map, const u64 *small)
{
	u32 i;

	if (map->leaf[0] != small)
		for (i = 0; i < DBLP_LEAVES; i++)
			kfree(map->leaf[i]);
}

static int dblp_map_alloc(struct dblp_segmap *map, u32 nsegs, u64 *small, gfp_t gfp)
{
	u32 i;

	map->nbits = nsegs;
	if (!dblp_map_bytes(nsegs)) {
		map->leaf[0] = small;
		return 0;
	}
	for (i = 0; i < dblp_segmap_leaves(nsegs); i++) {
		map->leaf[i] = kzalloc(dblp_segmap_leaf_bytes(nsegs, i), gfp);
		if (!map->leaf[i])
			return -ENOMEM;
	}
	return 0;
}

static u32 dblp_pages_for(u32 len)
{
	return len > DBLP_SMALL ? DIV_ROUND_UP(len, PAGE_SIZE) : 0;
}

/* What stays while the completion waits to be read. */
static u32 dblp_txm_kept(u32 nsegs)
{
	return sizeof(struct dblp_txm) + dblp_map_bytes(nsegs);
}

u64 dblp_txm_cost(u32 len, u32 seg_size)
{
	u32 nsegs = dblp_nsegs(len, seg_size);
	u64 pages = dblp_pages_for(len);

	return dblp_txm_kept(nsegs) + (u64)nsegs * sizeof(struct dblp_txseg) +
	       (pages ? pages * (PAGE_SIZE + sizeof(struct page *)) : len);
}

static void dblp_txm_free_payload(struct dblp_txm *t)
{
	struct page *page;
	u32 i = 0, n;

	kfree(t->small);
	t->small = NULL;
	while (i < t->nr_pages && t->pages[i]) {
		page = t->pages[i];
		n = 1 << compound_order(page);
		__free_pages(page, compound_order(page));
		i += n;
	}
	kvfree(t->pages);
	t->pages = NULL;
	t->nr_pages = 0;
	kvfree(t->m.seg);
	t->m.seg = NULL;
}

static void dblp_txm_free(struct dblp_txm *t)
{
	dblp_txm_free_payload(t);
	dblp_map_free(&t->m.map, t->map);
	kfree(t);
}

/* Large pages are faster to get and to free, but must not be fought for. */
static int dblp_txm_alloc_pages(struct dblp_txm *t, u32 n)
{
	const gfp_t large = (GFP_KERNEL | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY) &
			    ~__GFP_DIRECT_RECLAIM;
	struct page *page;
	u32 i, k;

	t->pages = kvcalloc(n, sizeof(*t->pages), GFP_KERNEL);
	if (!t->pages)
		return -ENOMEM;
	t->nr_pages = n;
	for (i = 0; i < n; i += 1 << k) {
		k = DBLP_ORDER;
		page = n - i >= 1 << k ? alloc_pages(large, k) : NULL;
		if (!page) {
			k = 0;
			page = alloc_page(GFP_KERNEL | __GFP_HIGHMEM);
		}
		if (!page)
			return -ENOMEM;
		for (u32 j = 0; j < 1 << k; j++)
			t->pages[i + j] = page + j;
	}
	return 0;
}

static int dblp_txm_fill(struct dblp_txm *t, struct iov_iter *from)
{
	u32 left = t->m.len, i, n;

	if (t->small)
		return copy_from_iter_full(t->small, left, from) ? 0 : -EFAULT;
	for (i = 0; left; i++, left -= n) {
		n = min_t(u32, left, PAGE_SIZE);
		if (copy_page_from_iter(t->pages[i], 0, n, from) != n)
			return -EFAULT;
		cond_resched();
	}
	return 0;
}

struct dblp_txm *dblp_txm_new(struct dblp_sock *dsk, u32 len, u16 seg_size,
			      struct iov_iter *from)
{
	u32 nsegs = dblp_nsegs(len, seg_size);
	u32 pages = dblp_pages_for(len);
	struct dblp_txm *t;
	int err = -ENOMEM;

	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return ERR_PTR(-ENOMEM);
	t->dsk = dsk;
	t->item.kind = DBLP_ITEM_COMPLETION;
	refcount_set(&t->item.refs, 1);
	t->m.len = len;
	t->m.seg_size = seg_size;
	if (dblp_map_alloc(&t->m.map, nsegs, t->map, GFP_KERNEL))
		goto err;
	t->m.seg = kvcalloc(nsegs, sizeof(*t->m.seg), GFP_KERNEL);
	if (!t->m.seg)
		goto err;
	if (pages) {
		err = dblp_txm_alloc_pages(t, pages);
	} else {
		t->small = kmalloc(len, GFP_KERNEL);
		err = t->small ? 0 : -ENOMEM;
	}
	if (err)
		goto err;
	err = dblp_txm_fill(t, from);
	if (err)
		goto err;
	t->charge = dblp_txm_cost(len, seg_size);
	return t;

err:
	dblp_txm_free(t);
	return ERR_PTR(err);
}

void dblp_txm_copy(const struct dblp_txm *t, u32 off, u32 len, u8 *to)
{
	u32 in_page, n;

	if (t->small) {
		memcpy(to, t->small + off, len);
		return;
	}
	for (; len; off += n, len -= n, to += n) {
		in_page = offset_in_page(off);
		n = min_t(u32, len, PAGE_SIZE - in_page);
		memcpy_from_page(to, t->pages[off / PAGE_SIZE], in_page, n);
	}
}

static void dblp_txm_count(struct dblp_txm *t)
{
	static const enum dblp_mib mib[] = {
		[DBLP_TX_OK] = DBLP_MIB_MSGS_OK,
		[DBLP_TX_BELOW] = DBLP_MIB_MSGS_BELOW,
		[DBLP_TX_REFUSED] = DBLP_MIB_MSGS_REFUSED,
		[DBLP_TX_UNKNOWN] = DBLP_MIB_MSGS_UNKNOWN,
	};
	struct dblp_net *dn = dblp_sk_net(t->dsk);

	dblp_mib_inc(dn, mib[t->m.outcome]);
	dblp_mib_inc(dn, DBLP_MIB_MSGS_COMPLETED);
}

static void dblp_txm_complete(struct dblp_txm *t)
{
	const struct dblp_txmsg *m = &t->m;
	struct dblp_completion *c = &t->c;

	c->msg_id = m->id;
	c->tag = m->tag;
	c->len = m->len;
	c->missing_bytes = m->missing_bytes;
	c->limit = m->limit;
	c->sent_bytes = m->sent_bytes;
	c->retransmitted_bytes = m->resent_bytes;
	c->nr_segs = m->nsegs;
	c->seg_size = m->seg_size;
	c->missing_segs = m->missing_segs;
	c->lost_segs = m->lost_segs;
	c->rounds = m->rounds;
	c->duration_us = min_t(u64, U32_MAX,
			       div_u64(m->completed_at - m->submitted_at, NSEC_PER_USEC));
	c->group = m->group;
	c->error = m->error;
	c->outcome = m->outcome;
	c->mode = m->mode;
	c->phase = m->phase;
}

/* Who wants no completions learns of a dead peer as with other connected sockets. */
static void dblp_txm_report(const struct dblp_txm *t)
{
	struct sock *sk = &t->dsk->sk;
	struct dblp_sock *dsk = t->dsk;
	bool report;

	if (t->notify || t->m.outcome != DBLP_TX_UNKNOWN)
		return;
	spin_lock_bh(&dsk->flows_lock);
	report = dsk->connected && !dsk->closing && dblp_addr_equal(&dsk->peer, &t->peer);
	spin_unlock_bh(&dsk->flows_lock);
	if (!report)
		return;
	WRITE_ONCE(sk->sk_err, t->m.error);
	sk_error_report(sk);
}

void dblp_txm_done(struct dblp_txm *t, u64 flow)
{
	struct dblp_sock *dsk = t->dsk;
	u32 kept = dblp_txm_kept(t->m.nsegs), freed;

	dblp_txm_count(t);
	dblp_txm_report(t);
	trace_dblp_msg_done(flow, t->m.id, t->m.outcome, t->m.error, t->m.len,
			    t->m.missing_bytes, t->m.sent_bytes, t->m.resent_bytes,
			    t->m.completed_at - t->m.submitted_at);
	atomic64_sub(t->m.len, &dsk->outbytes);
	dblp_txm_free_payload(t);
	freed = t->charge - kept;
	t->charge = kept;
	if (t->notify) {
		dblp_txm_complete(t);
		dblp_mib_inc(dblp_sk_net(dsk), DBLP_MIB_COMPLETIONS);
		dblp_enqueue(dsk, &t->item);
	} else {
		dblp_item_put(&t->item);
	}
	dblp_mem_uncharge(dsk, DBLP_MEM_TX, freed);
	/* A close() that lingers waits for the last one. */
	if (atomic_dec_and_test(&dsk->outstanding))
		dsk->sk.sk_state_change(&dsk->sk);
}

/* ---- receiving ------------------------------------------------------------------ */

static u32 dblp_rxm_leaves(u32 nsegs)
{
	return nsegs > 1 ? DIV_ROUND_UP(nsegs, DBLP_SLOTS) : 0;
}

static u32 dblp_rxm_slots(u32 nsegs, u32 leaf)
{
	return min_t(u32, nsegs - leaf * DBLP_SLOTS, DBLP_SLOTS);
}

static void dblp_rxm_free(struct dblp_rxm *r)
{
	dblp_mem_uncharge(r->dsk, DBLP_MEM_META, r->charge);
	dblp_map_free(&r->m.miss, r->map);
	kfree(r->leaf);
	kfree(r);
}

struct dblp_rxm *dblp_rxm_new(struct dblp_sock *dsk, u32 nsegs)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;
	u32 leaves = dblp_rxm_leaves(nsegs);
	struct dblp_rxm *r;
	u32 charge;

	/* Leaves of the table come with the segments, but are charged here. */
	charge = sizeof(*r) + dblp_map_bytes(nsegs) + leaves * sizeof(*r->leaf) +
		 (leaves ? nsegs * sizeof(struct sk_buff *) : 0);
	if (dblp_mem_charge(dsk, DBLP_MEM_META, charge))
		return NULL;
	r = kzalloc(sizeof(*r), gfp);
	if (!r) {
		dblp_mem_uncharge(dsk, DBLP_MEM_META, charge);
		return NULL;
	}
	r->dsk = dsk;
	r->charge = charge;
	r->item.kind = DBLP_ITEM_MSG;
	refcount_set(&r->item.refs, 1);
	INIT_LIST_HEAD(&r->grant);
	if (leaves) {
		r->leaf = kcalloc(leaves, sizeof(*r->leaf), gfp);
		if (!r->leaf)
			goto err;
	}
	if (dblp_map_alloc(&r->m.miss, nsegs, r->map, gfp))
		goto err;
	return r;

err:
	dblp_rxm_free(r);
	return NULL;
}

static struct sk_buff **dblp_rxm_slot(struct dblp_rxm *r, u32 seg)
{
	u32 i = seg / DBLP_SLOTS;

	if (!r->leaf)
		return &r->one;
	if (!r->leaf[i])
		r->leaf[i] = kcalloc(dblp_rxm_slots(r->m.nsegs, i), sizeof(r->one),
				     GFP_ATOMIC | __GFP_NOWARN);
	return r->leaf[i] ? &r->leaf[i][seg % DBLP_SLOTS] : NULL;
}

struct sk_buff *dblp_rxm_seg(const struct dblp_rxm *r, u32 seg)
{
	struct sk_buff **leaf;

	if (!r->leaf)
		return r->one;
	leaf = r->leaf[seg / DBLP_SLOTS];
	return leaf ? leaf[seg % DBLP_SLOTS] : NULL;
}

/* Does keeping @skb cost much more than was reserved for @len bytes of it? */
static bool dblp_rxm_loose(const struct sk_buff *skb, u32 len)
{
	if (len <= SKB_MAX_ORDER(0, 0))
		return skb->truesize > len + DBLP_SEG_OVERHEAD;
	/* Its copy is in whole pages. */
	return skb->truesize > 2 * len + DBLP_SEG_OVERHEAD;
}

/* A copy that costs about what was reserved for the segment. */
static struct sk_buff *dblp_rxm_tight(struct sk_buff *skb, u32 off, u32 len)
{
	u32 head = len <= SKB_MAX_ORDER(0, 0) ? len : 0, at = off + head;
	struct sk_buff *n;
	int err, i;

	n = alloc_skb_with_frags(head, len - head, 0, &err, GFP_ATOMIC | __GFP_NOWARN);
	if (!n)
		return NULL;
	if (skb_copy_bits(skb, off, skb_put(n, head), head))
		goto free;
	n->data_len = len - head;
	n->len += len - head;
	for (i = 0; i < skb_shinfo(n)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(n)->frags[i];

		if (skb_copy_bits(skb, at, skb_frag_address(frag), skb_frag_size(frag)))
			goto free;
		at += skb_frag_size(frag);
	}
	dblp_rx_cb(n)->off = 0;
	return n;

free:
	kfree_skb(n);
	return NULL;
}

int dblp_rxm_store(struct dblp_rxm *r, u32 seg, struct sk_buff *skb, u32 off, u32 len)
{
	struct sk_buff **slot = dblp_rxm_slot(r, seg);
	struct sk_buff *n;

	if (!slot)
		return -ENOMEM;
	if (dblp_rxm_loose(skb, len)) {
		n = dblp_rxm_tight(skb, off, len);
	} else if (off + len == skb->len) {
		/* Nothing in the datagram follows, so nobody else will use it. */
		n = skb_get(skb);
		dblp_rx_cb(n)->off = off;
	} else {
		n = skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);
		if (n)
			dblp_rx_cb(n)->off = off;
	}
	if (!n)
		return -ENOMEM;
	if (dblp_mem_charge(r->dsk, DBLP_MEM_RX, n->truesize)) {
		kfree_skb(n);
		return -ENOMEM;
	}
	r->stored += n->truesize;
	*slot = n;
	return 0;
}

/* Messages that got their room are told by their own flow's timer. */
static void __dblp_budget_leave(struct dblp_sock *dsk, struct dblp_rxm *r)
{
	struct dblp_claim *c;
	struct dblp_rxm *w;

	lockdep_assert_held(&dsk->budget_lock);
	list_del_init(&r->grant);
	dblp_budget_release(&dsk->budget, &r->m.claim);
	dsk->budget.limit = dblp_recv_limit(dsk);
	while ((c = dblp_budget_grant(&dsk->budget)) != NULL) {
		w = container_of(c, struct dblp_rxm, m.claim);
		list_add_tail(&w->grant, &dblp_rxflow(w->flow)->grants);
		dblp_timer_kick(w->flow);
	}
}

static void dblp_budget_leave(struct dblp_sock *dsk, struct dblp_rxm *r)
{
	spin_lock_bh(&dsk->budget_lock);
	__dblp_budget_leave(dsk, r);
	spin_unlock_bh(&dsk->budget_lock);
}

void dblp_rxm_unwait(struct dblp_rxm *r)
{
	struct dblp_sock *dsk = r->dsk;

	spin_lock_bh(&dsk->budget_lock);
	if (r->m.claim.held)
		list_del_init(&r->grant);	/* granted, and not yet told */
	else
		__dblp_budget_leave(dsk, r);
	spin_unlock_bh(&dsk->budget_lock);
}

void dblp_rxm_drop(struct dblp_rxm *r)
{
	u32 i, j, n = dblp_rxm_leaves(r->m.nsegs);

	consume_skb(r->one);
	r->one = NULL;
	for (i = 0; i < n; i++) {
		if (!r->leaf[i])
			continue;
		for (j = 0; j < dblp_rxm_slots(r->m.nsegs, i); j++)
			consume_skb(r->leaf[i][j]);
		kfree(r->leaf[i]);
		r->leaf[i] = NULL;
		if (!in_softirq())
			cond_resched();
	}
	dblp_mem_uncharge(r->dsk, DBLP_MEM_RX, r->stored);
	r->stored = 0;
	dblp_budget_leave(r->dsk, r);
}

/* ---- both ----------------------------------------------------------------------- */

void dblp_item_put(struct dblp_item *item)
{
	struct dblp_txm *t;
	struct dblp_sock *dsk;
	u32 charge;

	if (!refcount_dec_and_test(&item->refs))
		return;
	if (item->kind == DBLP_ITEM_MSG) {
		dblp_rxm_free(container_of(item, struct dblp_rxm, item));
		return;
	}
	t = container_of(item, struct dblp_txm, item);
	dsk = t->dsk;
	charge = t->charge;
	dblp_txm_free(t);
	dblp_mem_uncharge(dsk, DBLP_MEM_TX, charge);
}

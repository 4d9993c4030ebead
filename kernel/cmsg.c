// SPDX-License-Identifier: GPL-2.0
/* Control messages of sendmsg(): see cmsg.h. */
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/string.h>
#include "cmsg.h"
#include "dblp.h"

int dblp_params_get(struct dblp_send_params *p, const void *data, size_t len)
{
	if (len < sizeof(*p))
		return -EINVAL;
	if (len > sizeof(*p) && memchr_inv(data + sizeof(*p), 0, len - sizeof(*p)))
		return -E2BIG;
	memcpy(p, data, sizeof(*p));
	if (p->tolerance_ppm > DBLP_PPM || p->mode > DBLP_MODE_EAGER || p->priority > 7 ||
	    p->flags & ~DBLP_SEND_ORDERED || p->reserved || p->reserved2)
		return -EINVAL;
	return 0;
}

int dblp_cmsg_parse(struct msghdr *msg, struct dblp_send_req *req)
{
	bool have_send = false;
	struct cmsghdr *c;
	size_t len;
	int err;

	for_each_cmsghdr(c, msg) {
		if (!CMSG_OK(msg, c))
			return -EINVAL;
		if (c->cmsg_level != SOL_DBLP)
			continue;
		len = c->cmsg_len - sizeof(*c);
		switch (c->cmsg_type) {
		case DBLP_CMSG_SEND:
			if (have_send)
				return -EINVAL;
			have_send = true;
			err = dblp_params_get(&req->params, CMSG_DATA(c), len);
			if (err)
				return err;
			break;
		case DBLP_CMSG_PROTECT:
			if (req->ranges || !len || len % sizeof(struct dblp_range))
				return -EINVAL;
			if (len / sizeof(struct dblp_range) > DBLP_RANGES_MAX)
				return -E2BIG;
			req->ranges = CMSG_DATA(c);
			req->nr_ranges = len / sizeof(struct dblp_range);
			break;
		default:
			return -EINVAL;
		}
	}
	return 0;
}

static int dblp_run_cmp(const void *a, const void *b)
{
	u32 x = ((const struct dblp_segrun *)a)->first;
	u32 y = ((const struct dblp_segrun *)b)->first;

	return x < y ? -1 : x > y;
}

static int dblp_range_widen(const struct dblp_range *r, u32 len, u32 seg_size,
			    struct dblp_segrun *run)
{
	if (!r->len)
		return -EINVAL;
	if (r->off >= len || r->len > len - r->off)
		return -ERANGE;
	run->first = (u32)r->off / seg_size;
	run->count = (u32)(r->off + r->len - 1) / seg_size - run->first + 1;
	return 0;
}

/* Merges what overlaps or touches; @run is sorted. */
static int dblp_runs_merge(const struct dblp_segrun *run, u32 n, struct dblp_segrun *out,
			   u32 *nout)
{
	u32 i, k = 0, end;

	for (i = 0; i < n; i++) {
		if (k && run[i].first <= out[k - 1].first + out[k - 1].count) {
			end = max(out[k - 1].first + out[k - 1].count,
				  run[i].first + run[i].count);
			out[k - 1].count = end - out[k - 1].first;
			continue;
		}
		if (k == DBLP_PROT_MAX)
			return -E2BIG;
		out[k++] = run[i];
	}
	*nout = k;
	return 0;
}

int dblp_cmsg_protect(const struct dblp_send_req *req, u32 len, u32 seg_size,
		      struct dblp_segrun *prot, u32 *nprot)
{
	struct dblp_segrun *run;
	struct dblp_range r;
	int err = 0;
	u32 i;

	*nprot = 0;
	if (!req->nr_ranges)
		return 0;
	run = kmalloc_array(req->nr_ranges, sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	for (i = 0; i < req->nr_ranges; i++) {
		memcpy(&r, req->ranges + i * sizeof(r), sizeof(r));
		err = dblp_range_widen(&r, len, seg_size, &run[i]);
		if (err)
			goto out;
	}
	sort(run, req->nr_ranges, sizeof(*run), dblp_run_cmp, NULL);
	err = dblp_runs_merge(run, req->nr_ranges, prot, nprot);
out:
	kfree(run);
	return err;
}

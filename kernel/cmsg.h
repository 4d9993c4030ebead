/* SPDX-License-Identifier: GPL-2.0 */
/* What sendmsg() is asked for in control messages. */
#ifndef DBLP_CMSG_H
#define DBLP_CMSG_H

#include <linux/socket.h>
#include <linux/dblp.h>
#include "wire.h"

#define DBLP_RANGES_MAX 1024	/* in one control message, before merging */

/**
 * struct dblp_send_req - how a message is to be sent
 * @params: from DBLP_CMSG_SEND, else the socket's default
 * @ranges: array of struct dblp_range in the control buffer, maybe not aligned
 * @nr_ranges: their number
 */
struct dblp_send_req {
	struct dblp_send_params params;
	const void *ranges;
	u32 nr_ranges;
};

/**
 * dblp_params_get() - read and check parameters given by the user
 * @p: result
 * @data: @len bytes
 * @len: at least those of this version
 *
 * Return: 0; -EINVAL short, or a value that is not allowed; -E2BIG longer and not zero
 * there.
 */
int dblp_params_get(struct dblp_send_params *p, const void *data, size_t len);

/* Reads the control messages of sendmsg(); req->params is the default on entry. */
int dblp_cmsg_parse(struct msghdr *msg, struct dblp_send_req *req);

/**
 * dblp_cmsg_protect() - protected bytes as protected segments
 * @req: the request
 * @len: bytes of the message
 * @seg_size: bytes of a segment
 * @prot: DBLP_PROT_MAX entries, filled ascending and disjoint
 * @nprot: number filled
 *
 * Return: 0; -EINVAL empty range; -ERANGE outside of the message; -E2BIG too many after
 * merging; -ENOMEM.
 */
int dblp_cmsg_protect(const struct dblp_send_req *req, u32 len, u32 seg_size,
		      struct dblp_segrun *prot, u32 *nprot);

#endif /* DBLP_CMSG_H */

/* SPDX-License-Identifier: GPL-2.0 */
#ifndef DBLP_INFO_H
#define DBLP_INFO_H

#include <linux/dblp.h>
#include "dblp.h"

/**
 * dblp_info_get() - what is known of the flow to the peer
 * @dsk: a socket, locked
 * @info: filled in; zero with DBLP_FLOW_NONE if there is no flow
 *
 * Return: 0, or -ENOTCONN.
 */
int dblp_info_get(struct dblp_sock *dsk, struct dblp_info *info);

#endif /* DBLP_INFO_H */

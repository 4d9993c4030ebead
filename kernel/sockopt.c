// SPDX-License-Identifier: GPL-2.0
/* Socket options. */
#include <linux/capability.h>
#include <linux/ipv6.h>
#include <linux/in6.h>
#include <linux/sockptr.h>
#include "cmsg.h"
#include "flow.h"
#include "info.h"

#define DBLP_PARAMS_MAX	256	/* what a later version of the struct may have */
#define DBLP_CC_NAME	16
#define DBLP_DEAD_MS_MIN 100
#define DBLP_DEAD_MS_MAX 600000

/* Reads a value that grows at the end only. */
static int dblp_opt_get(void *to, size_t size, sockptr_t val, unsigned int len)
{
	u8 tail[DBLP_PARAMS_MAX];

	if (len < size)
		return -EINVAL;
	if (len > size + sizeof(tail))
		return -E2BIG;
	if (copy_from_sockptr(to, val, size) ||
	    copy_from_sockptr_offset(tail, val, size, len - size))
		return -EFAULT;
	return memchr_inv(tail, 0, len - size) ? -E2BIG : 0;
}

static bool dblp_net_admin(const struct dblp_sock *dsk)
{
	return ns_capable(sock_net(&dsk->sk)->user_ns, CAP_NET_ADMIN);
}

static int dblp_set_send(struct dblp_sock *dsk, sockptr_t val, unsigned int len)
{
	struct dblp_send_params in, p;
	int err;

	err = dblp_opt_get(&in, sizeof(in), val, len);
	if (err)
		return err;
	err = dblp_params_get(&p, &in, sizeof(in));
	if (err)
		return err;
	spin_lock_bh(&dsk->flows_lock);
	dsk->send_def = p;
	spin_unlock_bh(&dsk->flows_lock);
	return 0;
}

/* An int from 0 to @max. */
static int dblp_get_int(int *v, int max, sockptr_t val, unsigned int len)
{
	int err;

	err = dblp_opt_get(v, sizeof(*v), val, len);
	if (err)
		return err;
	return *v < 0 || *v > max ? -EINVAL : 0;
}

static int dblp_set_congestion(struct dblp_sock *dsk, sockptr_t val, unsigned int len)
{
	char name[DBLP_CC_NAME] = { };
	const struct dblp_cc_ops *cc;

	if (!len)
		return -EINVAL;
	if (copy_from_sockptr(name, val, min_t(unsigned int, len, sizeof(name) - 1)))
		return -EFAULT;
	cc = dblp_cc_find(name);
	if (!cc)
		return -ENOENT;
	if (cc == &dblp_cc_fixed && !dblp_net_admin(dsk))
		return -EPERM;
	WRITE_ONCE(dsk->cc, cc);
	return 0;
}

static void dblp_flow_rate(struct dblp_flow *f)
{
	if (f->sender)
		dblp_cc_set_fixed_rate(&dblp_txflow(f)->tx.cc, READ_ONCE(f->dsk->rate));
}

static int dblp_set_rate(struct dblp_sock *dsk, sockptr_t val, unsigned int len)
{
	u64 v;
	int err;

	err = dblp_opt_get(&v, sizeof(v), val, len);
	if (err)
		return err;
	if (!dblp_net_admin(dsk))
		return -EPERM;
	if (!v)
		return -EINVAL;
	WRITE_ONCE(dsk->rate, v);
	dblp_flows_each(dsk, dblp_flow_rate);
	return 0;
}

static int dblp_set_dead_time(struct dblp_sock *dsk, sockptr_t val, unsigned int len)
{
	u32 v;
	int err;

	err = dblp_opt_get(&v, sizeof(v), val, len);
	if (err)
		return err;
	if (v < DBLP_DEAD_MS_MIN || v > DBLP_DEAD_MS_MAX)
		return -ERANGE;
	WRITE_ONCE(dsk->dead_ms, v);
	return 0;
}

static int dblp_set_max_message(struct dblp_sock *dsk, sockptr_t val, unsigned int len)
{
	u64 v;
	int err;

	err = dblp_opt_get(&v, sizeof(v), val, len);
	if (err)
		return err;
	if (!v || v > DBLP_MAX_MESSAGE)
		return -EINVAL;
	WRITE_ONCE(dsk->max_message, v);
	return 0;
}

static int dblp_set_own(struct dblp_sock *dsk, int opt, sockptr_t val, unsigned int len)
{
	int err, v;

	switch (opt) {
	case DBLP_SO_SEND:
		return dblp_set_send(dsk, val, len);
	case DBLP_SO_COMPLETIONS:
		err = dblp_get_int(&v, 1, val, len);
		if (!err)
			WRITE_ONCE(dsk->completions, v);
		return err;
	case DBLP_SO_PARTIAL:
		err = dblp_get_int(&v, 1, val, len);
		if (!err)
			WRITE_ONCE(dsk->partial, v);
		return err;
	case DBLP_SO_HOLES:
		err = dblp_get_int(&v, DBLP_HOLES_KEEP, val, len);
		if (!err)
			WRITE_ONCE(dsk->holes, v);
		return err;
	case DBLP_SO_CONGESTION:
		return dblp_set_congestion(dsk, val, len);
	case DBLP_SO_RATE:
		return dblp_set_rate(dsk, val, len);
	case DBLP_SO_DEAD_TIME:
		return dblp_set_dead_time(dsk, val, len);
	case DBLP_SO_MAX_MESSAGE:
		return dblp_set_max_message(dsk, val, len);
	default:
		return -ENOPROTOOPT;
	}
}

static int dblp_set_v6only(struct dblp_sock *dsk, sockptr_t val, unsigned int len)
{
	int err, v;

	err = dblp_opt_get(&v, sizeof(v), val, len);
	if (err)
		return err;
	if (dsk->bound)
		return -EINVAL;
	dsk->v6only = v;
	return 0;
}

int dblp_setsockopt(struct socket *sock, int level, int opt, sockptr_t val,
		    unsigned int len)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	int err = -ENOPROTOOPT;

	lock_sock(sock->sk);
	if (level == SOL_DBLP)
		err = dblp_set_own(dsk, opt, val, len);
	else if (level == SOL_IPV6 && opt == IPV6_V6ONLY)
		err = dblp_set_v6only(dsk, val, len);
	release_sock(sock->sk);
	return err;
}

/* ---- reading -------------------------------------------------------------------- */

union dblp_opt {
	struct dblp_send_params send;
	struct dblp_info info;
	char name[DBLP_CC_NAME];
	u64 u64;
	u32 u32;
	int i;
};

/* Fills @v; returns its size. */
static int dblp_get_own(struct dblp_sock *dsk, int opt, union dblp_opt *v)
{
	int err;

	switch (opt) {
	case DBLP_SO_SEND:
		v->send = dsk->send_def;
		return sizeof(v->send);
	case DBLP_SO_COMPLETIONS:
		v->i = dsk->completions;
		return sizeof(v->i);
	case DBLP_SO_PARTIAL:
		v->i = dsk->partial;
		return sizeof(v->i);
	case DBLP_SO_HOLES:
		v->i = dsk->holes;
		return sizeof(v->i);
	case DBLP_SO_CONGESTION:
		strscpy(v->name, dsk->cc->name, sizeof(v->name));
		return sizeof(v->name);
	case DBLP_SO_RATE:
		v->u64 = dsk->rate;
		return sizeof(v->u64);
	case DBLP_SO_DEAD_TIME:
		v->u32 = dsk->dead_ms;
		return sizeof(v->u32);
	case DBLP_SO_MAX_MESSAGE:
		v->u64 = dblp_max_message(dsk);
		return sizeof(v->u64);
	case DBLP_SO_INCARNATION:
		v->u64 = dsk->bound ? dsk->ep.hs.incarnation : 0;
		return sizeof(v->u64);
	case DBLP_SO_INFO:
		err = dblp_info_get(dsk, &v->info);
		return err ? err : sizeof(v->info);
	default:
		return -ENOPROTOOPT;
	}
}

int dblp_getsockopt(struct socket *sock, int level, int opt, char __user *val,
		    int __user *optlen)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	union dblp_opt v = { };
	int len, size = -ENOPROTOOPT;

	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	lock_sock(sock->sk);
	if (level == SOL_DBLP) {
		size = dblp_get_own(dsk, opt, &v);
	} else if (level == SOL_IPV6 && opt == IPV6_V6ONLY) {
		v.i = dsk->v6only;
		size = sizeof(v.i);
	}
	release_sock(sock->sk);
	if (size < 0)
		return size;
	len = min(len, size);
	if (put_user(len, optlen) || copy_to_user(val, &v, len))
		return -EFAULT;
	return 0;
}

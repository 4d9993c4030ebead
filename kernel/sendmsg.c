// SPDX-License-Identifier: GPL-2.0
/*
 * sendmsg(): checks, waits for room, copies the payload, hands the message to the flow.
 * The handshake is not waited for; what becomes of the message is told by a completion.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include "cmsg.h"
#include "flow.h"
#include "message.h"
#include "trace.h"

/* sendmmsg() adds MSG_BATCH by itself. */
#define DBLP_SEND_FLAGS	(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CMSG_COMPAT | MSG_BATCH)

/* Charges the socket, waiting for room if that is allowed. */
static int dblp_send_charge(struct dblp_sock *dsk, u32 cost, bool nonblock)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = &dsk->sk;
	long timeo;
	int err;

	err = dblp_mem_charge(dsk, DBLP_MEM_TX, cost);
	if (err != -EAGAIN)
		return err;
	timeo = sock_sndtimeo(sk, nonblock);
	add_wait_queue(sk_sleep(sk), &wait);
	for (;;) {
		dblp_want_space(dsk);
		err = dblp_mem_charge(dsk, DBLP_MEM_TX, cost);
		if (err != -EAGAIN)
			break;
		if (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN) {
			err = -EPIPE;
			break;
		}
		if (!timeo)
			break;
		if (signal_pending(current)) {
			err = sock_intr_errno(timeo);
			break;
		}
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* The flow's memory of what it sent grows with what it has to send; if it can. */
static void dblp_send_log(struct dblp_txflow *t, u32 nsegs)
{
	struct dblp_sent *mem, *old = NULL;
	u32 size, have;

	spin_lock_bh(&t->f.lock);
	size = dblp_tx_log_wish(&t->tx, nsegs);
	have = t->tx.log.size;
	spin_unlock_bh(&t->f.lock);
	if (size <= have)
		return;
	mem = kvcalloc(size, sizeof(*mem), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!mem)
		return;
	spin_lock_bh(&t->f.lock);
	if (size > t->tx.log.size)
		old = dblp_sentlog_grow(&t->tx.log, mem, size);
	else
		old = mem;
	spin_unlock_bh(&t->f.lock);
	kvfree(old);
}

static int dblp_send_submit(struct dblp_txflow *t, struct dblp_txm *msg)
{
	struct dblp_txmsg *m = &msg->m;
	struct dblp_sock *dsk = t->f.dsk;
	u64 now;

	dblp_send_log(t, dblp_nsegs(m->len, m->seg_size));
	local_bh_disable();
	now = dblp_flow_lock(&t->f, ktime_get_ns());
	if (t->f.dead || dblp_tx_submit(&t->tx, m, now)) {
		spin_unlock(&t->f.lock);
		local_bh_enable();
		return -EPIPE;
	}
	/* It was made for the path as it was. */
	t->room = max_t(u32, t->room, DBLP_HDR_LEN + DBLP_DATA_LEN + m->seg_size);
	t->ppm = m->ppm;
	t->phase = m->phase;
	atomic_inc(&dsk->outstanding);
	atomic64_add(m->len, &dsk->outbytes);
	dblp_mib_inc(dblp_sk_net(dsk), DBLP_MIB_MSGS_SENT);
	trace_dblp_msg_sent(t->f.id, m->id, m->len, m->nsegs, m->ppm, m->mode, m->tag);
	dblp_flow_run(&t->f);
	local_bh_enable();
	return 0;
}

static struct dblp_txm *dblp_send_build(struct dblp_sock *dsk, struct dblp_send_req *req,
					struct msghdr *msg, u32 len, u16 seg_size)
{
	const struct dblp_send_params *p = &req->params;
	u64 cost = dblp_txm_cost(len, seg_size);
	struct dblp_segrun prot[DBLP_PROT_MAX];
	struct dblp_txm *t;
	u32 nprot;
	int err;

	if (cost > dblp_send_limit(dsk))
		return ERR_PTR(-EMSGSIZE);
	err = dblp_cmsg_protect(req, len, seg_size, prot, &nprot);
	if (err)
		return ERR_PTR(err);
	err = dblp_send_charge(dsk, cost, msg->msg_flags & MSG_DONTWAIT);
	if (err)
		return ERR_PTR(err);
	t = dblp_txm_new(dsk, len, seg_size, &msg->msg_iter);
	if (IS_ERR(t)) {
		dblp_mem_uncharge(dsk, DBLP_MEM_TX, cost);
		return t;
	}
	t->notify = READ_ONCE(dsk->completions);
	t->m.max_rounds = p->max_rounds;
	t->m.mode = p->mode;
	t->m.phase = p->phase;
	t->m.priority = p->priority;
	t->m.ordered = p->flags & DBLP_SEND_ORDERED;
	t->m.ppm = p->tolerance_ppm;
	t->m.deadline_us = p->deadline_us;
	t->m.group = p->group;
	t->m.tag = p->tag;
	t->m.nprot = nprot;
	memcpy(t->m.prot, prot, nprot * sizeof(prot[0]));
	return t;
}

static int dblp_send_one(struct dblp_sock *dsk, const struct dblp_addr *to,
			 struct dblp_send_req *req, struct msghdr *msg, u32 len)
{
	struct dblp_txflow *flow;
	struct dblp_txm *t;
	u16 seg_size;
	int err;

	flow = dblp_txflow_get(dsk, to);
	if (IS_ERR(flow))
		return PTR_ERR(flow);
	spin_lock_bh(&flow->f.lock);
	seg_size = dblp_tx_seg_size(&flow->tx);
	spin_unlock_bh(&flow->f.lock);

	t = dblp_send_build(dsk, req, msg, len, seg_size);
	if (IS_ERR(t)) {
		dblp_flow_put(&flow->f);
		return PTR_ERR(t);
	}
	t->peer = *to;
	/* A flow that died in the meantime is replaced by a new one. */
	while ((err = dblp_send_submit(flow, t)) == -EPIPE) {
		dblp_flow_put(&flow->f);
		flow = dblp_txflow_get(dsk, to);
		if (IS_ERR(flow)) {
			dblp_item_put(&t->item);
			return PTR_ERR(flow);
		}
	}
	dblp_flow_put(&flow->f);
	return err;
}

static int dblp_send_to(struct dblp_sock *dsk, struct msghdr *msg, struct dblp_addr *to)
{
	const struct sockaddr *name = msg->msg_name;
	bool connected;
	int err;

	if (!name) {
		spin_lock_bh(&dsk->flows_lock);
		connected = dsk->connected;
		*to = dsk->peer;
		spin_unlock_bh(&dsk->flows_lock);
		return connected ? 0 : -EDESTADDRREQ;
	}
	err = dblp_addr_get(dsk, to, name, msg->msg_namelen);
	if (err)
		return err;
	if (dblp_is_bound(dsk))
		return 0;
	return dblp_autobind(&dsk->sk, to, name->sa_family == AF_INET);
}

int dblp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct dblp_send_req req = { };
	struct sock *sk = sock->sk;
	struct dblp_addr to;
	int err;

	if (msg->msg_flags & ~DBLP_SEND_FLAGS)
		return -EOPNOTSUPP;
	if (!len)
		return -EINVAL;
	if (len > DBLP_MAX_MESSAGE)
		return -EMSGSIZE;
	if (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN)
		return -EPIPE;
	err = sock_error(sk);
	if (err)
		return err;
	spin_lock_bh(&dsk->flows_lock);
	req.params = dsk->send_def;
	spin_unlock_bh(&dsk->flows_lock);
	if (msg->msg_controllen) {
		err = dblp_cmsg_parse(msg, &req);
		if (err)
			return err;
	}
	err = dblp_send_to(dsk, msg, &to);
	if (err)
		return err;
	err = dblp_send_one(dsk, &to, &req, msg, len);
	return err ? err : len;
}

// SPDX-License-Identifier: GPL-2.0
/* The socket family: names, life and events of sockets. */
#include <linux/init.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/rculist.h>
#include <linux/sockios.h>
#include <asm/ioctls.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include "flow.h"
#include "message.h"

u32 dblp_max_message(const struct dblp_sock *dsk)
{
	u32 max = READ_ONCE(dblp_sk_net(dsk)->max_message);
	u64 own = READ_ONCE(dsk->max_message);

	if (own)
		max = min_t(u64, max, own);
	return min(max, dblp_recv_limit(dsk));
}

/* ---- names ---------------------------------------------------------------------- */

/* Reads a socket address; anything goes but what has no meaning at all. */
static int dblp_addr_read(struct dblp_addr *a, const void *uaddr, int len, int oif)
{
	const struct sockaddr_in6 *in6 = uaddr;
	const struct sockaddr_in *in = uaddr;
	int type;

	memset(a, 0, sizeof(*a));
	if (len < (int)offsetofend(struct sockaddr, sa_family))
		return -EINVAL;
	switch (in->sin_family) {
	case AF_INET:
		if (len < (int)sizeof(*in))
			return -EINVAL;
		ipv6_addr_set_v4mapped(in->sin_addr.s_addr, &a->ip);
		a->port = in->sin_port;
		return 0;
	case AF_INET6:
		if (len < (int)sizeof(*in6))
			return -EINVAL;
		a->ip = in6->sin6_addr;
		a->port = in6->sin6_port;
		type = ipv6_addr_type(&a->ip);
		if (type & IPV6_ADDR_LINKLOCAL && !(type & IPV6_ADDR_MULTICAST)) {
			a->scope = in6->sin6_scope_id ? in6->sin6_scope_id : oif;
			if (!a->scope)
				return -EINVAL;
		}
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

/* Neither of many, nor of nobody. */
static bool dblp_addr_is_unicast(const struct dblp_addr *a)
{
	__be32 v4 = a->ip.s6_addr32[3];

	if (dblp_addr_is_v4(a))
		return v4 && !ipv4_is_multicast(v4) && !ipv4_is_lbcast(v4);
	return !ipv6_addr_any(&a->ip) && !ipv6_addr_is_multicast(&a->ip);
}

int dblp_addr_get(struct dblp_sock *dsk, struct dblp_addr *a, const void *uaddr, int len)
{
	bool v4 = !dsk->v6only, v6 = true;
	int err;

	err = dblp_addr_read(a, uaddr, len, READ_ONCE(dsk->sk.sk_bound_dev_if));
	if (err)
		return err;
	if (!a->port)
		return -EINVAL;
	if (dblp_is_bound(dsk)) {
		v4 = dsk->ep.v4;
		v6 = dsk->ep.v6;
	}
	if (!(dblp_addr_is_v4(a) ? v4 : v6))
		return -EAFNOSUPPORT;
	return dblp_addr_is_unicast(a) ? 0 : -ENETUNREACH;
}

int dblp_addr_put(const struct dblp_sock *dsk, const struct dblp_addr *a, void *uaddr)
{
	struct sockaddr_in6 *in6 = uaddr;
	struct sockaddr_in *in = uaddr;

	if (READ_ONCE(dsk->named_v4) && (dblp_addr_is_v4(a) || ipv6_addr_any(&a->ip))) {
		memset(in, 0, sizeof(*in));
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = a->ip.s6_addr32[3];
		in->sin_port = a->port;
		return sizeof(*in);
	}
	memset(in6, 0, sizeof(*in6));
	in6->sin6_family = AF_INET6;
	in6->sin6_addr = a->ip;
	in6->sin6_port = a->port;
	in6->sin6_scope_id = a->scope;
	return sizeof(*in6);
}

static int dblp_bind(struct socket *sock, struct dblp_sockaddr *uaddr, int len)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;
	struct dblp_addr a;
	int err;

	err = dblp_addr_read(&a, uaddr, len, READ_ONCE(sk->sk_bound_dev_if));
	if (err)
		return err;
	if (dblp_addr_is_v4(&a) ? a.ip.s6_addr32[3] && !dblp_addr_is_unicast(&a) :
	    ipv6_addr_is_multicast(&a.ip))
		return -EADDRNOTAVAIL;
	lock_sock(sk);
	if (dsk->bound) {
		err = -EINVAL;
	} else {
		WRITE_ONCE(dsk->named_v4, uaddr->sa_family == AF_INET);
		err = dblp_endpoint_open(dsk, &a, !dblp_addr_is_v4(&a));
	}
	release_sock(sk);
	return err;
}

int dblp_autobind(struct sock *sk, const struct dblp_addr *to, bool name_v4)
{
	struct dblp_sock *dsk = dblp_sk(sk);
	struct dblp_addr any = { };
	int err = 0;

	lock_sock(sk);
	if (!dsk->bound) {
		WRITE_ONCE(dsk->named_v4, name_v4);
		err = dblp_endpoint_open(dsk, &any, true);
		/* The kernel may have no IPv6. */
		if (err == -EAFNOSUPPORT && dblp_addr_is_v4(to)) {
			ipv6_addr_set_v4mapped(0, &any.ip);
			err = dblp_endpoint_open(dsk, &any, false);
		}
	}
	release_sock(sk);
	return err;
}

static void dblp_set_peer(struct dblp_sock *dsk, const struct dblp_addr *peer)
{
	spin_lock_bh(&dsk->flows_lock);
	dsk->connected = peer;
	if (peer)
		dsk->peer = *peer;
	spin_unlock_bh(&dsk->flows_lock);
}

static int dblp_connect(struct socket *sock, struct dblp_sockaddr *uaddr, int len,
			int flags)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct dblp_path path = { };
	struct dblp_addr a;
	int err;

	if (len < (int)offsetofend(struct sockaddr, sa_family))
		return -EINVAL;
	if (uaddr->sa_family == AF_UNSPEC) {
		dblp_set_peer(dsk, NULL);
		return 0;
	}
	err = dblp_addr_get(dsk, &a, uaddr, len);
	if (err)
		return err;
	err = dblp_autobind(sock->sk, &a, uaddr->sa_family == AF_INET);
	if (err)
		return err;
	/* Tells now what sendmsg() would. */
	err = dblp_path_find(dsk, &a, &path);
	if (err)
		return err;
	dblp_path_put(&path);
	dblp_set_peer(dsk, &a);
	dblp_flows_each(dsk, dblp_flow_filter);
	return 0;
}

static int dblp_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct dblp_addr a = { };
	bool connected;

	if (!peer) {
		if (dblp_is_bound(dsk))
			a = dsk->ep.local;
		return dblp_addr_put(dsk, &a, uaddr);
	}
	spin_lock_bh(&dsk->flows_lock);
	connected = dsk->connected;
	a = dsk->peer;
	spin_unlock_bh(&dsk->flows_lock);
	return connected ? dblp_addr_put(dsk, &a, uaddr) : -ENOTCONN;
}

/* ---- events --------------------------------------------------------------------- */

void dblp_want_space(struct dblp_sock *dsk)
{
	WRITE_ONCE(dsk->nospace, true);
	/* Pairs with dblp_write_space(): seen there, or the room is seen here. */
	smp_mb();
}

static void dblp_write_space(struct sock *sk)
{
	struct dblp_sock *dsk = dblp_sk(sk);
	struct socket_wq *wq;

	smp_mb();	/* the account has been changed before */
	if (!READ_ONCE(dsk->nospace) || !dblp_mem_writable(dsk))
		return;
	WRITE_ONCE(dsk->nospace, false);
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_sync_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
						EPOLLWRBAND);
	rcu_read_unlock();
}

static __poll_t dblp_poll(struct file *file, struct socket *sock,
			  struct poll_table_struct *wait)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;
	__poll_t mask = 0;
	u8 shut;

	sock_poll_wait(file, sock, wait);
	shut = READ_ONCE(sk->sk_shutdown);
	if (READ_ONCE(sk->sk_err))
		mask |= EPOLLERR;
	if (shut == SHUTDOWN_MASK)
		mask |= EPOLLHUP;
	if (shut & RCV_SHUTDOWN)
		mask |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
	if (!list_empty_careful(&dsk->rxq))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (!dblp_mem_writable(dsk))
		dblp_want_space(dsk);
	if (dblp_mem_writable(dsk))
		mask |= EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND;
	return mask;
}

static int dblp_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	int v;

	switch (cmd) {
	case SIOCINQ:
		v = dblp_next_len(dsk);
		break;
	case SIOCOUTQ:
		v = min_t(u64, atomic64_read(&dsk->outbytes), INT_MAX);
		break;
	default:
		return -ENOIOCTLCMD;
	}
	return put_user(v, (int __user *)arg);
}

/* ---- life ----------------------------------------------------------------------- */

static int dblp_shutdown(struct socket *sock, int how)
{
	struct dblp_sock *dsk = dblp_sk(sock->sk);
	struct sock *sk = sock->sk;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	how++;		/* now a mask of RCV_SHUTDOWN and SEND_SHUTDOWN */
	lock_sock(sk);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | how);
	if (how & RCV_SHUTDOWN) {
		spin_lock_bh(&dsk->flows_lock);
		dsk->deaf = true;
		spin_unlock_bh(&dsk->flows_lock);
		dblp_flows_each(dsk, dblp_flow_filter);
	}
	release_sock(sk);
	sk->sk_state_change(sk);
	return 0;
}

static void dblp_linger(struct dblp_sock *dsk)
{
	struct sock *sk = &dsk->sk;

	if (!sock_flag(sk, SOCK_LINGER) || !sk->sk_lingertime || current->flags & PF_EXITING)
		return;
	wait_event_interruptible_timeout(*sk_sleep(sk), !atomic_read(&dsk->outstanding),
					 sk->sk_lingertime);
}

static int dblp_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct dblp_sock *dsk;
	struct dblp_net *dn;

	if (!sk)
		return 0;
	dsk = dblp_sk(sk);
	dn = dblp_sk_net(dsk);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	dblp_linger(dsk);

	spin_lock_bh(&dsk->flows_lock);
	dsk->closing = true;
	spin_unlock_bh(&dsk->flows_lock);
	if (dsk->bound) {
		dblp_flows_each(dsk, dblp_flow_end);
		dblp_endpoint_close(dsk);
	}
	spin_lock(&dn->lock);
	hlist_del_init_rcu(&dsk->node);
	spin_unlock(&dn->lock);
	dblp_queue_purge(dsk);
	sock_prot_inuse_add(sock_net(sk), &dblp_proto, -1);

	sock_orphan(sk);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

static void dblp_destruct(struct sock *sk)
{
	struct dblp_sock *dsk = dblp_sk(sk);

	WARN_ON_ONCE(!list_empty(&dsk->rxq));
	WARN_ON_ONCE(dsk->wmem || dsk->rmem || dsk->rmeta);
	sk_mem_reclaim_final(sk);
	WARN_ON_ONCE(READ_ONCE(sk->sk_forward_alloc));
	sk_sockets_allocated_dec(sk);
}

static const struct proto_ops dblp_proto_ops = {
	.family		= AF_DBLP,	/* nobody reads it; the live one is in sk_family */
	.owner		= THIS_MODULE,
	.release	= dblp_release,
	.bind		= dblp_bind,
	.connect	= dblp_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= sock_no_accept,
	.getname	= dblp_getname,
	.poll		= dblp_poll,
	.ioctl		= dblp_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= sock_no_listen,
	.shutdown	= dblp_shutdown,
	.setsockopt	= dblp_setsockopt,
	.getsockopt	= dblp_getsockopt,
	.sendmsg	= dblp_sendmsg,
	.recvmsg	= dblp_recvmsg,
	.mmap		= sock_no_mmap,
};

static int dblp_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	struct dblp_net *dn = dblp_pernet(net);
	struct dblp_sock *dsk;
	struct sock *sk;

	if (sock->type != SOCK_RDM)
		return -ESOCKTNOSUPPORT;
	if (protocol)
		return -EPROTONOSUPPORT;
	sk = sk_alloc(net, dblp_family, GFP_KERNEL, &dblp_proto, kern);
	if (!sk)
		return -ENOBUFS;
	sock->ops = &dblp_proto_ops;
	sock->state = SS_UNCONNECTED;
	sock_init_data(sock, sk);
	sock_set_flag(sk, SOCK_RCU_FREE);
	sk->sk_destruct = dblp_destruct;
	sk->sk_write_space = dblp_write_space;
	sk->sk_sndbuf = READ_ONCE(dblp_sysctl_wmem[1]);
	sk->sk_rcvbuf = READ_ONCE(dblp_sysctl_rmem[1]);
	sk_sockets_allocated_inc(sk);
	sock_prot_inuse_add(net, &dblp_proto, 1);

	dsk = dblp_sk(sk);
	spin_lock_init(&dsk->flows_lock);
	spin_lock_init(&dsk->rxq_lock);
	spin_lock_init(&dsk->mem_lock);
	spin_lock_init(&dsk->budget_lock);
	INIT_LIST_HEAD(&dsk->flows);
	INIT_LIST_HEAD(&dsk->rxq);
	dblp_budget_init(&dsk->budget, dblp_recv_limit(dsk));
	dsk->pid = task_tgid_nr(current);
	dsk->ino = SOCK_INODE(sock)->i_ino;
	dsk->cc = &dblp_cc_bdp;
	dsk->dead_ms = div_u64(DBLP_DEAD_NS, NSEC_PER_MSEC);

	spin_lock(&dn->lock);
	hlist_add_head_rcu(&dsk->node, &dn->socks);
	spin_unlock(&dn->lock);
	return 0;
}

static struct net_proto_family dblp_family_ops __ro_after_init = {
	.create	= dblp_create,
	.owner	= THIS_MODULE,
};

int __init dblp_af_init(void)
{
	dblp_family_ops.family = dblp_family;
	return sock_register(&dblp_family_ops);
}

void dblp_af_exit(void)
{
	sock_unregister(dblp_family);
}

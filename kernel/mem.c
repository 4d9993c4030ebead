// SPDX-License-Identifier: GPL-2.0
/*
 * Memory accounting.  Both softirq and process context charge a socket, so all use of
 * sk_forward_alloc is under mem_lock, not the socket lock.  What is charged here is
 * charged to the memory cgroup of the socket too, so it is not allocated with
 * __GFP_ACCOUNT; what is not charged here is.
 */
#include <linux/percpu_counter.h>
#include <net/sock.h>
#include "dblp.h"

static atomic_long_t dblp_memory_allocated;
static DEFINE_PER_CPU(int, dblp_memory_per_cpu_fw_alloc);
static unsigned long dblp_memory_pressure;
struct percpu_counter dblp_sockets_allocated;

static void dblp_enter_memory_pressure(struct sock *sk)
{
	WRITE_ONCE(dblp_memory_pressure, 1);
}

struct proto dblp_proto = {
	.name			= "DBLP",
	.owner			= THIS_MODULE,
	.obj_size		= sizeof(struct dblp_sock),
	.enter_memory_pressure	= dblp_enter_memory_pressure,
	.memory_pressure	= &dblp_memory_pressure,
	.memory_allocated	= &dblp_memory_allocated,
	.per_cpu_fw_alloc	= &dblp_memory_per_cpu_fw_alloc,
	.sockets_allocated	= &dblp_sockets_allocated,
	.sysctl_mem		= dblp_sysctl_mem,
	.sysctl_wmem		= dblp_sysctl_wmem,
	.sysctl_rmem		= dblp_sysctl_rmem,
};

static u32 *dblp_mem_account(struct dblp_sock *dsk, enum dblp_mem kind)
{
	switch (kind) {
	case DBLP_MEM_TX:
		return &dsk->wmem;
	case DBLP_MEM_RX:
		return &dsk->rmem;
	default:
		return &dsk->rmeta;
	}
}

static bool dblp_mem_admits(struct dblp_sock *dsk, enum dblp_mem kind, u32 bytes)
{
	switch (kind) {
	case DBLP_MEM_TX:
		return dsk->wmem < dblp_send_limit(dsk);
	case DBLP_MEM_RX:
		return dsk->rmem < DBLP_MEM_MAX - bytes;
	default:
		return dsk->rmeta + bytes <=
		       max_t(u32, dblp_recv_limit(dsk) / 4, DBLP_META_MIN);
	}
}

int dblp_mem_charge(struct dblp_sock *dsk, enum dblp_mem kind, u32 bytes)
{
	struct sock *sk = &dsk->sk;
	int err = -EAGAIN;
	int missing;

	spin_lock_bh(&dsk->mem_lock);
	if (!dblp_mem_admits(dsk, kind, bytes))
		goto out;
	missing = (int)bytes - sk->sk_forward_alloc;
	if (missing > 0 && !__sk_mem_schedule(sk, missing, kind == DBLP_MEM_TX ?
					      SK_MEM_SEND : SK_MEM_RECV)) {
		err = -ENOBUFS;
		goto out;
	}
	sk_mem_charge(sk, bytes);
	*dblp_mem_account(dsk, kind) += bytes;
	if (kind == DBLP_MEM_TX)
		refcount_add(bytes, &sk->sk_wmem_alloc);
	else
		atomic_add(bytes, &sk->sk_rmem_alloc);
	err = 0;
out:
	spin_unlock_bh(&dsk->mem_lock);
	if (err == -ENOBUFS)
		dblp_mib_inc(dblp_sk_net(dsk), DBLP_MIB_MEMORY_PRESSURE);
	return err;
}

void dblp_mem_uncharge(struct dblp_sock *dsk, enum dblp_mem kind, u32 bytes)
{
	struct sock *sk = &dsk->sk;
	bool wake = false;

	if (!bytes)
		return;
	spin_lock_bh(&dsk->mem_lock);
	*dblp_mem_account(dsk, kind) -= bytes;
	if (kind == DBLP_MEM_TX) {
		WARN_ON_ONCE(refcount_sub_and_test(bytes, &sk->sk_wmem_alloc));
		wake = dsk->wmem < dblp_send_limit(dsk);
	} else {
		atomic_sub(bytes, &sk->sk_rmem_alloc);
	}
	sk_mem_uncharge(sk, bytes);
	spin_unlock_bh(&dsk->mem_lock);
	if (wake)
		sk->sk_write_space(sk);
}

bool dblp_mem_writable(struct dblp_sock *dsk)
{
	return READ_ONCE(dsk->wmem) < dblp_send_limit(dsk);
}

int __init dblp_mem_init(void)
{
	int err;

	dblp_sysctl_mem_init();
	err = percpu_counter_init(&dblp_sockets_allocated, 0, GFP_KERNEL);
	if (err)
		return err;
	err = proto_register(&dblp_proto, 1);
	if (err)
		percpu_counter_destroy(&dblp_sockets_allocated);
	return err;
}

void dblp_mem_exit(void)
{
	proto_unregister(&dblp_proto);
	percpu_counter_destroy(&dblp_sockets_allocated);
}

// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the bytes that a stock kernel copies, clears, and sums up: for "lab cpu".
 *
 * The functions that do this are closed to tracefs, which refuses what ftrace
 * cannot see, but not to kprobes. None of them calls another of them, so nothing
 * counts twice. Copies by memcpy() and clearing by memset() are not seen: kprobes
 * may not be set there.
 */

#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

enum lab_count_kind {
	LAB_COPIED,
	LAB_CLEARED,
	LAB_SUMMED,
	LAB_COPIED_AND_SUMMED,
};

enum lab_count_where {
	LAB_PAGE,
	LAB_CX,
	LAB_DX,
	LAB_SI,
};

/**
 * struct lab_count - a function whose calls are counted
 * @probe: where it is
 * @kind: what it does
 * @where: what holds the number of bytes when it is entered
 */
struct lab_count {
	struct kprobe probe;
	enum lab_count_kind kind;
	enum lab_count_where where;
};

static atomic64_t lab_copied, lab_cleared, lab_summed;

static int lab_count_hit(struct kprobe *probe, struct pt_regs *regs)
{
	const struct lab_count *count = container_of(probe, struct lab_count, probe);
	u64 bytes = 0;

	switch (count->where) {
	case LAB_PAGE:
		bytes = PAGE_SIZE;
		break;
	case LAB_CX:
		bytes = regs->cx;
		break;
	case LAB_DX:
		bytes = (u32)regs->dx;
		break;
	case LAB_SI:
		bytes = (u32)regs->si;
		break;
	}
	if (count->kind == LAB_COPIED || count->kind == LAB_COPIED_AND_SUMMED)
		atomic64_add(bytes, &lab_copied);
	if (count->kind == LAB_SUMMED || count->kind == LAB_COPIED_AND_SUMMED)
		atomic64_add(bytes, &lab_summed);
	if (count->kind == LAB_CLEARED)
		atomic64_add(bytes, &lab_cleared);
	return 0;
}
NOKPROBE_SYMBOL(lab_count_hit);

#define LAB_COUNT(name, what, holds) { \
	.probe = { .symbol_name = name, .pre_handler = lab_count_hit }, \
	.kind = what, .where = holds }

/* Which of them there are depends on the kernel and on the CPU. */

static struct lab_count lab_counts[] = {
	LAB_COUNT("rep_movs_alternative", LAB_COPIED, LAB_CX),
	LAB_COUNT("copy_user_generic_unrolled", LAB_COPIED, LAB_DX),
	LAB_COUNT("copy_user_generic_string", LAB_COPIED, LAB_DX),
	LAB_COUNT("skb_copy_bits", LAB_COPIED, LAB_CX),
	LAB_COUNT("clear_page_rep", LAB_CLEARED, LAB_PAGE),
	LAB_COUNT("clear_page_orig", LAB_CLEARED, LAB_PAGE),
	LAB_COUNT("csum_partial", LAB_SUMMED, LAB_SI),
	LAB_COUNT("csum_partial_copy_generic", LAB_COPIED_AND_SUMMED, LAB_DX),
	LAB_COUNT("crc32c_pcl_intel_update", LAB_SUMMED, LAB_DX),
	LAB_COUNT("crc32c_intel_update", LAB_SUMMED, LAB_DX),
	LAB_COUNT("chksum_update", LAB_SUMMED, LAB_DX),
};

static int lab_count_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%llu\n", atomic64_read((atomic64_t *)kp->arg));
}

static const struct kernel_param_ops lab_count_ops = {
	.get = lab_count_get,
};

module_param_cb(copied, &lab_count_ops, &lab_copied, 0444);
MODULE_PARM_DESC(copied, "Bytes copied between user space and the kernel, and out of packets");
module_param_cb(cleared, &lab_count_ops, &lab_cleared, 0444);
MODULE_PARM_DESC(cleared, "Bytes of pages cleared");
module_param_cb(summed, &lab_count_ops, &lab_summed, 0444);
MODULE_PARM_DESC(summed, "Bytes of which a checksum was computed");

static void lab_count_remove(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lab_counts); i++) {
		if (lab_counts[i].probe.addr)
			unregister_kprobe(&lab_counts[i].probe);
	}
}

static int __init lab_count_init(void)
{
	unsigned int i, found[4] = {};
	int err;

	for (i = 0; i < ARRAY_SIZE(lab_counts); i++) {
		struct lab_count *count = &lab_counts[i];

		err = register_kprobe(&count->probe);
		if (err == -ENOENT) {
			count->probe.addr = NULL;
			continue;
		}
		if (err) {
			pr_err("lab_count: %s: %d\n", count->probe.symbol_name, err);
			count->probe.addr = NULL;
			goto fail;
		}
		found[count->kind]++;
	}
	err = -ENOENT;
	if (!found[LAB_COPIED] || !found[LAB_CLEARED] || !found[LAB_SUMMED])
		goto fail;
	return 0;

fail:
	lab_count_remove();
	return err;
}

static void __exit lab_count_exit(void)
{
	lab_count_remove();
}

module_init(lab_count_init);
module_exit(lab_count_exit);

MODULE_DESCRIPTION("Counts bytes copied, cleared and summed up");
MODULE_LICENSE("GPL");

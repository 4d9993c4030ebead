/* SPDX-License-Identifier: GPL-2.0 */
/* Where unaligned access is declared; for kernel/core too. */
#ifndef DBLP_UNALIGNED_H
#define DBLP_UNALIGNED_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#endif /* DBLP_UNALIGNED_H */

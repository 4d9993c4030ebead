/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's harness, with time for an emulated machine that is busy. */
#ifndef DBLP_HARNESS_H
#define DBLP_HARNESS_H

#include "kselftest_harness.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

#endif /* DBLP_HARNESS_H */

// SPDX-License-Identifier: LGPL-2.1 OR BSD-3-Clause
//
// Marks what the shared library exports; everything else stays hidden.
#pragma once

#if defined(DBLP_STATIC)
#define DBLP_EXPORT
#else
#define DBLP_EXPORT __attribute__((visibility("default")))
#endif

/* SPDX-License-Identifier: Apache-2.0
 * The smaller of two sizes. */
#ifndef LACI_BASE_MIN_H
#define LACI_BASE_MIN_H

#include <stdint.h>

static inline int64_t laci_min(int64_t a, int64_t b) { return a < b ? a : b; }

#endif

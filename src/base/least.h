/* SPDX-License-Identifier: Apache-2.0
 * The smaller of two sizes. */
#ifndef LACI_BASE_LEAST_H
#define LACI_BASE_LEAST_H

#include <stdint.h>

static inline int64_t laci_least(int64_t a, int64_t b) { return a < b ? a : b; }

#endif

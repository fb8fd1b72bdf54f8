/* SPDX-License-Identifier: Apache-2.0
 * Division of integers. */
#ifndef LACI_BASE_DIVIDE_H
#define LACI_BASE_DIVIDE_H

#include <stdint.h>

/** Returns a / b, rounded up, for b > 0 and a of any sign; nothing overflows. */
static inline int64_t laci_ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

#endif

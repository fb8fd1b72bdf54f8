/* SPDX-License-Identifier: Apache-2.0
 * Counted words: "1 group", "2 groups", "0 groups". */
#ifndef LACI_BASE_PLURAL_H
#define LACI_BASE_PLURAL_H

#include <stdint.h>

/** Returns the ending of a counted noun: "%d layer%s", n, laci_plural(n). */
static inline const char *laci_plural(int64_t n) { return n == 1 ? "" : "s"; }

#endif

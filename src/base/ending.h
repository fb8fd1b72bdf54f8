/* SPDX-License-Identifier: Apache-2.0
 * Endings of names: "weights.npz" ends in ".npz". */
#ifndef LACI_BASE_ENDING_H
#define LACI_BASE_ENDING_H

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/** Do the first n characters of the text end in `ending`, in letters of either case? */
static inline bool laci_ends_with_n(const char *text, size_t n, const char *ending) {
  const size_t n_ending = strlen(ending);
  return n >= n_ending && strncasecmp(text + n - n_ending, ending, n_ending) == 0;
}

/** Does the text end in `ending`, in letters of either case? */
static inline bool laci_ends_with(const char *text, const char *ending) {
  return laci_ends_with_n(text, strlen(text), ending);
}

#endif

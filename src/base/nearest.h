/* SPDX-License-Identifier: Apache-2.0
 * Suggests the known word that an unknown one was meant to be. */
#ifndef LACI_BASE_NEAREST_H
#define LACI_BASE_NEAREST_H

#include <stddef.h>

/** Returns the candidate with the least edit distance to text, or NULL where none is near enough.
 * The first `mark` characters of text, a prefix that many candidates share, do not count for the
 * number of errors that are allowed. */
const char *laci_nearest_text(const char *text, size_t mark, const char *const *candidates, int n);

#endif

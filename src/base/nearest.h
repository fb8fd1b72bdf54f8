/* SPDX-License-Identifier: Apache-2.0
 * What an unknown word could have meant. */
#ifndef LACI_BASE_NEAREST_H
#define LACI_BASE_NEAREST_H

#include <stddef.h>

/** The candidate nearest to text by edit distance, or NULL where none is near enough to be what was
 * meant. The first `mark` characters of text, which many candidates share, are no letters of the
 * word: they do not raise the number of those that may be wrong. */
const char *laci_nearest_text(const char *text, size_t mark, const char *const *candidates, int n);

#endif

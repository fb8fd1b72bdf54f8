/* SPDX-License-Identifier: Apache-2.0
 * What an unknown word could have meant. */
#ifndef LACI_BASE_NEAREST_H
#define LACI_BASE_NEAREST_H

/** The candidate nearest to text by edit distance, or NULL where none is near enough to be what was
 * meant. */
const char *laci_nearest_text(const char *text, const char *const *candidates, int n);

#endif

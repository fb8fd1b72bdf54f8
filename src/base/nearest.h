/* SPDX-License-Identifier: Apache-2.0
 * Suggests the known word that an unknown one was meant to be. */
#ifndef LACI_BASE_NEAREST_H
#define LACI_BASE_NEAREST_H

#include <stddef.h>

/** Returns the candidate that text was most likely meant to be, or NULL if none is near enough
 * (nearest.c says when). The first `mark` characters of text, a prefix that many candidates share,
 * do not count when the number of allowed errors is computed. */
const char *laci_find_nearest_text(const char *text, size_t mark, const char *const *candidates,
                                   int n);

#endif

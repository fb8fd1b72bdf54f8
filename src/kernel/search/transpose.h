/* SPDX-License-Identifier: Apache-2.0
 * Rows into columns: the transposition of a block of small integers, each column of it to a place
 * of its own. Blocks of 16 bytes square are transposed in registers by interleaving; every
 * processor has what that takes, so there is one variant. Next: permute/search_matrix.c, the
 * reader. */
#ifndef LACI_KERNEL_SEARCH_TRANSPOSE_H
#define LACI_KERNEL_SEARCH_TRANSPOSE_H

#include "kernel/search/number.h"

/** to[c][row + r] = from[r * n_columns + c] for r < n_rows, c < n_columns, and nothing else is
 * written. No alignment beyond the element's. */
void laci_transpose(laci_number number, const void *from, int n_rows, int n_columns,
                    void *const *to, size_t row);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Transposes a matrix of small integers; each column is written to its own address. Blocks of 16
 * rows by 16 bytes are transposed in registers by interleaving. Every processor has the
 * instructions, so there is one variant. Caller: permute/search_matrix.c. */
#ifndef LACI_KERNEL_SEARCH_TRANSPOSE_H
#define LACI_KERNEL_SEARCH_TRANSPOSE_H

#include "kernel/search/number.h"

/** Writes to[c][row + r] = from[r * n_columns + c] for r < n_rows, c < n_columns, and nothing else.
 * Needs only the alignment of the elements. */
void laci_transpose(laci_number number, const void *from, int n_rows, int n_columns,
                    void *const *to, size_t row);

#endif

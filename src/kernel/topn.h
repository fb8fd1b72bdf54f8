/* SPDX-License-Identifier: Apache-2.0
 * What N:M keeps of a few columns, row by row, in the integers of number.h.
 *
 * Each row's n largest are kept sorted while the columns pass by: a new element sinks by max and
 * min through n places, whole arrays of rows at a time, which every compiler turns into vector
 * code. */
#ifndef LACI_KERNEL_TOPN_H
#define LACI_KERNEL_TOPN_H

#include "kernel/number.h"

enum { LACI_TOPN_MAX = 64 }; /* largest n */

/** out[r] = the n-th largest of columns[0 .. n_columns)[r]; 0 where there are fewer than n. 1 <= n
 * <= LACI_TOPN_MAX. */
void laci_nth_largest(laci_number number, const void *const *columns, int n_columns, int n,
                      size_t rows, void *out);

/** Sum over r of the n largest of columns[..][r]; n is at most n_columns. */
int64_t laci_top_sum(laci_number number, const void *const *columns, int n_columns, int n,
                     size_t rows);

#endif

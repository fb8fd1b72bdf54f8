/* SPDX-License-Identifier: Apache-2.0
 * What N:M keeps of a few columns, row by row, in the integers of number.h.
 *
 * Each row's n largest are kept sorted while the columns pass by: a new element sinks by max and
 * min through n places, whole registers of rows at a time. topn_scalar.c defines the result;
 * topn_isa.c is the one text of the vector variants; topn.c chooses. */
#ifndef LACI_KERNEL_SEARCH_TOPN_H
#define LACI_KERNEL_SEARCH_TOPN_H

#include "kernel/search/number.h"
#include "kernel/variants.h"

enum { LACI_TOPN_MAX = 64 }; /* largest n */

typedef void laci_nth(laci_number number, const void *const *columns, int n_columns, int n,
                      size_t rows, void *out);
typedef int64_t laci_sum(laci_number number, const void *const *columns, int n_columns, int n,
                         size_t rows);

#define LACI_TOPN_DECLARE(name, level) \
  laci_nth laci_nth_largest_##name;    \
  laci_sum laci_top_sum_##name;
LACI_KERNEL_VARIANTS(LACI_TOPN_DECLARE)
#undef LACI_TOPN_DECLARE

/** out[r] = the n-th largest of columns[0 .. n_columns)[r]; 0 where there are fewer than n. 1 <= n
 * <= LACI_TOPN_MAX; rows % LACI_NUMBER_ROWS == 0. By the variant in force (cpu/cpu.h). */
void laci_nth_largest(laci_number number, const void *const *columns, int n_columns, int n,
                      size_t rows, void *out);

/** Sum over r of the n largest of columns[..][r]; n is at most n_columns. Otherwise likewise. */
int64_t laci_top_sum(laci_number number, const void *const *columns, int n_columns, int n,
                     size_t rows);

#endif

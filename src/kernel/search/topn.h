/* SPDX-License-Identifier: Apache-2.0
 * For each row of a few columns: the N largest elements, which an N:M pattern keeps, in the
 * integers of number.h.
 *
 * The columns are read one after the other, while each row's n largest so far are kept sorted. A
 * new element is inserted by max and min operations, whole registers of rows at a time.
 * topn_scalar.c defines the result; topn_isa.c is the common source of the vector variants; topn.c
 * chooses. */
#ifndef LACI_KERNEL_SEARCH_TOPN_H
#define LACI_KERNEL_SEARCH_TOPN_H

#include "kernel/search/number.h"
#include "kernel/variants.h"

enum { LACI_TOPN_MAX = 64 }; /* the largest n that is allowed */

typedef void laci_nth(laci_number number, const void *const *columns, int n_columns, int n,
                      size_t rows, void *out);
typedef int64_t laci_sum(laci_number number, const void *const *columns, int n_columns, int n,
                         size_t rows);

#define LACI_TOPN_DECLARE(name, level) \
  laci_nth laci_nth_largest_##name;    \
  laci_sum laci_sum_n_largest_##name;
LACI_KERNEL_VARIANTS(LACI_TOPN_DECLARE)
#undef LACI_TOPN_DECLARE

/** Writes out[r] = the n-th largest of columns[0 .. n_columns)[r], or 0 where there are fewer than
 * n columns. 1 <= n <= LACI_TOPN_MAX; rows is a multiple of LACI_NUMBER_ROWS. Uses the variant in
 * force (cpu/cpu.h). */
void laci_nth_largest(laci_number number, const void *const *columns, int n_columns, int n,
                      size_t rows, void *out);

/** Returns the sum, over all rows r, of the n largest of columns[..][r]; n <= n_columns. Other
 * conditions are those of laci_nth_largest. */
int64_t laci_sum_n_largest(laci_number number, const void *const *columns, int n_columns, int n,
                           size_t rows);

#endif

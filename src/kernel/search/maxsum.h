/* SPDX-License-Identifier: Apache-2.0
 * The value table of the permutation search: a matrix product with max in place of multiplication.
 *
 *     out[i][j] = sum over r of max(t[i][r], x[j][r])
 *
 * x[j] is a column that could be moved to slot i. t[i] is, for every row, the weight that x[j] must
 * exceed to be kept among the other columns of the slot's group. All sums are integers, so every
 * variant gives the same result. maxsum_scalar.c is the reference; there is one file per
 * instruction set, and maxsum.c chooses. Read next: permute/search_anneal.c and search_values.c,
 * the readers. */
#ifndef LACI_KERNEL_SEARCH_MAXSUM_H
#define LACI_KERNEL_SEARCH_MAXSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/search/number.h"
#include "kernel/variants.h"

enum {
  LACI_MAXSUM_ROWS = LACI_NUMBER_ROWS,
  LACI_MAXSUM_LIMIT = 1 << 26 /* limit of rows * largest element, so that sums and differences fit
                                 in int32_t */
};

/** A table of nt x nx sums over columns of `rows` elements, written to out[i * out_stride + j].
 * rows is a multiple of LACI_MAXSUM_ROWS; columns need only the alignment of their elements.
 * `first` and `adds` are used between maxsum.c and the variants: callers leave them zero. */
typedef struct laci_maxsum_job {
  const void *const *t, *const *x; /* [nt] pointers to the columns t, and [nx] pointers to the
                                      columns x */
  int nt, nx;
  size_t rows;
  int32_t *out;
  size_t out_stride;
  size_t first; /* the row to begin at */
  bool adds;    /* true: sums are added to out; false: out is overwritten */
} laci_maxsum_job;

typedef void laci_maxsum(const laci_maxsum_job *job);

#define LACI_MAXSUM_DECLARE(name, level) laci_maxsum laci_maxsum_u8_##name, laci_maxsum_i16_##name;
LACI_KERNEL_VARIANTS(LACI_MAXSUM_DECLARE)
#undef LACI_MAXSUM_DECLARE

/** Computes the table with the variant in force (cpu/cpu.h). Rows are processed in chunks that fit
 * in the first-level cache. Callable from any thread. */
void laci_maxsum_compute_table(laci_number number, const laci_maxsum_job *job);

#endif

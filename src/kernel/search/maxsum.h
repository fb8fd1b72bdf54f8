/* SPDX-License-Identifier: Apache-2.0
 * The value table of the permutation search: a matrix product with max in the place of times.
 *
 *     out[i][j] = sum over r of max(t[i][r], x[j][r])
 *
 * t[i] is what a slot's siblings leave open in every row, x[j] a column that could go there. All
 * sums are integers, so every variant gives the same result. One scalar file defines it
 * (maxsum_scalar.c), one file per instruction set is faster; maxsum.c chooses. Next:
 * permute/search_anneal.c and search_values.c, the readers. */
#ifndef LACI_KERNEL_SEARCH_MAXSUM_H
#define LACI_KERNEL_SEARCH_MAXSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/search/number.h"
#include "kernel/variants.h"

enum {
  LACI_MAXSUM_ROWS = LACI_NUMBER_ROWS,
  LACI_MAXSUM_LIMIT = 1 << 26 /* of rows * largest element: sums fit, and so do differences */
};

/** nt x nx sums over columns of `rows` elements (rows % LACI_MAXSUM_ROWS == 0; aligned to the
 * element, no more) at out[i * out_stride + j]. `first` and `adds` are between maxsum.c and the
 * variants: callers leave them zero. */
typedef struct laci_maxsum_job {
  const void *const *t, *const *x; /* [nt], [nx] columns */
  int nt, nx;
  size_t rows;
  int32_t *out;
  size_t out_stride;
  size_t first; /* row to begin at */
  bool adds;    /* to what out holds; else out is set */
} laci_maxsum_job;

typedef void laci_maxsum(const laci_maxsum_job *job);

#define LACI_MAXSUM_DECLARE(name, level) laci_maxsum laci_maxsum_u8_##name, laci_maxsum_i16_##name;
LACI_KERNEL_VARIANTS(LACI_MAXSUM_DECLARE)
#undef LACI_MAXSUM_DECLARE

/** The table by the variant in force (cpu/cpu.h). Rows are taken in chunks that stay in the first
 * cache. Any thread. */
void laci_maxsum_table(laci_number number, const laci_maxsum_job *job);

#endif

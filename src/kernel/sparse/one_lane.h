/* SPDX-License-Identifier: Apache-2.0
 * The sums of a sparse product of floats (product.h), for tiles in which only one lane is a result.
 *
 * For example, 49 pixels are three tiles of 16 and one pixel. Generated code would take as long for
 * that pixel as for sixteen. So lanes are rows here: the weights of a column are expanded to the
 * rows that keep it, and multiplied with the pixel's value. Weights have the order of generated
 * code (jit/sparse_in.h), so that they are stored only once. Terms are added in the order of
 * product.h and give the same bits. */
#ifndef LACI_KERNEL_SPARSE_ONE_LANE_H
#define LACI_KERNEL_SPARSE_ONE_LANE_H

#include <stdint.h>

#include "kernel/variants.h"

enum {
  LACI_ONE_LANE_ROWS = 32,    /* maximum number of rows in one call */
  LACI_ONE_LANE_PADDING = 16, /* this many floats after the last weight must be readable; their
                                 values do not matter */
};

/** Cache lines to be prefetched: n_lines lines from the address `at` on. */
typedef struct laci_one_lane_prefetch {
  const void *at;
  int64_t n_lines;
} laci_one_lane_prefetch;

/** Some columns of a product, for up to LACI_ONE_LANE_ROWS rows. Arrays are borrowed. */
typedef struct laci_one_lane_columns {
  int64_t n;            /* number of columns */
  const uint32_t *rows; /* [n] rows that keep each column: bit r is set if row r keeps it */
  const float *weight;  /* kept weights, column after column, rows ascending in a column */
  const float *x;       /* [n] value of x in each column */
  /* cache lines that are used after these columns: next[0] of the code, next[1] of the weights */
  laci_one_lane_prefetch next[2];
} laci_one_lane_columns;

/** Adds weight * x of all columns to sums[LACI_ONE_LANE_ROWS], row by row. Sums of rows that keep
 * none of the columns, or do not exist, are unchanged. */
typedef void laci_one_lane_add(const laci_one_lane_columns *columns, float *sums);

#define LACI_ONE_LANE_DECLARE(name, level) laci_one_lane_add laci_one_lane_add_##name;
LACI_KERNEL_VARIANTS(LACI_ONE_LANE_DECLARE)
#undef LACI_ONE_LANE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_one_lane_add *laci_one_lane_add_variant(void);

#endif

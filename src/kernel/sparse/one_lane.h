/* SPDX-License-Identifier: Apache-2.0
 * The sums of a sparse product of floats (product.h) for tiles that have only one lane with a
 * result.
 *
 * For example, 49 pixels are three tiles of 16 and one pixel. Generated code would take as long for
 * that pixel as for sixteen. Here, lanes are rows instead: the weights of a column are expanded to
 * the rows that keep it, and multiplied with the pixel's value. The weights have the order of
 * generated code (jit/sparse_in.h), so that they are stored only once. Terms are added in the order
 * of product.h and give the same bits. */
#ifndef LACI_KERNEL_SPARSE_ONE_LANE_H
#define LACI_KERNEL_SPARSE_ONE_LANE_H

#include <stdint.h>

#include "kernel/variants.h"

enum {
  LACI_ONE_LANE_ROWS = 32,  /* most rows of one call */
  LACI_ONE_LANE_AFTER = 16, /* floats after the last weight that must be readable; their values do
                               not matter */
};

/** Cache lines to be prefetched: n_lines of them, from the address `at` on. */
typedef struct laci_one_lane_ahead {
  const void *at;
  int64_t n_lines;
} laci_one_lane_ahead;

/** Some columns, for up to LACI_ONE_LANE_ROWS rows. Arrays are borrowed. */
typedef struct laci_one_lane_columns {
  int64_t n;            /* number of columns */
  const uint32_t *rows; /* [n]: bit r is set where row r keeps the column */
  const float *weight;  /* the kept weights, ascending in (column, row) */
  const float *x;       /* [n] value of each column */
  /* cache lines of the code, and of the weights, that are used after these columns: to be
   * prefetched */
  laci_one_lane_ahead next[2];
} laci_one_lane_columns;

/** Adds the columns' terms to sums, [LACI_ONE_LANE_ROWS]. Sums of rows that keep none of the
 * columns, or do not exist, are unchanged. */
typedef void laci_one_lane_add(const laci_one_lane_columns *columns, float *sums);

#define LACI_ONE_LANE_DECLARE(name, level) laci_one_lane_add laci_one_lane_add_##name;
LACI_KERNEL_VARIANTS(LACI_ONE_LANE_DECLARE)
#undef LACI_ONE_LANE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_one_lane_add *laci_one_lane_add_variant(void);

#endif

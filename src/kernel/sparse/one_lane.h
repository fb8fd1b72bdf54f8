/* SPDX-License-Identifier: Apache-2.0
 * Sums of a sparse product (product.h) for one lane, of floats.
 *
 * 49 pixels are three tiles and one pixel more. Generated code takes as long for that one as for
 * sixteen; here lanes are rows instead: the weights of a column are spread to the rows that keep
 * it, and multiplied with the pixel's value. Weights are in the order of generated code
 * (jit/sparse_in.h), so that none is stored twice, and terms are added in the same order: the same
 * bits as product.h's. */
#ifndef LACI_KERNEL_SPARSE_ONE_LANE_H
#define LACI_KERNEL_SPARSE_ONE_LANE_H

#include <stdint.h>

#include "kernel/variants.h"

enum {
  LACI_ONE_LANE_ROWS = 32,  /* at most */
  LACI_ONE_LANE_AFTER = 16, /* floats after the last weight that may be read, and are not used */
};

/** Lines of a cache that are fetched meanwhile, from `at` on. */
typedef struct laci_one_lane_ahead {
  const void *at;
  int64_t n_lines;
} laci_one_lane_ahead;

/** Some columns of some rows. Borrowed arrays. */
typedef struct laci_one_lane_columns {
  int64_t n;                   /* columns */
  const uint32_t *rows;        /* [n]: bit r is set where row r keeps the column */
  const float *weight;         /* those that are kept, ascending in (column, row) */
  const float *x;              /* [n] */
  laci_one_lane_ahead next[2]; /* what is read after these */
} laci_one_lane_columns;

/** Adds the columns' terms to sums, [LACI_ONE_LANE_ROWS]; those of rows that keep nothing, or are
 * not there, stay as they are. */
typedef void laci_one_lane_add(const laci_one_lane_columns *columns, float *sums);

#define LACI_ONE_LANE_DECLARE(name, level) laci_one_lane_add laci_one_lane_add_##name;
LACI_KERNEL_VARIANTS(LACI_ONE_LANE_DECLARE)
#undef LACI_ONE_LANE_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_one_lane_add *laci_one_lane_add_now(void);

#endif

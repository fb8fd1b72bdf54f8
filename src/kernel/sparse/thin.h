/* SPDX-License-Identifier: Apache-2.0
 * Sums of a sparse product (product.h) for one lane, of floats.
 *
 * 49 pixels are three tiles and one pixel more. Generated code takes as long for that one as for
 * sixteen; here lanes are rows instead: the weights of a column are spread to the rows that keep
 * it, and multiplied with the pixel's value. Weights stand as code reads them (jit/sparse_in.h), so
 * that none is there twice, and terms are added in the same order: the same bits as product.h's. */
#ifndef LACI_KERNEL_SPARSE_THIN_H
#define LACI_KERNEL_SPARSE_THIN_H

#include <stdint.h>

#include "kernel/variants.h"

enum {
  LACI_THIN_ROWS = 32,   /* at most */
  LACI_THIN_BEHIND = 16, /* floats behind the last weight that may be read, and are not used */
};

/** Lines of a cache that are fetched meanwhile, from `at` on. */
typedef struct laci_thin_ahead {
  const void *at;
  int64_t n_lines;
} laci_thin_ahead;

/** Some columns of some rows. Borrowed arrays. */
typedef struct laci_thin_columns {
  int64_t n;               /* columns */
  const uint32_t *rows;    /* [n]: bit r is set where row r keeps the column */
  const float *weight;     /* those that are kept, ascending in (column, row) */
  const float *x;          /* [n] */
  laci_thin_ahead next[2]; /* what is read behind these */
} laci_thin_columns;

/** Adds the columns' terms to sums, [LACI_THIN_ROWS]; those of rows that keep nothing, or are not
 * there, stay as they are. */
typedef void laci_thin_add(const laci_thin_columns *columns, float *sums);

#define LACI_THIN_DECLARE(name, level) laci_thin_add laci_thin_add_##name;
LACI_KERNEL_VARIANTS(LACI_THIN_DECLARE)
#undef LACI_THIN_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_thin_add *laci_thin_add_now(void);

#endif

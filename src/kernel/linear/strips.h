/* SPDX-License-Identifier: Apache-2.0
 * Rows times a dense matrix that is stored in strips, for products that are repeated with the same
 * matrix:
 *
 *     y[row][column] = start[row][column] + sum over k of x[row][k] * w[k][column]
 *
 * A strip has 16 columns next to each other, for one k after the other: [strip][depth][16]. A sum
 * begins at its start and adds the products in ascending order of k, one fused multiply-add each.
 * So every variant gives the same bits, and so does every division of rows and strips among
 * threads. strips_scalar.c is the reference, strips_isa.c the common source of the other variants.
 * Callers: engine/cpu/lower/recurrent_run.c and product_strips.c. */
#ifndef LACI_KERNEL_LINEAR_STRIPS_H
#define LACI_KERNEL_LINEAR_STRIPS_H

#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_STRIP = 16 }; /* columns of a strip */

typedef struct laci_strip_product {
  int64_t n_rows, depth, n_strips;
  const float *x;      /* [n_rows, depth] the rows */
  const float *strips; /* [n_strips, depth, 16] the matrix */
  const float *start;  /* [n_rows, n_strips * 16] the numbers at which sums begin; may be y */
  float *y;            /* [n_rows, n_strips * 16] the result */
  /* row strides of x, start and y, in elements; start_row 0: all rows of y begin with the same
   * numbers */
  int64_t x_row, start_row, y_row;
} laci_strip_product;

/** Computes y. Needs only the alignment of floats. Callable from any thread. */
typedef void laci_multiply_strips(const laci_strip_product *p);

#define LACI_STRIPS_DECLARE(name, level) laci_multiply_strips laci_multiply_strips_##name;
LACI_KERNEL_VARIANTS(LACI_STRIPS_DECLARE)
#undef LACI_STRIPS_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_multiply_strips *laci_multiply_strips_variant(void);

/** Returns how many strips hold `columns` columns. */
static inline int64_t laci_strips_count(int64_t columns) {
  return (columns + LACI_STRIP - 1) / LACI_STRIP;
}
/** Writes one column w [depth] into its place of a matrix of strips; columns that are never written
 * must be zeros. */
void laci_strips_set_column(float *strips, int64_t depth, int64_t column, const float *w);

#endif

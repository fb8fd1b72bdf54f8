/* SPDX-License-Identifier: Apache-2.0
 * What the files of matrix products share: product.c has the lists. */
#ifndef LACI_ENGINE_CPU_LOWER_PRODUCT_H
#define LACI_ENGINE_CPU_LOWER_PRODUCT_H

#include "engine/cpu/net_in.h"

/* ---- product_right.c: a constant matrix on the right ---- */

/** y[rows][columns] = alpha * x[rows][depth] * matrix[depth][columns] + beta * C. */
typedef struct laci_right {
  int64_t rows, depth, columns;
  bool left_transposed, transposed; /* x, or the matrix, is stored transposed */
  float alpha, beta;
} laci_right;

/** Floats of a rank that oneDNN has. */
bool laci_product_has_operands(const laci_net *net, const laci_node *node);
/** Is a Gemm or MatMul such a product, C being a constant row, or one number, or absent? */
laci_lower_supports laci_right_fits;
laci_right laci_right_of(const laci_net *net, const laci_fused *fused);
/** The matrix with alpha and the fused node's scale in it. */
laci_net_weight laci_right_weight(const laci_net *net, const laci_fused *fused,
                                  const laci_right *r);
/** scale * beta * C + shift as [1, columns]; -1: none. */
int laci_right_bias(laci_net *net, const laci_fused *fused, const laci_right *r);
/** Few enough that reading the matrix is most of the work? */
bool laci_right_has_few_rows(const laci_right *r);
/** A value's rows as one matrix. */
int laci_product_rows(laci_net *net, int value, int64_t rows, int64_t columns, bool transposed);

/* ---- onednn/product_train.c: Gemm of two values ---- */

laci_lower_supports laci_gemm_values_fit;
laci_lower_function laci_gemm_values;

#endif

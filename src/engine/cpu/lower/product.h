/* SPDX-License-Identifier: Apache-2.0
 * What the files of matrix products share; the lists of implementations are in product.c. */
#ifndef LACI_ENGINE_CPU_LOWER_PRODUCT_H
#define LACI_ENGINE_CPU_LOWER_PRODUCT_H

#include "engine/cpu/net_in.h"

/* ---- product_right.c: a constant matrix on the right ---- */

/** A product with a constant matrix on the right: y[rows][columns] = alpha * x[rows][depth] *
 * matrix[depth][columns] + beta * C. */
typedef struct laci_right_operand {
  int64_t rows, depth, columns;
  bool left_transposed, transposed; /* left_transposed: x is stored transposed; transposed: the
                                       matrix is */
  float alpha, beta;
} laci_right_operand;

/** Are the operands of a Gemm or MatMul floats of a rank that oneDNN supports? */
bool laci_product_has_supported_operands(const laci_net *net, const laci_node *node);
/** Is the node a Gemm or MatMul with a constant matrix on the right (laci_right_operand)? C must be
 * absent, a constant row, or one constant number. */
laci_lower_supports laci_is_product_with_constant_matrix;
laci_right_operand laci_right_operand_read(const laci_net *net, const laci_fused *fused);
/** Returns the constant matrix as a weight that is multiplied by alpha and by the fused node's
 * scale. */
laci_net_weight laci_right_operand_weight(const laci_net *net, const laci_fused *fused,
                                          const laci_right_operand *r);
/** Returns the product's bias, scale * beta * C + shift, as a tensor [1, columns]; -1: there is
 * none. */
int laci_right_operand_bias(laci_net *net, const laci_fused *fused, const laci_right_operand *r);
/** Has the product so few rows that most of the time is spent reading the matrix? */
bool laci_right_operand_has_few_rows(const laci_right_operand *r);
/** Returns a tensor of the value as one matrix [rows, columns]; transposed: the matrix is stored
 * transposed. */
int laci_product_read_matrix(laci_net *net, int value, int64_t rows, int64_t columns,
                             bool transposed);

/* ---- product_strips.c: a constant matrix on the right, in strips ---- */

laci_lower_supports laci_can_lower_product_strips;
laci_lower_function laci_lower_product_strips;

/* ---- onednn/product_train.c: Gemm of two values ---- */

laci_lower_supports laci_can_lower_gemm_values;
laci_lower_function laci_lower_gemm_values;

#endif

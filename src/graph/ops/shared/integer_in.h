/* SPDX-License-Identifier: Apache-2.0
 * Products of integers: MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv.
 *
 * Zero points are subtracted from the operands first. The products and sums are computed by MatMul
 * and Conv in doubles, which hold them exactly (a sum of 2^20 products of bytes has 36 bits).
 * QLinear operators quantize the sum again. Channels are coupled as in Conv and MatMul, and scales
 * and zero points of the weight follow its output channels. The code is in mat_mul_integer.c. */
#ifndef LACI_GRAPH_OPS_SHARED_INTEGER_IN_H
#define LACI_GRAPH_OPS_SHARED_INTEGER_IN_H

#include "graph/ops/shared/op_in.h"

/** The input ports of such an operator's operands; -1: it has no such operand. */
typedef struct laci_integer_ports {
  int a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero;
  /* the axis of a, b or y that a zero point or scale vector belongs to, counted from the first
   * axis, or (negative) from the last */
  int a_axis, b_axis, y_axis;
} laci_integer_ports;

/** Infers the shape of output 0 from a, b and bias, as the float operator `like` (MatMul, Conv)
 * does. */
LAC_MUST_CHECK lac_status laci_integer_infer(laci_infer *infer, const laci_op *like,
                                             const laci_integer_ports *ports);
/** Computes output 0: the sum of products, quantized again where there is a y_scale. */
LAC_MUST_CHECK lac_status laci_integer_eval(const laci_eval *eval, const laci_op *like,
                                            const laci_integer_ports *ports);
lac_status laci_integer_couple(const laci_graph *graph, const laci_node *node, laci_coupling *c,
                               const laci_op *like, const laci_integer_ports *ports);
/** Describes operand b as a weight: of a convolution (k_axis 0), which may have groups, or of a
 * matrix product. Returns 1, or 0 if b is no weight. */
int laci_integer_weights(const laci_node *node, const laci_integer_ports *ports, int k_axis,
                         laci_weight_axes axes[2]);

extern const laci_op laci_op_mat_mul, laci_op_conv;

#endif

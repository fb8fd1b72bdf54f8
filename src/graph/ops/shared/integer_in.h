/* SPDX-License-Identifier: Apache-2.0
 * Products of integers: MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv.
 *
 * What is multiplied is the operand less its zero point; the sums are those of MatMul and Conv over
 * doubles, which hold them exactly (a sum of 2^20 products of bytes has 36 bits). QLinear operators
 * quantize the sum again. Channels are coupled as in Conv and MatMul, and scales and zero points of
 * the weight follow its output channels; the code is in mat_mul_integer.c. */
#ifndef LACI_GRAPH_OPS_SHARED_INTEGER_IN_H
#define LACI_GRAPH_OPS_SHARED_INTEGER_IN_H

#include "graph/ops/shared/op_in.h"

/** The ports of such an operator's operands; -1: it has none. */
typedef struct laci_integer_ports {
  int a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero;
  int a_axis, b_axis, y_axis; /* of a zero point or scale that is a vector, counted from the first
                                 axis, or (negative) from the last */
} laci_integer_ports;

/** Shape of output 0 as the operator of floats `like` (MatMul, Conv) infers it from a, b and bias.
 */
LAC_MUST_CHECK lac_status laci_integer_infer(laci_infer *infer, const laci_op *like,
                                             const laci_integer_ports *ports);
/** Output 0: the sum, or the sum quantized again where there is a y_scale. */
LAC_MUST_CHECK lac_status laci_integer_eval(const laci_eval *eval, const laci_op *like,
                                            const laci_integer_ports *ports);
lac_status laci_integer_couple(const laci_graph *graph, const laci_node *node, laci_coupling *c,
                               const laci_op *like, const laci_integer_ports *ports);
/** The operand b as a weight: a convolution's (k_axis 0), which may have groups, or a product's. */
int laci_integer_weights(const laci_node *node, const laci_integer_ports *ports, int k_axis,
                         laci_weight_axes axes[2]);

extern const laci_op laci_op_mat_mul, laci_op_conv;

#endif

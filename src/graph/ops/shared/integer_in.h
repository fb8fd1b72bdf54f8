/* SPDX-License-Identifier: Apache-2.0
 * Operators on quantized operands (graph/quantized.h).
 *
 * Products of integers (MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv) are exact: zero
 * points are subtracted from the operands first, and MatMul and Conv compute the sums in doubles,
 * which hold them (a sum of 2^20 products of bytes has 36 bits). QLinear operators quantize the sum
 * again. That code is in mat_mul_integer.c.
 *
 * Others are computed from operands that were made floats (quantized.c). Channels are coupled as in
 * the operator on floats, and scales and zero points of a weight follow its output channels. */
#ifndef LACI_GRAPH_OPS_SHARED_INTEGER_IN_H
#define LACI_GRAPH_OPS_SHARED_INTEGER_IN_H

#include "graph/ops/shared/op_in.h"
#include "graph/quantized.h"

/** Returns the scale or zero point of element `at` of x. `list` has one element for all of x, or
 * one for each index along the axis. */
double laci_quantized_list_element(const laci_buf *list, const laci_shape *x, int axis, int64_t at);
/** Does a list of scales or zero points have one element, or one for each index of x along the
 * axis? True where list is NULL. */
bool laci_quantized_list_has_fitting_length(const laci_buf *list, const laci_shape *x, int axis);

/** The scale and zero point that DynamicQuantizeLinear finds for some numbers. */
typedef struct laci_dynamic_range {
  float scale, zero;
} laci_dynamic_range;
laci_dynamic_range laci_dynamic_find_range(const double *x, int64_t n);
/** Returns the scale and zero point for numbers from low to high, and for 0. */
laci_dynamic_range laci_dynamic_range_between(float low, float high);
/** Returns the integer that stands for x, minus the zero point. */
double laci_dynamic_quantize_to_steps(laci_dynamic_range range, double x);

/* ---- Exact products: the node's operator has operands a, b and perhaps a bias ---- */

/** Infers the shape of output 0 as the operator on floats does; its type is that of the zero point,
 * or i32. */
LAC_MUST_CHECK lac_status laci_integer_product_infer(laci_infer *infer);
/** Computes output 0: the sum of products, quantized again where there is a scale for it. */
LAC_MUST_CHECK lac_status laci_integer_product_eval(laci_eval *eval);

/* ---- Any operator ---- */

/** Infers the outputs as the operator on floats does. The type of output 0 is that of the zero
 * point where the result is quantized. */
LAC_MUST_CHECK lac_status laci_quantized_infer(laci_infer *infer);
/** Computes the outputs from operands that were made floats. */
LAC_MUST_CHECK lac_status laci_quantized_eval(laci_eval *eval);

/* ---- Channels ---- */

/** Couples a product whose weight is operand b: scales and zero points of b may be lists along its
 * output channels. */
lac_status laci_quantized_couple_product(const laci_graph *graph, const laci_node *node,
                                         laci_coupling *c);
/** Ties the channel orders (coupling.h) of an operator whose scales and zero points are single
 * numbers. */
lac_status laci_quantized_couple_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c);
/** Describes operand b as a weight: of a convolution (k_axis 0), which may have groups, or of a
 * matrix product. Returns 1, or 0 if b is no weight. */
int laci_quantized_find_weight_axes(const laci_node *node, int k_axis, laci_weight_axes axes[2]);

extern const laci_op laci_op_mat_mul, laci_op_conv;

/** The operands of QLinearConv, and the axes of its weight's channels (q_linear_conv.c).
 * com.microsoft's has the same. */
extern const laci_quantized_form laci_q_linear_conv_form;
int laci_q_linear_conv_find_weight_axes(const laci_graph *graph, const laci_node *node,
                                        laci_weight_axes axes[2]);

#endif

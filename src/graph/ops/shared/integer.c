/* SPDX-License-Identifier: Apache-2.0
 * Exact products of integers: integer_in.h. */
#include <math.h>

#include "base/to_int.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

enum { A, B, BIAS, N_OPERANDS };

/** The input ports of a product's operands; -1: it has no such operand. */
typedef struct product_ports {
  int a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero;
  /* the axis of a, b or y that a zero point or scale vector belongs to, counted from the first
   * axis, or (negative) from the last */
  int a_axis, b_axis, y_axis;
} product_ports;

static product_ports find_product_ports(const laci_node *node) {
  const laci_quantized_form *form = node->op->quantized;
  const laci_quantized_operand a = laci_quantized_operand_ports(form, node, A);
  const laci_quantized_operand b = laci_quantized_operand_ports(form, node, B);
  return (product_ports){
      .a = a.data,
      .a_scale = a.scale,
      .a_zero = a.zero,
      .b = b.data,
      .b_scale = b.scale,
      .b_zero = b.zero,
      .bias = form->bias ? laci_quantized_operand_ports(form, node, form->bias).data : -1,
      .y_scale = form->quantizes ? form->y_scale : -1,
      .y_zero = form->quantizes ? form->y_zero : -1,
      .a_axis = a.axis,
      .b_axis = b.axis,
      .y_axis = form->like == &laci_op_conv ? 1 : -1,
  };
}

lac_status laci_integer_product_infer(laci_infer *infer) {
  const laci_quantized_form *form = infer->node->op->quantized;
  lac_status st = laci_check_n_inputs(infer, form->quantizes ? form->y_zero + 1 : 2, -1);
  if (st) return st;
  st = laci_quantized_infer(infer);
  if (!st && !form->quantizes) infer->out[0].dtype = LAC_DTYPE_I32;
  return st;
}

double laci_quantized_list_element(const laci_buf *list, const laci_shape *x, int axis,
                                   int64_t at) {
  if (list->count == 1) return laci_buf_get_f(list, 0);
  if (axis < 0) axis += x->rank;
  if (axis < 0) axis = 0;
  /* a list with all axes of x, one of them of size 1: one element for each row of a batch of
   * matrices */
  if (list->shape.rank == x->rank) {
    laci_walk walk;
    laci_walk_begin(&walk, x);
    laci_walk_add_broadcast(&walk, &list->shape);
    int64_t place = 0;
    for (int a = x->rank - 1; a >= 0; a--) {
      place += at % x->dims[a] * walk.stride[0][a];
      at /= x->dims[a];
    }
    return laci_buf_get_f(list, place);
  }
  return laci_buf_get_f(list, at / laci_shape_count_range(x, axis + 1, x->rank) % x->dims[axis]);
}

bool laci_quantized_list_has_fitting_length(const laci_buf *list, const laci_shape *x, int axis) {
  if (!list || list->count == 1) return true;
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank) return false;
  if (list->shape.rank != x->rank) return list->count == x->dims[axis];
  for (int a = 0; a < x->rank; a++) {
    if (list->shape.dims[a] != 1 && list->shape.dims[a] != x->dims[a]) return false;
  }
  return true;
}

/** Makes *out = x minus its zero point, in double. */
static lac_status subtract_zero_point(const laci_eval *eval, int port, int zero_port, int axis,
                                      laci_buf **out) {
  const laci_buf *x = eval->in[port], *zero = zero_port >= 0 ? laci_operand(eval, zero_port) : NULL;
  if (!laci_quantized_list_has_fitting_length(zero, &x->shape, axis)) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "the zero points of input %d do not fit it", port);
  }
  lac_status st = laci_buf_create(LAC_DTYPE_F64, &x->shape, out, eval->err);
  for (int64_t at = 0; !st && at < x->count; at++) {
    (*out)->f[at] =
        laci_buf_get_f(x, at) - (zero ? laci_quantized_list_element(zero, &x->shape, axis, at) : 0);
  }
  return st;
}

/** Quantizes the sums with the scales of both operands and of the output. */
static lac_status quantize_sums(const laci_eval *eval, const product_ports *ports,
                                const laci_buf *sums) {
  laci_buf *y = eval->out[0];
  const laci_buf *a = eval->in[ports->a_scale], *b = eval->in[ports->b_scale];
  const laci_buf *scale = eval->in[ports->y_scale], *zero = eval->in[ports->y_zero];
  bool sure =
      (a->count == 1 || laci_quantized_list_has_fitting_length(a, &sums->shape, ports->a_axis)) &&
      scale->count == 1 && zero->count == 1 &&
      laci_quantized_list_has_fitting_length(b, &sums->shape, ports->y_axis) && y->i;
  if (!sure)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "the scales do not fit the product");
  for (int64_t at = 0; at < y->count; at++) {
    double factor = laci_quantized_list_element(a, &sums->shape, ports->a_axis, at) *
                    laci_quantized_list_element(b, &sums->shape, ports->y_axis, at) /
                    laci_buf_get_f(scale, 0);
    double value = rint(sums->f[at] * factor) + laci_buf_get_f(zero, 0);
    y->i[at] = laci_int_truncate(y->dtype, value);
  }
  return LAC_OK;
}

lac_status laci_integer_product_eval(laci_eval *eval) {
  const product_ports all = find_product_ports(eval->node), *ports = &all;
  laci_buf *lifted[N_OPERANDS] = {0}, *sums = NULL, *out[1];
  const laci_buf *in[N_OPERANDS] = {0};
  int n = 2;
  lac_status st = subtract_zero_point(eval, ports->a, ports->a_zero, ports->a_axis, &lifted[A]);
  if (!st) st = subtract_zero_point(eval, ports->b, ports->b_zero, ports->b_axis, &lifted[B]);
  if (!st && ports->bias >= 0 && laci_operand(eval, ports->bias)) {
    st = subtract_zero_point(eval, ports->bias, -1, 0, &lifted[BIAS]);
    n = N_OPERANDS;
  }
  if (!st) st = laci_buf_create(LAC_DTYPE_F64, &eval->out[0]->shape, &sums, eval->err);
  if (!st) {
    laci_eval inner = *eval;
    for (int k = 0; k < n; k++) in[k] = lifted[k];
    out[0] = sums;
    inner.n_in = n;
    inner.n_out = 1;
    inner.in = in;
    inner.out = out;
    st = eval->node->op->quantized->like->eval(&inner);
  }
  if (!st && ports->y_scale >= 0) st = quantize_sums(eval, ports, sums);
  for (int64_t at = 0; !st && ports->y_scale < 0 && at < sums->count; at++) {
    eval->out[0]->i[at] = laci_int_wrap(eval->out[0]->dtype, laci_clamp_to_int64(sums->f[at]));
  }
  for (int k = 0; k < N_OPERANDS; k++) laci_buf_destroy(lifted[k]);
  laci_buf_destroy(sums);
  return st;
}

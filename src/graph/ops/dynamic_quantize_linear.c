/* SPDX-License-Identifier: Apache-2.0
 * DynamicQuantizeLinear: quantizes to u8 with a scale and a zero point from the range of x,
 * computed in float as the standard says.
 *   scale = (max(x, 0) - min(x, 0)) / 255
 *   zero  = round(-min / scale)
 *   y     = round(x / scale) + zero */
#include "graph/coupling.h"
#include "graph/ops/shared/integer_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0] = (laci_type){.dtype = LAC_DTYPE_U8, .shape = infer->in[0]->shape};
  for (int out = 1; out < infer->n_out; out++) {
    infer->out[out].dtype = out == 1 ? LAC_DTYPE_F32 : LAC_DTYPE_U8;
    infer->out[out].shape.rank = 0;
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_buf *y = laci_result(eval, 0), *scale = laci_result(eval, 1);
  laci_buf *zero = laci_result(eval, 2);
  if (!x->f) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "quantizing %s",
                          lac_dtype_name(x->dtype));
  }
  const laci_dynamic_range range = laci_dynamic_find_range(x->f, x->count);
  for (int64_t at = 0; y && at < x->count; at++)
    y->i[at] = (int64_t)(laci_dynamic_quantize_to_steps(range, x->f[at]) + (double)range.zero);
  if (scale) scale->f[0] = (double)range.scale;
  if (zero) zero->i[0] = (int64_t)range.zero;
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  const laci_shape *x = laci_port_shape(c, 0);
  laci_couple_broadcast_ports(c, (const int[]){0}, 1);
  for (int axis = 0; x && axis < x->rank; axis++)
    laci_coupling_mark_label_normalized(c, laci_coupling_get_label(c, 0, axis));
  return laci_coupling_status(c);
}

const laci_op laci_op_dynamic_quantize_linear = {.name = "DynamicQuantizeLinear",
                                                 .role = LACI_ROLE_PASS_THROUGH,
                                                 .discontinuous = true,
                                                 .infer = infer,
                                                 .eval = eval,
                                                 .couple = couple_channel_orders};

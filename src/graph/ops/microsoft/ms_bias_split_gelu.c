/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.BiasSplitGelu: y = a * gelu(b), where a and b are the halves of the last axis of x
 * + bias;
 *       gelu(x) = x / 2 * (1 + erf(x / sqrt 2)).
 *
 * Channels: channel k of y is channel k of a and of b, and the same two channels of the bias. */
#include <math.h>

#include "graph/coupling.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  int64_t size = laci_in_size(infer, 0, -1);
  st = laci_check_input_sizes(infer, 1, 1, &size);
  infer->out[0] = *infer->in[0];
  const laci_shape *x = laci_in_shape(infer, 0);
  if (st || !x) return st;
  if (x->rank < 1 || (size >= 0 && size % 2))
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "%lld channels are not two halves", (long long)size);
  infer->out[0].shape.dims[x->rank - 1] = size >= 0 ? size / 2 : infer->new_symbol(infer);
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  const laci_buf *x = eval->in[0];
  int64_t n = eval->out[0]->shape.dims[x->shape.rank - 1];
  const double *bias = eval->in[1]->f;
  for (int64_t at = 0; !st && at < eval->out[0]->count; at++) {
    const double *row = x->f + at / n * 2 * n;
    double a = row[at % n] + bias[at % n], b = row[n + at % n] + bias[n + at % n];
    eval->out[0]->f[at] = a * b / 2 * (1 + erf(b * M_SQRT1_2));
  }
  return st;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  if (!x || !y || !laci_port_shape(c, 1) || !laci_is_axis_mappable(c, 0, x->rank - 1) ||
      !laci_is_axis_mappable(c, 1, 0))
    return laci_coupling_status(c);
  int last = x->rank - 1;
  int64_t n = y->dims[last];
  laci_couple_other_axes(c, 0, LACI_OUT(0), last);
  for (int port = 0; port < 2; port++) {
    for (int half = 0; half < 2; half++) {
      laci_coupling_add_map_of_consecutive(c,
                                           (laci_axis_map){.out_port = LACI_OUT(0),
                                                           .out_axis = last,
                                                           .in_port = port,
                                                           .in_axis = port ? 0 : last,
                                                           .n_out = n,
                                                           .n = n},
                                           half * n);
    }
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_ms_bias_split_gelu = {.name = "BiasSplitGelu",
                                            .domain = LACI_MICROSOFT,
                                            .role = LACI_ROLE_INFER,
                                            .infer = infer,
                                            .eval = eval,
                                            .couple = couple_channel_orders};

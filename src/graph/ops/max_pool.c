/* SPDX-License-Identifier: Apache-2.0
 * MaxPool: the largest element under the window, and its position (Indices: flat over the whole
 * tensor; with storage_order = 1 positions within a channel count column by column).
 *
 * Indices depend on channel numbers: where that output is used, all axes are FIXED: their order
 * must stay (coupling.h). */
#include <math.h>

#include "graph/coupling.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/pool_in.h"
#include "graph/ops/shared/window_grad_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_pooling_infer(infer);
  if (st || infer->n_out < 2) return st;
  infer->out[1] = (laci_type){.dtype = LAC_DTYPE_I64, .shape = infer->out[0].shape};
  return LAC_OK;
}

static void keep_larger_element(laci_pool_state *state, double x, int64_t at) {
  if (!(x > state->value || isnan(x)) && state->at >= 0) return;
  state->value = x;
  state->at = at;
}

const laci_pooling laci_max_pooling = {.start = {.value = -INFINITY, .at = -1},
                                       .step = keep_larger_element};

/** Converts row-major positions within channels to column-major ones. */
static void convert_indices_to_column_major(const laci_shape *x, laci_buf *indices) {
  int64_t spatial = laci_shape_count_range(x, 2, x->rank);
  for (int64_t at = 0; spatial > 0 && at < indices->count; at++) {
    int64_t place = indices->i[at] % spatial, stride = spatial, transposed = 0;
    for (int axis = x->rank - 1; axis >= 2; axis--) {
      stride /= x->dims[axis];
      transposed += place % x->dims[axis] * stride;
      place /= x->dims[axis];
    }
    indices->i[at] += transposed - indices->i[at] % spatial;
  }
}

static lac_status eval(laci_eval *eval) {
  laci_buf *indices = laci_result(eval, 1);
  lac_status st = laci_pooling_eval(eval, &laci_max_pooling, indices);
  if (st || !indices || !laci_node_int(eval->node, "storage_order", 0)) return st;
  convert_indices_to_column_major(&eval->in[0]->shape, indices);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  if (laci_has_output(node, 1)) {
    const laci_value *indices = &graph->values[node->outputs[1]];
    if (indices->n_readers > 0 || indices->is_output) {
      c->why = "the indices of MaxPool are used, and they number the channels";
      return laci_coupling_status(c);
    }
  }
  return laci_pooling_couple_orders(graph, node, c);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_window_attrs attrs;
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  lac_status st = laci_gradient_read_window(b, node, &x, NULL, &attrs);
  if (st) return st;
  const int inputs[] = {laci_gradient_of(b, node, 0), node->inputs[0]};
  laci_gradient_contribute(b, node, 0,
                           laci_gradient_add_internal(b, "MaxPoolGrad", 2, inputs, &attrs));
  return laci_gradient_status(b);
}

const laci_op laci_op_max_pool = {
    .name = "MaxPool",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"ceil_mode", LACI_ATTR_INT},
                                  {"dilations", LACI_ATTR_INTS}, {"kernel_shape", LACI_ATTR_INTS},
                                  {"pads", LACI_ATTR_INTS}, {"storage_order", LACI_ATTR_INT},
                                  {"strides", LACI_ATTR_INTS}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};

/* SPDX-License-Identifier: Apache-2.0
 * Flatten: [d0 .. dn] -> [d0 * .. * d(axis-1), daxis * .. * dn]; the order of elements in memory is
 * kept. Channel c of [N, C, H, W] becomes H * W neighbouring positions. */
#include "graph/coupling.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  int64_t axis = laci_node_int(infer->node, "axis", 1);
  laci_shape *out = &infer->out[0].shape;
  out->rank = 2;
  if (!x) {
    out->dims[0] = infer->new_symbol(infer);
    out->dims[1] = infer->new_symbol(infer);
    return LAC_OK;
  }
  if (axis < -x->rank || axis > x->rank) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "axis %lld of a tensor of %d axes", (long long)axis, x->rank);
  }
  if (axis < 0) axis += x->rank;
  out->dims[0] = laci_multiply_sizes(infer, x, 0, (int)axis);
  out->dims[1] = laci_multiply_sizes(infer, x, (int)axis, x->rank);
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  laci_copy_elements(eval->out[0], 0, eval->in[0], 0, eval->in[0]->count);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  c->reshape = true;
  return laci_coupling_status(c);
}

const laci_op laci_op_flatten = {.name = "Flatten",
                                 .role = LACI_ROLE_PASS_THROUGH,
                                 .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                 .moves_data = true,
                                 .is_fold = true,
                                 .infer = infer,
                                 .eval = eval,
                                 .couple = couple_channel_orders,
                                 .gradient = laci_gradient_of_reshape};

/* SPDX-License-Identifier: Apache-2.0
 * Dropout in inference, or with a ratio of 0: y = x, and a mask of ones if that output is used.
 * Every channel order passes; the mask is uniform. */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 3);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  if (infer->n_out > 1) {
    infer->out[1].dtype = infer->node->version >= 10 ? LAC_DTYPE_BOOL : infer->in[0]->dtype;
    infer->out[1].shape = infer->in[0]->shape;
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *training = laci_operand(eval, 2);
  const laci_buf *ratio = laci_operand(eval, 1);
  bool drops = !ratio || ratio->count == 0 || laci_buf_get_f(ratio, 0) != 0;
  if (training && training->count && laci_buf_get_i(training, 0) && drops) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "training_mode is set");
  }
  laci_copy_elements(eval->out[0], 0, eval->in[0], 0, eval->in[0]->count);
  laci_buf *mask = laci_result(eval, 1);
  for (int64_t at = 0; mask && at < mask->count; at++) {
    if (mask->f) mask->f[at] = 1;
    else mask->i[at] = 1;
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  laci_couple_broadcast_ports(c, (const int[]){0}, 1);
  const laci_shape *mask = laci_port_shape(c, LACI_OUT(1));
  if (mask) laci_coupling_set_fresh_labels(c, LACI_OUT(1), 0, mask->rank);
  return laci_coupling_status(c);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  if (node->version >= 12 && laci_has_input(node, 2)) {
    const laci_buf *training = laci_gradient_known_content(b, node, 2);
    if (!training || training->count != 1 || laci_buf_get_i(training, 0))
      return laci_gradient_fail_unsupported(b, node,
                                            "it drops out, and which elements is not known");
  }
  laci_gradient_contribute(b, node, 0, laci_gradient_of(b, node, 0));
  return laci_gradient_status(b);
}

const laci_op laci_op_dropout = {
    .name = "Dropout",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"ratio", LACI_ATTR_FLOAT}, {"seed", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1 | 1u << 2,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};

/* SPDX-License-Identifier: Apache-2.0
 * Trilu: the upper (or lower) triangle of the last two axes, from the k-th diagonal on; zeros
 * elsewhere. Those two axes are FIXED; the batch axes pass channel orders through (coupling.h). */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/grad_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 2);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  infer->out[0] = *infer->in[0];
  if (!x || x->rank >= 2) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "a tensor of %d axes, at least 2 are wanted", x->rank);
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0], *diagonal = laci_operand(eval, 1);
  int64_t k = diagonal && diagonal->count == 1 ? laci_buf_get_i(diagonal, 0) : 0;
  bool upper = laci_node_int(eval->node, "upper", 1) != 0;
  int64_t n_rows = x->shape.dims[x->shape.rank - 2], n_columns = x->shape.dims[x->shape.rank - 1];
  if (k > n_columns) k = n_columns;
  if (k < -n_rows) k = -n_rows;
  for (int64_t at = 0; at < x->count; at++) {
    int64_t beyond =
        at % n_columns - at / n_columns % n_rows - k; /* columns to the right of the diagonal */
    if (upper ? beyond >= 0 : beyond <= 0) laci_copy_elements(eval->out[0], at, x, at, 1);
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  const laci_shape *x = laci_port_shape(c, 0);
  c->why = "order matters to Trilu";
  for (int axis = 0; x && axis < x->rank - 2; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis, label);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}

/** dX is the same triangle of dY, and zeros elsewhere. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int inputs[2] = {laci_gradient_of(b, node, 0), node->n_inputs > 1 ? node->inputs[1] : -1};
  laci_attr upper = laci_attr_int("upper", laci_node_int(node, "upper", 1));
  laci_gradient_node made = {.type = "Trilu",
                             .n_inputs = inputs[1] >= 0 ? 2 : 1,
                             .inputs = inputs,
                             .n_attrs = 1,
                             .attrs = &upper};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_trilu = {.name = "Trilu",
                               .role = LACI_ROLE_PASS_THROUGH,
                               .attributes = LACI_ATTRIBUTES({"upper", LACI_ATTR_INT}),
                               .inputs_without_channels = 1u << 1,
                               .infer = infer,
                               .eval = eval,
                               .couple = couple_channel_orders,
                               .gradient = gradient};

/* SPDX-License-Identifier: Apache-2.0
 * Compress: keeps the positions of an axis (without one: of the flattened tensor) where the
 * condition is true. Their number is known only where the condition is. The other axes pass channel
 * orders through (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static bool is_selected(const laci_buf *condition, int64_t at) {
  return at < condition->count && condition->i && condition->i[at];
}

static int64_t count_selected(const laci_buf *condition, int64_t size) {
  int64_t n = 0;
  for (int64_t at = 0; at < condition->count; at++) {
    if (condition->i && laci_is_symbol(condition->i[at])) return -1;
    n += at < size && is_selected(condition, at);
  }
  return n;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  const laci_buf *condition = laci_in_known_content(infer, 1);
  bool flat = !laci_node_attr(infer->node, "axis");
  if (!x && !flat) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", 0);
  if (!flat) st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (st) return st;
  int64_t size = flat ? (x ? laci_shape_count(x) : -1) : x->dims[axis];
  int64_t n = condition && size >= 0 ? count_selected(condition, size) : -1;
  laci_shape *y = &infer->out[0].shape;
  if (flat) y->rank = 1;
  else *y = *x;
  y->dims[flat ? 0 : axis] = n >= 0 ? n : infer->new_symbol(infer);
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0], *condition = eval->in[1];
  laci_buf *y = eval->out[0];
  const laci_attr *given = laci_node_attr(eval->node, "axis");
  int64_t axis = laci_node_int(eval->node, "axis", 0), size = x->count, inner = 1;
  lac_status st = given ? laci_check_axis(eval->node, x->shape.rank, &axis, eval->err) : LAC_OK;
  if (st || x->count == 0) return st;
  if (given) {
    size = x->shape.dims[axis];
    inner = laci_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
  }
  for (int64_t from = 0, to = 0; from < x->count / inner; from++) {
    if (is_selected(condition, from % size))
      laci_copy_elements(y, to++ * inner, x, from * inner, inner);
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0);
  c->why = "Compress takes places by their position";
  bool flat = !laci_node_attr(node, "axis");
  int axis =
      x && !flat ? laci_axis_counted_from_first(laci_node_int(node, "axis", 0), x->rank) : -1;
  if (axis >= 0) laci_couple_other_axes(c, 0, LACI_OUT(0), axis);
  return laci_coupling_status(c);
}

const laci_op laci_op_compress = {.name = "Compress",
                                  .role = LACI_ROLE_PASS_THROUGH,
                                  .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                  .inputs_without_channels = 1u << 1,
                                  .infer = infer,
                                  .eval = eval,
                                  .couple = couple_channel_orders};

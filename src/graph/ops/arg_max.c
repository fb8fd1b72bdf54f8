/* SPDX-License-Identifier: Apache-2.0
 * ArgMax: the index of the largest element along an axis; of equal elements the first, or the last
 * (select_last_index). The result is an index, so the axis is FIXED; the other axes pass channel
 * orders through (coupling.h). arg_min.c shares this code. */
#include "graph/coupling.h"
#include "graph/ops/shared/arg_in.h"
#include "tensor/buf.h"

lac_status laci_arg_max_min_infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0].dtype = LAC_DTYPE_I64;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", 0);
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (st) return st;
  if (x->dims[axis] == 0) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "axis %d is empty", (int)axis);
  }
  bool keep = laci_node_int(infer->node, "keepdims", 1) != 0;
  laci_shape *out = &infer->out[0].shape;
  out->rank = 0;
  for (int at = 0; at < x->rank; at++) {
    if (at != axis) out->dims[out->rank++] = x->dims[at];
    else if (keep) out->dims[out->rank++] = 1;
  }
  return LAC_OK;
}

/** Is element `at` better (larger, or smaller for ArgMin) than the best one so far? */
static bool is_better_element(const laci_buf *x, int64_t at, int64_t best, bool largest,
                              bool last) {
  int order; /* sign of the comparison: > 0 if x[at] is larger than x[best], < 0 if smaller */
  if (x->f) order = (x->f[at] > x->f[best]) - (x->f[at] < x->f[best]);
  else order = laci_int_compare(x->dtype, x->i[at], x->i[best]);
  if (!largest) order = -order;
  return order > 0 || (order == 0 && last);
}

lac_status laci_arg_max_min_eval(laci_eval *eval, bool largest) {
  const laci_buf *x = eval->in[0];
  bool last = laci_node_int(eval->node, "select_last_index", 0) != 0;
  int64_t axis = laci_node_int(eval->node, "axis", 0);
  lac_status st = laci_check_axis(eval->node, x->shape.rank, &axis, eval->err);
  if (st) return st;
  int64_t n = x->shape.dims[axis];
  int64_t inner = laci_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
  for (int64_t lane = 0; lane < eval->out[0]->count; lane++) {
    int64_t from = lane / inner * n * inner + lane % inner, best = 0;
    for (int64_t i = 1; i < n; i++) {
      if (is_better_element(x, from + i * inner, from + best * inner, largest, last)) best = i;
    }
    eval->out[0]->i[lane] = best;
  }
  return LAC_OK;
}

lac_status laci_arg_max_min_couple_orders(const laci_node *node, laci_coupling *c,
                                          const char *why) {
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  int axis = x ? laci_axis_counted_from_first(laci_node_int(node, "axis", 0), x->rank) : -1;
  c->why = why;
  if (axis < 0 || !y) return laci_coupling_status(c);
  bool keep = laci_node_int(node, "keepdims", 1) != 0;
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, LACI_OUT(0));
  for (int at = 0, to = 0; at < x->rank; at++) {
    if (at == axis) {
      if (keep) laci_coupling_set_label(c, LACI_OUT(0), to++, laci_coupling_new_label(c));
      continue;
    }
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, at, label);
    laci_coupling_set_label(c, LACI_OUT(0), to++, label);
  }
  return laci_coupling_status(c);
}

static lac_status eval(laci_eval *eval) { return laci_arg_max_min_eval(eval, true); }

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  return laci_arg_max_min_couple_orders(node, c, "order matters to ArgMax");
}

const laci_op laci_op_arg_max = {
    .name = "ArgMax",
    .role = LACI_ROLE_PASS_THROUGH,
    .discontinuous = true,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"keepdims", LACI_ATTR_INT},
                                  {"select_last_index", LACI_ATTR_INT}),
    .infer = laci_arg_max_min_infer,
    .eval = eval,
    .couple = couple_channel_orders};

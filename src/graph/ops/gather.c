/* SPDX-License-Identifier: Apache-2.0
 * Gather: takes slices of x along one axis, by indices of any shape.
 *
 * A constant list of indices gives a map along that axis (exporters write channel shuffles like
 * this); a scalar index gives a map with one virtual position. If indices are computed, or have
 * several axes longer than 1, the axis is FIXED. The other axes of x pass channel orders through
 * (coupling.h). */
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0), *indices = laci_in_shape(infer, 1);
  if (!x || !indices) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", 0);
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (st) return st;
  laci_shape out = {.rank = x->rank - 1 + indices->rank};
  if (out.rank > LACI_MAX_RANK) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a tensor of %d axes",
                          out.rank);
  }
  int to = 0;
  for (int at = 0; at < axis; at++) out.dims[to++] = x->dims[at];
  for (int at = 0; at < indices->rank; at++) out.dims[to++] = indices->dims[at];
  for (int at = (int)axis + 1; at < x->rank; at++) out.dims[to++] = x->dims[at];
  infer->out[0].shape = out;
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0], *indices = eval->in[1];
  int64_t axis = laci_node_int(eval->node, "axis", 0);
  lac_status st = laci_check_axis(eval->node, x->shape.rank, &axis, eval->err);
  if (st) return st;
  int64_t n = x->shape.dims[axis], to = 0;
  int64_t n_outer = laci_shape_count_range(&x->shape, 0, (int)axis);
  int64_t inner = laci_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
  for (int64_t outer = 0; outer < n_outer; outer++) {
    for (int64_t at = 0; at < indices->count; at++, to += inner) {
      int64_t index = laci_buf_get_i(indices, at);
      st = laci_check_index(eval, n, &index);
      if (st) return st;
      laci_copy_elements(eval->out[0], to, x, (outer * n + index) * inner, inner);
    }
  }
  return LAC_OK;
}

/** Returns the only axis of the indices with a size above 1; -1: there are two. */
static int find_only_long_axis(const laci_shape *indices) {
  int found = indices->rank - 1;
  for (int at = 0; at < indices->rank; at++) {
    if (indices->dims[at] == 1) continue;
    if (found >= 0 && found != at && indices->dims[found] != 1) return -1;
    found = at;
  }
  return found;
}

/** Adds the map (coupling.h) from output to input positions along the gathered axis; adds none
 * where an index is out of range. */
static void couple_indices(laci_coupling *c, int axis, const laci_buf *indices, int64_t n) {
  for (int64_t at = 0; at < indices->count; at++) {
    int64_t index = laci_buf_get_i(indices, at);
    if (index < -n || index >= n) return;
  }
  bool scalar = indices->shape.rank == 0;
  int along = axis + find_only_long_axis(&indices->shape);
  for (int at = axis; at < axis + indices->shape.rank; at++) {
    if (at != along)
      laci_coupling_set_fresh_labels(c, LACI_OUT(0), at, at + 1); /* an axis of size 1 */
  }
  laci_axis_map *map =
      laci_coupling_add_map(c, LACI_OUT(0), scalar ? -1 : along, 0, axis, indices->count);
  for (int64_t at = 0; map && at < indices->count; at++) {
    int64_t index = laci_buf_get_i(indices, at);
    map->from[at] = (int32_t)(index < 0 ? index + n : index);
  }
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  const laci_shape *indices = laci_port_shape(c, 1);
  int axis = x ? laci_axis_counted_from_first(laci_node_int(node, "axis", 0), x->rank) : -1;
  if (axis < 0 || !y || !indices || y->rank != x->rank - 1 + indices->rank)
    return laci_coupling_status(c);
  laci_coupling_mark_described(c, 0);
  laci_coupling_mark_described(c, LACI_OUT(0));
  c->why = "Gather's indices are not a constant list";
  for (int at = 0; at < x->rank; at++) {
    if (at == axis) continue;
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, at, label);
    laci_coupling_set_label(c, LACI_OUT(0), at < axis ? at : at - 1 + indices->rank, label);
  }
  int64_t count = laci_shape_count(indices);
  bool is_list = indices->rank < 1 || find_only_long_axis(indices) >= 0;
  if (!is_list || !laci_is_axis_mappable(c, 0, axis) || count < 0 || count > LACI_MAP_LIMIT) {
    return laci_coupling_status(c);
  }
  laci_buf *content = laci_copy_constant_content(graph, node, 1);
  if (content) couple_indices(c, axis, content, x->dims[axis]);
  laci_buf_destroy(content);
  return laci_coupling_status(c);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  int64_t axis = laci_axis_counted_from_first(laci_node_int(node, "axis", 0), x.rank);
  const laci_attr attrs[] = {laci_attr_int("axis", axis),
                             laci_attr_ints("input_shape", x.rank, x.dims)};
  const int inputs[] = {laci_gradient_of(b, node, 0), node->inputs[1]};
  laci_gradient_node made = {.type = "GatherGrad",
                             .domain = "lacuna",
                             .n_inputs = 2,
                             .inputs = inputs,
                             .n_attrs = 2,
                             .attrs = attrs};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  return laci_gradient_status(b);
}

const laci_op laci_op_gather = {.name = "Gather",
                                .role = LACI_ROLE_PASS_THROUGH,
                                .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                .moves_data = true,
                                .is_fold = true,
                                .inputs_without_channels = 1u << 1,
                                .infer = infer,
                                .eval = eval,
                                .couple = couple_channel_orders,
                                .gradient = gradient};

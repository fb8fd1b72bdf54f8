/* SPDX-License-Identifier: Apache-2.0
 * TensorScatter (opset 24): a copy of a cache with an update written along `axis`, from
 * write_indices[batch] on (0 by default); in mode "circular" it wraps around. All other axes pass
 * channel orders through (coupling.h). */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 3);
  if (!st) infer->out[0] = *infer->in[0];
  return st;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *cache = eval->in[0], *update = eval->in[1], *indices = laci_operand(eval, 2);
  const laci_shape *x = &cache->shape;
  int64_t axis = laci_node_int(eval->node, "axis", -2);
  bool circular = strcmp(laci_node_text(eval->node, "mode", "linear"), "circular") == 0;
  lac_status st = laci_check_axis(eval->node, x->rank, &axis, eval->err);
  if (st) return st;
  laci_shape wanted = *x;
  if (update->shape.rank == x->rank) wanted.dims[axis] = update->shape.dims[axis];
  bool fits = axis > 0 && laci_shape_equal(&wanted, &update->shape) && !cache->f == !update->f &&
              wanted.dims[axis] <= x->dims[axis] && (!indices || indices->count == x->dims[0]);
  if (!fits) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "the update does not fit the cache");
  }
  laci_copy_elements(eval->out[0], 0, cache, 0, cache->count);
  int64_t size = x->dims[axis], n = wanted.dims[axis];
  int64_t inner = laci_shape_count_range(x, (int)axis + 1, x->rank);
  int64_t lanes = laci_shape_count_range(x, 1, (int)axis);
  for (int64_t at = 0; at < x->dims[0] * lanes * n; at++) {
    int64_t lane = at / n, batch = lane / lanes;
    int64_t place = (indices ? laci_buf_get_i(indices, batch) : 0) + at % n;
    if (circular) place = (place % size + size) % size;
    if (place < 0 || place >= size) {
      return laci_node_fail(eval->node, eval->err, LAC_BAD_VALUE, "place %lld of %lld",
                            (long long)place, (long long)size);
    }
    laci_copy_elements(eval->out[0], (lane * size + place) * inner, update, at * inner, inner);
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, 0), *update = laci_port_shape(c, 1);
  c->why = "TensorScatter writes places by their position";
  int axis = x ? laci_axis_counted_from_first(laci_node_int(node, "axis", -2), x->rank) : -1;
  if (axis < 1 || !update || update->rank != x->rank) return laci_coupling_status(c);
  laci_couple_other_axes(c, 0, LACI_OUT(0), axis);
  laci_coupling_mark_described(c, 1);
  for (int at = 0; at < x->rank; at++) {
    if (at != axis) laci_coupling_set_label(c, 1, at, laci_coupling_get_label(c, 0, at));
  }
  laci_coupling_set_label(c, 2, 0, laci_coupling_get_label(c, 0, 0));
  return laci_coupling_status(c);
}

const laci_op laci_op_tensor_scatter = {
    .name = "TensorScatter",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"mode", LACI_ATTR_TEXT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

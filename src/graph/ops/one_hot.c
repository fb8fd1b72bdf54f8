/* SPDX-License-Identifier: Apache-2.0
 * OneHot: a new axis of size `depth`, with values[1] at the index and values[0] elsewhere. All axes
 * are FIXED: their order must stay (coupling.h), for content is used as positions. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  infer->out[0].dtype = infer->in[2]->dtype;
  const laci_shape *indices = laci_in_shape(infer, 0);
  const laci_buf *depth = laci_in_known_content(infer, 1);
  if (!indices) return LAC_OK;
  if (indices->rank == LACI_MAX_RANK) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a tensor of %d axes",
                          indices->rank + 1);
  }
  int64_t axis = laci_node_int(infer->node, "axis", -1);
  st = laci_check_axis(infer->node, indices->rank + 1, &axis, infer->err);
  if (st) return st;
  laci_shape *out = &infer->out[0].shape;
  out->rank = indices->rank + 1;
  for (int at = 0, from = 0; at < out->rank; at++) {
    if (at != axis) out->dims[at] = indices->dims[from++];
  }
  bool known = depth && depth->count == 1;
  out->dims[axis] =
      known ? laci_size_from_element(laci_buf_get_i(depth, 0)) : infer->new_symbol(infer);
  if (known && out->dims[axis] < 0 && !(depth->i && laci_is_symbol(depth->i[0]))) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "a depth of %lld",
                          (long long)out->dims[axis]);
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *indices = eval->in[0], *values = eval->in[2];
  laci_buf *out = eval->out[0];
  int64_t axis = laci_node_int(eval->node, "axis", -1);
  lac_status st = laci_check_axis(eval->node, out->shape.rank, &axis, eval->err);
  if (st) return st;
  if (values->count != 2) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "%lld values, 2 wanted",
                          (long long)values->count);
  }
  int64_t depth = out->shape.dims[axis];
  int64_t inner = laci_shape_count_range(&out->shape, (int)axis + 1, out->shape.rank);
  for (int64_t at = 0; at < out->count; at++) laci_copy_elements(out, at, values, 0, 1);
  for (int64_t at = 0; at < indices->count; at++) {
    int64_t index = laci_buf_get_i(indices, at);
    if (index < 0) index += depth;
    if (index < 0 || index >= depth) continue; /* an index out of range: values[0] everywhere */
    laci_copy_elements(out, (at / inner * depth + index) * inner + at % inner, values, 1, 1);
  }
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  c->why = "OneHot's indices name places";
  return laci_coupling_status(c);
}

const laci_op laci_op_one_hot = {.name = "OneHot",
                                 .role = LACI_ROLE_SKIP,
                                 .discontinuous = true,
                                 .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}),
                                 .sizes_from_data = true,
                                 .infer = infer,
                                 .eval = eval,
                                 .couple = couple_channel_orders};

/* SPDX-License-Identifier: Apache-2.0
 * ConstantOfShape: a tensor of the given shape, filled with the attribute `value` (0.0f by
 * default). The result is uniform along every axis, so it fits any channel order. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  const laci_attr *value = laci_node_attr(infer->node, "value");
  infer->out[0].dtype = value && value->tensor ? value->tensor->dtype : LAC_DTYPE_F32;
  const laci_buf *content = laci_in_known_content(infer, 0);
  const int64_t *sizes = content ? content->i : NULL;
  const laci_shape *shape = laci_in_shape(infer, 0);
  laci_shape *out = &infer->out[0].shape;
  if (!shape || shape->rank != 1 || shape->dims[0] < 0) return LAC_OK;
  if (shape->dims[0] > LACI_MAX_RANK) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a tensor of %lld axes",
                          (long long)shape->dims[0]);
  }
  out->rank = (int)shape->dims[0];
  for (int axis = 0; axis < out->rank; axis++) {
    out->dims[axis] = sizes ? laci_size_from_element(sizes[axis]) : infer->new_symbol(infer);
    if (sizes && sizes[axis] < 0 && !laci_is_symbol(sizes[axis])) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "size %lld of axis %d",
                            (long long)sizes[axis], axis);
    }
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  const laci_attr *value = laci_node_attr(eval->node, "value");
  const laci_buf *fill = value ? value->tensor : NULL;
  laci_buf *out = eval->out[0];
  if (!fill) return LAC_OK; /* zeros already */
  if (fill->count != 1) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "value has %lld elements, 1 wanted",
                          (long long)fill->count);
  }
  for (int64_t at = 0; at < out->count; at++) laci_copy_elements(out, at, fill, 0, 1);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  (void)node;
  const laci_shape *out = laci_port_shape(c, LACI_OUT(0));
  if (out) laci_coupling_set_fresh_labels(c, LACI_OUT(0), 0, out->rank);
  return laci_coupling_status(c);
}

const laci_op laci_op_constant_of_shape = {
    .name = "ConstantOfShape",
    .role = LACI_ROLE_SKIP,
    .attributes = LACI_ATTRIBUTES({"value", LACI_ATTR_TENSOR}),
    .moves_data = true,
    .is_fold = true,
    .inputs_without_channels = 1u << 0,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};

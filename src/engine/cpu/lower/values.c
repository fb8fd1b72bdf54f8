/* SPDX-License-Identifier: Apache-2.0
 * Values as operands: in the layout and type that a step reads.
 *
 * The same content in another layout is another tensor. A reorder step makes it when it is first
 * needed, and later reads find it again. Constants are reordered while planning and kept as weights
 * (weights.c). */
#include "engine/cpu/native/values.h"
#include "engine/cpu/onednn/onednn.h"
#include "tensor/buf.h"

/* ---- Reading ---- */

/** Fails the plan because a value cannot be read: it is a stored tensor whose elements are no
 * numbers, or it was not lowered yet, which is an internal error. */
static void fail_unreadable_value(laci_net *net, int value) {
  const laci_value *read = &net->plan.graph->values[value];
  lac_dtype dtype = read->type.dtype;
  if (read->stored >= 0 && !laci_dtype_is_float(dtype) && !laci_dtype_is_integer(dtype)) {
    laci_plan_fail(&net->plan, LAC_UNSUPPORTED, "%s: cannot compute with elements of type %s",
                   read->name, lac_dtype_name(dtype));
  } else {
    laci_plan_fail(&net->plan, LAC_INTERNAL, "%s: read before it is there", read->name);
  }
}

int laci_net_find_value_tensor(laci_net *net, int value) {
  if (net->plan.status) return -1;
  laci_plan_value *v = &net->plan.values[value];
  if (v->tensor < 0 && v->constant)
    laci_net_bind_value(net, value, laci_net_constant_tensor(net, value));
  if (v->tensor < 0) fail_unreadable_value(net, value);
  return v->tensor;
}

int laci_net_read_value(laci_net *net, int value) {
  const int tensor = laci_net_find_value_tensor(net, value);
  const bool native = tensor >= 0 && net->tensors[tensor].native;
  return native ? laci_native_read_for_onednn(net, tensor) : tensor;
}

static void add_reorder_step(laci_net *net, int from, int to) {
  laci_primitive *pd = NULL;
  lac_status st =
      laci_primitive_describe_reorder(&pd, net->onednn, net->tensors[from].md, net->tensors[to].md);
  if (!laci_net_check_status(net, st, "reorder")) return;
  laci_net_step_add(net, NULL, pd, 2, (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, to}});
}

int laci_net_convert_tensor(laci_net *net, int tensor, const laci_layout *md, laci_element dt) {
  if (net->plan.status || tensor < 0 || !md) return -1;
  const laci_net_tensor from = net->tensors[tensor];
  int found = laci_net_find_tensor(net, from.content, md);
  if (found >= 0) return laci_net_reuse_tensor(net, found, tensor);
  int to;
  const laci_buffer *source = &net->buffers[from.buffer];
  if (source->place == LACI_PLACE_WEIGHT) {
    to = laci_net_weight_from_tensor(net, &from, source->data, md, dt);
  } else {
    laci_layout *copy = NULL;
    if (!laci_layout_create_copy(&copy, md)) laci_plan_fail_no_memory(&net->plan);
    int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(md));
    to = laci_net_tensor_new(net, &from.shape, dt, copy, buffer);
    if (to >= 0) add_reorder_step(net, tensor, to);
  }
  if (to >= 0) laci_net_set_content(net, to, from.content);
  return to;
}

int laci_net_convert_to_dense(laci_net *net, int tensor, laci_element dt) {
  if (net->plan.status || tensor < 0) return -1;
  laci_shape shape = net->tensors[tensor].shape;
  laci_layout *md = laci_net_dense_layout(net, &shape, dt);
  int to = laci_net_convert_tensor(net, tensor, md, dt);
  laci_layout_destroy(md);
  return to;
}

int laci_net_make_whole_tensor(laci_net *net, int tensor) {
  if (net->plan.status || tensor < 0) return -1;
  const laci_net_tensor *t = &net->tensors[tensor];
  if (!t->partial && t->dt == laci_net_float_element(net)) return tensor;
  return laci_net_convert_to_dense(net, tensor, laci_net_float_element(net));
}

/* ---- In other layouts and shapes ---- */

int laci_net_read_in_blocks(laci_net *net, int value) {
  laci_layout *md =
      laci_net_blocks_layout(net, laci_plan_shape(&net->plan, value), laci_net_float_element(net));
  int tensor = md ? laci_net_convert_tensor(net, laci_net_read_value(net, value), md,
                                            laci_net_float_element(net))
                  : -1;
  laci_layout_destroy(md);
  return tensor;
}

int laci_net_reshape_tensor(laci_net *net, int tensor, const laci_shape *shape) {
  if (net->plan.status || tensor < 0) return -1;
  if (laci_shape_equal(shape, &net->tensors[tensor].shape)) return tensor;
  laci_element dt = net->tensors[tensor].dt;
  const laci_layout *from = net->tensors[tensor].md;
  int64_t strides[LACI_MAX_RANK], offset;
  laci_layout *md = NULL;
  bool strided =
      from && laci_layout_get_strides(from, net->tensors[tensor].shape.rank, strides, &offset);
  if (strided && laci_layout_create_reshaped(&md, from, shape->rank, shape->dims)) {
    return laci_net_view_new(net, tensor, shape, md, false);
  }
  int dense = from ? laci_net_convert_to_dense(net, tensor, dt) : tensor;
  bool has_layout = dense >= 0 && net->tensors[dense].md;
  return laci_net_view_new(net, dense, shape,
                           has_layout ? laci_net_dense_layout(net, shape, dt) : NULL, false);
}

void laci_net_bind_reshaped(laci_net *net, int value, int tensor) {
  const laci_shape shape = laci_net_shape_with_axis(laci_plan_shape(&net->plan, value));
  laci_net_bind_value(net, value, laci_net_reshape_tensor(net, tensor, &shape));
}

/* ---- Posts ---- */

laci_posts *laci_net_create_posts(laci_net *net, const laci_fused *fused, int *sum) {
  laci_posts *posts = NULL;
  *sum = -1;
  if (net->plan.status) return NULL;
  for (int at = 0; at < fused->n_posts; at++) {
    if (fused->posts[at].value >= 0) *sum = fused->posts[at].value;
  }
  lac_status st = laci_posts_create(net->onednn, fused->posts, fused->n_posts, &posts);
  return laci_net_check_status(net, st, "post operations") ? posts : NULL;
}

int laci_net_make_sum_target(laci_net *net, int have, const laci_layout *md, laci_element dt) {
  if (net->plan.status || have < 0) return -1;
  laci_shape shape = net->tensors[have].shape;
  if (laci_layout_equal(net->tensors[have].md, md) && laci_net_is_last_read(net, have)) {
    return laci_net_new_result_like(net, have, true);
  }
  int to = laci_net_new_result(net, &shape, dt, md);
  if (to >= 0) add_reorder_step(net, have, to);
  return to;
}

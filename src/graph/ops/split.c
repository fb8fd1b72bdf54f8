/* SPDX-License-Identifier: Apache-2.0
 * Split: cuts x along one axis. Sizes are given (attribute before opset 13, then an input), or
 * equal parts are made, the last one smaller where num_outputs (opset 18) does not divide the axis.
 * Each output reads its own run of positions along that axis (one map each); the other axes pass
 * channel orders through (coupling.h). */
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "base/plural.h"
#include "tensor/buf.h"

/** Returns the given sizes and their number; NULL where none are given, or (with *present) they are
 * not known. */
static const int64_t *find_split_sizes(const laci_node *node, const laci_buf *content, int64_t *n,
                                       bool *present) {
  size_t n_attr = 0;
  const int64_t *sizes = NULL;
  *present = laci_has_input(node, 1);
  if (*present) {
    *n = content ? content->count : 0;
    return content ? content->i : NULL;
  }
  if (node->version < 13) sizes = laci_node_ints(node, "split", &n_attr);
  *present = sizes != NULL;
  *n = (int64_t)n_attr;
  return sizes;
}

/** Returns the size of a part of an axis of known size, where no sizes are given. */
static int64_t size_of_equal_part(int64_t size, int n_parts, int part) {
  int64_t chunk = (size + n_parts - 1) / n_parts, start = chunk * part;
  return start >= size ? 0 : size - start < chunk ? size - start : chunk;
}

static lac_status check_sizes(laci_infer *infer, const int64_t *sizes, int64_t n,
                              int64_t axis_size) {
  int64_t sum = 0;
  bool symbols = false;
  if (n != infer->n_out) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "%lld size%s for %d output%s",
                          (long long)n, laci_plural(n), infer->n_out, laci_plural(infer->n_out));
  }
  for (int64_t at = 0; at < n; at++) {
    if (laci_is_symbol(sizes[at])) {
      symbols = true;
    } else if (sizes[at] < 0 || __builtin_add_overflow(sum, sizes[at], &sum)) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "part %lld has size %lld",
                            (long long)at, (long long)sizes[at]);
    }
  }
  if (axis_size < 0 || symbols || sum == axis_size) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "the parts have size %lld together, the axis %lld", (long long)sum,
                        (long long)axis_size);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 2);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, 0);
  for (int part = 0; part < infer->n_out; part++) infer->out[part].dtype = infer->in[0]->dtype;
  if (!x) return LAC_OK;
  int64_t axis = laci_node_int(infer->node, "axis", 0), n = 0;
  st = laci_check_axis(infer->node, x->rank, &axis, infer->err);
  if (st) return st;
  bool present;
  const int64_t *sizes =
      find_split_sizes(infer->node, laci_in_known_content(infer, 1), &n, &present);
  int64_t size = x->dims[axis];
  if (sizes) st = check_sizes(infer, sizes, n, size);
  for (int part = 0; part < infer->n_out && !st; part++) {
    laci_shape *out = &infer->out[part].shape;
    *out = *x;
    if (sizes) out->dims[axis] = laci_size_from_element(sizes[part]);
    else if (present || size < 0) out->dims[axis] = infer->new_symbol(infer);
    else out->dims[axis] = size_of_equal_part(size, infer->n_out, part);
  }
  return st;
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  int64_t axis = laci_node_int(eval->node, "axis", 0), start = 0, n;
  lac_status st = laci_check_axis(eval->node, x->shape.rank, &axis, eval->err);
  if (st) return st;
  bool present;
  const int64_t *sizes = find_split_sizes(eval->node, laci_operand(eval, 1), &n, &present);
  int64_t n_outer = laci_shape_count_range(&x->shape, 0, (int)axis);
  int64_t inner = laci_shape_count_range(&x->shape, (int)axis + 1, x->shape.rank);
  int64_t row = x->shape.dims[axis] * inner;
  for (int part = 0; part < eval->n_out; part++) {
    laci_buf *out = eval->out[part];
    int64_t own =
        inner * (sizes ? sizes[part] : size_of_equal_part(x->shape.dims[axis], eval->n_out, part));
    for (int64_t outer = 0; out && outer < n_outer; outer++) {
      laci_copy_elements(out, outer * own, x, outer * row + start, own);
    }
    start += own;
  }
  return LAC_OK;
}

/** Makes all axes but the split one share one channel order in x and every part (labels,
 * coupling.h). */
static void couple_other_axes(laci_coupling *c, const laci_node *node, const laci_shape *x,
                              int axis) {
  for (int at = 0; at < x->rank; at++) {
    int label = at == axis ? LACI_FIXED : laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, at, label);
    for (int part = 0; part < node->n_outputs; part++)
      laci_coupling_set_label(c, LACI_OUT(part), at, label);
  }
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, 0);
  int axis = x ? laci_axis_counted_from_first(laci_node_int(node, "axis", 0), x->rank) : -1;
  if (axis < 0) return laci_coupling_status(c);
  couple_other_axes(c, node, x, axis);
  int64_t n;
  bool present;
  const int64_t *sizes = find_split_sizes(node, laci_known_content(graph, node, 1), &n, &present);
  if (!laci_is_axis_mappable(c, 0, axis) || present != (sizes != NULL) ||
      (sizes && n != node->n_outputs)) {
    return laci_coupling_status(c);
  }
  int64_t start = 0;
  for (int part = 0; part < node->n_outputs; part++) {
    int64_t own = sizes ? sizes[part] : size_of_equal_part(x->dims[axis], node->n_outputs, part);
    const laci_shape *y = laci_port_shape(c, LACI_OUT(part));
    /* the sizes exceed the axis, which inference could not see */
    if (own < 0 || start + own > x->dims[axis]) break;
    if (y && y->dims[axis] == own) {
      laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(part), axis, 0, axis, own);
      for (int64_t at = 0; map && at < own; at++) map->from[at] = (int32_t)(start + at);
    }
    start += own;
  }
  return laci_coupling_status(c);
}

/** dX is the gradients of the parts, concatenated; zeros for a part without a gradient. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  laci_attr axis =
      laci_attr_int("axis", laci_axis_counted_from_first(laci_node_int(node, "axis", 0), x.rank));
  int64_t n_sizes;
  bool present;
  const int64_t *sizes =
      find_split_sizes(node, laci_gradient_known_content(b, node, 1), &n_sizes, &present);
  if (present != (sizes != NULL))
    return laci_gradient_fail_unsupported(b, node, "its sizes are not known");
  int *parts = laci_alloc((size_t)node->n_outputs, sizeof *parts), n = 0;
  if (!parts) return LAC_NO_MEMORY;
  for (int part = 0; part < node->n_outputs; part++) {
    int dy = laci_gradient_of(b, node, part);
    laci_shape own = x;
    own.dims[axis.i] =
        sizes ? sizes[part] : size_of_equal_part(x.dims[axis.i], node->n_outputs, part);
    parts[n++] = dy >= 0 ? dy : laci_gradient_store_filled(b, node->inputs[0], &own, 0);
  }
  laci_gradient_node made = {
      .type = "Concat", .n_inputs = n, .inputs = parts, .n_attrs = 1, .attrs = &axis};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  laci_free(parts);
  return laci_gradient_status(b);
}

const laci_op laci_op_split = {
    .name = "Split",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"num_outputs", LACI_ATTR_INT},
                                  {"split", LACI_ATTR_INTS}),
    .moves_data = true,
    .is_fold = true,
    .inputs_without_channels = 1u << 1,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};

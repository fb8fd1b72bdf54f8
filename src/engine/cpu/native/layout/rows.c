/* SPDX-License-Identifier: Apache-2.0
 * Matrices whose rows are given other axes: a Reshape that keeps the last axis, as exporters write
 * it around products, leaves a matrix as it is stored. So does a Transpose that only moves axes of
 * size 1. */
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/native/values.h"
#include "graph/ops.h"
#include "kernel/sparse/reorder.h"

/** Does the node change the axes of its operand, but not the row-major order of its elements? */
static bool keeps_row_major_order(const laci_node *node, const laci_shape *x) {
  const laci_op *op = node->op;
  if (op == &laci_op_reshape || op == &laci_op_flatten || op == &laci_op_squeeze ||
      op == &laci_op_unsqueeze)
    return true;
  size_t n = 0;
  const int64_t *order = laci_node_ints(node, "perm", &n);
  if (op != &laci_op_transpose || !order || n != (size_t)x->rank) return false;
  int64_t last = -1; /* the last axis so far that is longer than 1 */
  for (int axis = 0; axis < x->rank; axis++) {
    if (x->dims[order[axis]] == 1) continue;
    if (order[axis] < last) return false;
    last = order[axis];
  }
  return true;
}

int laci_native_find_same_rows(const laci_cpu_plan *plan, int value) {
  const int producer = value < 0 ? -1 : plan->graph->values[value].producer;
  if (producer < 0 || !plan->computed[producer]) return -1;
  const laci_fused *fused = &plan->fused[producer];
  if (fused->output != value || fused->n_posts > 0) return -1;
  if (fused->pattern == LACI_PATTERN_DUPLICATE) return fused->reads[0];
  const laci_node *node = &plan->graph->nodes[producer];
  if (fused->pattern || node->n_inputs < 1 || laci_plan_is_constant(plan, node->inputs[0]))
    return -1;
  const laci_shape *x = laci_plan_shape(plan, node->inputs[0]), *y = laci_plan_shape(plan, value);
  const bool same = x->rank > 1 && y->rank > 1 && x->dims[x->rank - 1] == y->dims[y->rank - 1];
  return same && keeps_row_major_order(node, x) ? node->inputs[0] : -1;
}

void laci_native_mark_images(const laci_net *net, bool chosen_alone, bool *images) {
  const laci_native_net *native = net->native;
  for (int at = 0; at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (layer->rows || (chosen_alone && !layer->chosen)) continue;
    for (int v = 0; v < laci_native_n_values(layer); v++) {
      const int value = laci_native_nth_value(layer, v);
      if (value >= 0) images[value] = true;
    }
  }
}

/** Is the tensor an int8 image of one pixel, and the value the same channels as one row of a matrix
 * that int8 layers read? */
static bool is_pixel_read_as_row(const laci_net *net, int tensor, int value) {
  enum { IMAGE_RANK = 4 };
  const laci_net_tensor *t = &net->tensors[tensor];
  const laci_shape *y = laci_plan_shape(&net->plan, value);
  if (!t->native->bytes || t->native->rows || t->shape.rank != IMAGE_RANK) return false;
  return laci_native_is_read_as_int8(net, value) &&
         laci_native_layout_of_value(net, value, NULL).rows && y->rank > 1 &&
         y->dims[y->rank - 1] == t->shape.dims[1] &&
         laci_shape_count(&t->shape) == t->shape.dims[1];
}

/** Binds the value to a copy of an image of one pixel, as one row of a matrix. */
static void bind_pixel_as_row(laci_net *net, int value, int tensor) {
  const laci_native_layout have = *net->tensors[tensor].native;
  const laci_native_layout rows = laci_native_layout_of_value(net, value, have.bytes);
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  const int to = laci_native_tensor_new(net, shape, &rows, -1);
  const laci_sparse_reorder r = {.from = have.layout,
                                 .to = rows.layout,
                                 .size = laci_native_size_in_layout(net, shape, &rows),
                                 .stride_h = 1,
                                 .stride_w = 1};
  (void)laci_native_add_reorder_step(net, tensor, to, &r);
  laci_net_bind_value(net, value, to);
}

bool laci_native_bind_same_rows(laci_net *net, int value, int from) {
  const int tensor = net->plan.values[from].tensor;
  const laci_native_layout *native = tensor < 0 ? NULL : net->tensors[tensor].native;
  if (native && is_pixel_read_as_row(net, tensor, value)) {
    bind_pixel_as_row(net, value, tensor);
    return true;
  }
  if (!native || !native->rows || laci_native_find_same_rows(&net->plan, value) != from)
    return false;
  const int view = laci_net_view_new(net, tensor, laci_plan_shape(&net->plan, value), NULL, false);
  if (view >= 0) net->tensors[view].native = native;
  laci_net_bind_value(net, value, view);
  return true;
}

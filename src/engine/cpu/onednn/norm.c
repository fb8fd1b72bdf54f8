/* SPDX-License-Identifier: Apache-2.0
 * Layer norms (also those that a graph writes as single operators) and softmax, over the last axis
 * or one axis. Next: batch_norm.c. */
#include "base/memory.h"
#include "engine/cpu/net_in.h"
#include "graph/ops.h"
#include "engine/cpu/onednn/onednn.h"

/* ---- Layer norm ---- */

/** Returns a weight tensor of the constant, or of n times `otherwise` where value is -1. */
static int read_norm_vector(laci_net *net, int value, int64_t n, float otherwise) {
  const float *floats = value >= 0 ? laci_plan_constant_floats(&net->plan, value) : NULL;
  if (net->plan.status || floats) return floats ? laci_net_weight_from_floats(net, floats, n) : -1;
  float *same = laci_alloc((size_t)n, sizeof *same);
  if (!same) laci_plan_fail_no_memory(&net->plan);
  for (int64_t at = 0; same && at < n; at++) same[at] = otherwise;
  int tensor = same ? laci_net_weight_from_floats(net, same, n) : -1;
  laci_free(same);
  return tensor;
}

/** Adds the step of a layer norm over the last axis of a tensor of rank 2 to 5. */
static void add_layer_norm_step(laci_net *net, const laci_fused *fused,
                                const laci_layer_norm_pattern *norm) {
  laci_element dt = laci_net_float_element(net);
  laci_primitive *pd = NULL;
  int from = laci_net_convert_to_dense(
      net, laci_net_make_whole_tensor(net, laci_net_read_value(net, norm->x)), dt);
  int to = laci_net_new_result_like(net, from, true);
  if (net->plan.status) return;
  int64_t last = net->tensors[from].shape.dims[net->tensors[from].shape.rank - 1];
  int scale = read_norm_vector(net, norm->scale, last, 1),
      shift = read_norm_vector(net, norm->shift, last, 0);
  if (net->plan.status) return;
  lac_status st =
      laci_primitive_describe_layer_norm(&pd, net->onednn, net->tensors[from].md, norm->epsilon);
  if (!laci_net_check_status(net, st, "layer norm")) return;
  laci_net_step_add(net, fused, pd, 4,
                    (const int[][2]){{LACI_ARG_SRC, from},
                                     {LACI_ARG_DST, to},
                                     {LACI_ARG_SCALE, scale},
                                     {LACI_ARG_SHIFT, shift}});
  laci_net_bind_value(net, fused->output, to);
}

static laci_layer_norm_pattern read_layer_norm(const laci_node *node) {
  return (laci_layer_norm_pattern){.x = node->inputs[0],
                                   .scale = laci_plan_has_input(node, 1) ? node->inputs[1] : -1,
                                   .shift = laci_plan_has_input(node, 2) ? node->inputs[2] : -1,
                                   .epsilon = laci_node_float(node, "epsilon", 1e-5f)};
}

static bool can_lower_layer_norm(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  int64_t axis = laci_node_int(node, "axis", -1), last = x->rank > 0 ? x->dims[x->rank - 1] : 0;
  laci_layer_norm_pattern norm = read_layer_norm(node);
  bool fits = (axis == -1 || axis == x->rank - 1) && x->rank >= 2 && x->rank <= 5;
  for (int at = 1; at < node->n_outputs; at++) fits = fits && node->outputs[at] < 0;
  if (norm.scale >= 0)
    fits = fits && laci_plan_is_vector_of_last_axis(&net->plan, norm.scale, last);
  if (norm.shift >= 0)
    fits = fits && laci_plan_is_vector_of_last_axis(&net->plan, norm.shift, last);
  *why = "axes, parameters or outputs that oneDNN lacks";
  return fits;
}

static void lower_layer_norm(laci_net *net, const laci_fused *fused) {
  laci_layer_norm_pattern norm = read_layer_norm(&net->plan.graph->nodes[fused->node]);
  add_layer_norm_step(net, fused, &norm);
}

static void lower_layer_norm_pattern(laci_net *net, const laci_fused *fused) {
  size_t first = net->n_steps;
  add_layer_norm_step(net, fused, fused->details);
  if (!net->plan.status && net->n_steps > first) {
    net->steps[net->n_steps - 1].what = "fused LayerNormalization";
  }
}

/* ---- Softmax ---- */

/** Is it a Softmax of an opset before 13, over all axes from `axis` on together? */
static bool is_softmax_over_flattened_axes(const laci_node *node) { return node->version < 13; }

static int64_t read_softmax_axis(const laci_net *net, const laci_node *node) {
  int64_t axis = laci_node_int(node, "axis", is_softmax_over_flattened_axes(node) ? 1 : -1);
  return axis < 0 ? axis + laci_plan_shape(&net->plan, node->inputs[0])->rank : axis;
}

static bool can_lower_softmax(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int64_t axis = read_softmax_axis(net, node);
  *why = "an axis or elements that oneDNN lacks";
  return laci_plan_is_float(&net->plan, node->inputs[0]) && axis >= 0 &&
         axis < laci_plan_shape(&net->plan, node->inputs[0])->rank;
}

/** Returns the tensor with that axis innermost: oneDNN has quick kernels only where the elements
 * along the axis are adjacent. */
static int make_axis_innermost(laci_net *net, int tensor, int64_t axis) {
  if (net->plan.status || tensor < 0) return -1;
  const laci_net_tensor t = net->tensors[tensor];
  int64_t strides[LACI_MAX_RANK], stride = t.shape.dims[axis];
  laci_layout *md = NULL;
  for (int at = t.shape.rank - 1; at >= 0; at--) {
    if (at == axis) continue;
    strides[at] = stride;
    stride *= t.shape.dims[at];
  }
  strides[axis] = 1;
  if (!laci_layout_create_strided(&md, t.shape.rank, t.shape.dims, t.dt, strides)) {
    laci_plan_fail_no_memory(&net->plan);
  }
  const int to = laci_net_convert_tensor(net, tensor, md, t.dt);
  laci_layout_destroy(md);
  return to;
}

static void lower_softmax(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  int64_t axis = read_softmax_axis(net, node);
  laci_primitive *pd = NULL;
  int from = laci_net_make_whole_tensor(net, laci_net_read_value(net, node->inputs[0]));
  if (!is_softmax_over_flattened_axes(node)) {
    from = make_axis_innermost(net, from, axis);
  } else {
    from = laci_net_convert_to_dense(net, from, laci_net_float_element(net));
  }
  if (is_softmax_over_flattened_axes(node)) {
    laci_shape two = laci_shape_of(2, (int64_t[]){laci_shape_count_range(x, 0, (int)axis),
                                                  laci_shape_count_range(x, (int)axis, x->rank)});
    from = laci_net_view_new(net, from, &two,
                             laci_net_dense_layout(net, &two, laci_net_float_element(net)), false);
    axis = 1;
  }
  int to = laci_net_new_result_like(net, from, true);
  if (net->plan.status) return;
  bool log = node->op == &laci_op_log_softmax;
  lac_status st =
      laci_primitive_describe_softmax(&pd, net->onednn, log, net->tensors[from].md, (int)axis);
  if (!laci_net_check_status(net, st, "softmax")) return;
  laci_net_step_add(net, fused, pd, 2, (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, to}});
  laci_net_bind_reshaped(net, fused->output, to);
}

/* ---- The lists of implementations ---- */

const laci_implementation laci_implementations_layer_norm[] = {
    {"oneDNN's", LACI_FUSIBLE_NOTHING, can_lower_layer_norm, lower_layer_norm},
    {.name = NULL},
};
const laci_implementation laci_implementations_layer_norm_nodes[] = {
    {"oneDNN's", LACI_FUSIBLE_NOTHING, NULL, lower_layer_norm_pattern},
    {.name = NULL},
};
const laci_implementation laci_implementations_softmax[] = {
    {"oneDNN's", LACI_FUSIBLE_NOTHING, can_lower_softmax, lower_softmax},
    {.name = NULL},
};

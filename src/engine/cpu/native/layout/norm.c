/* SPDX-License-Identifier: Apache-2.0
 * Batch normalization by constants as part of a reorder. Where only chosen layers read the result,
 * the reorder that they need anyway also scales and shifts the channels (kernel/sparse/reorder.h),
 * and takes no longer than a dense normalization. */
#include <math.h>

#include "engine/cpu/lower/batch_norm.h"
#include "engine/cpu/native/layout/tensors.h"
#include "graph/ops.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "kernel/sparse/reorder.h"

bool laci_native_reorder_can_normalize(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const char *why;
  if (net->plan.bf16 || fused->pattern || node->op != &laci_op_batch_normalization ||
      fused->n_posts > 1)
    return false;
  const laci_post *post = &fused->posts[0];
  const bool relu = post->value < 0 && post->function.kind == LACI_FUNCTION_RELU;
  if (fused->n_posts == 1 && !(relu && post->function.alpha == 0)) return false;
  const int rank = laci_plan_shape(&net->plan, node->inputs[0])->rank;
  return (rank == 3 || rank == 4) && laci_can_lower_norm_constant(net, fused, &why);
}

/** Do only chosen convolutions read the value, and does at least one read it as it is stored? */
static bool is_read_by_chosen_convolutions(const laci_net *net, int value) {
  const laci_native_net *native = net->native;
  int n_reads = 0;
  bool as_stored = false;
  for (int at = 0; native && at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (!layer->chosen || layer->rows) continue;
    const bool reads = layer->input == value, adds = layer->residual == value;
    n_reads += reads + adds;
    as_stored = as_stored || adds || (reads && layer->reading == LACI_NATIVE_AS_STORED);
  }
  return as_stored && n_reads == laci_plan_count_uses(&net->plan, value);
}

bool laci_can_lower_native_norm(laci_net *net, const laci_fused *fused, const char **why) {
  *why = "not read only by sparse layers";
  return is_read_by_chosen_convolutions(net, fused->output) &&
         laci_native_reorder_can_normalize(net, fused);
}

void laci_lower_native_norm(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *shape = laci_plan_shape(&net->plan, fused->output);
  const laci_native_layout native = {.layout = *laci_native_assigned_layout(net, fused->output)};
  const int64_t channels = shape->dims[1];
  float *scale = laci_plan_alloc(&net->plan, (size_t)channels, sizeof *scale);
  float *shift = laci_plan_alloc(&net->plan, (size_t)channels, sizeof *shift);
  if (!scale || !shift) return;
  if (!laci_plan_read_norm_scales(&net->plan, node, channels, scale, shift)) {
    laci_net_decline_node(net, "statistics that are no vectors");
    return;
  }
  laci_sparse_reorder r = {.to = native.layout,
                           .size = laci_native_value_size(net, shape, false),
                           .stride_h = 1,
                           .stride_w = 1,
                           .norm = {scale, shift, fused->n_posts ? 0 : -INFINITY}};
  const int from = laci_native_read_for_reorder(net, node->inputs[0], false, &r.from);
  const int to = laci_native_tensor_new(net, shape, &native, -1);
  laci_net_step *step = laci_native_add_reorder_step(net, from, to, &r);
  if (!step) return;
  step->node = node;
  step->what = laci_net_describe_fused(net, fused);
  laci_net_bind_value(net, fused->output, to);
}

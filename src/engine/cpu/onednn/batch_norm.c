/* SPDX-License-Identifier: Apache-2.0
 * Batch normalization: with constant statistics, with those of the batch, and the gradient of the
 * latter.
 *
 * A Relu after the norm is fused if their two gradients also follow each other. Then the forward
 * primitive stores a bit for each element (its workspace), and the backward primitive reads the
 * gradient of the Relu's result. In a recomputation (plan/remat.c) a norm reads the statistics of
 * the first computation. Statistics, scale and bias are f32 even in bf16 networks. */
#include "engine/cpu/lower/batch_norm.h"
#include "engine/cpu/onednn/onednn.h"

static int output_or_none(const laci_node *node, int port) {
  return port < node->n_outputs ? node->outputs[port] : -1;
}

/* ---- By statistics that are constants ---- */

/** Writes the tensors of mean, variance, scale and shift, in that order, as weights. */
static void make_norm_parameter_tensors(laci_net *net, const laci_node *node, int tensors[4]) {
  static const int ports[] = {3, 4, 1, 2};
  for (int at = 0; at < 4; at++) {
    int value = node->inputs[ports[at]];
    const float *floats = laci_plan_constant_floats(&net->plan, value);
    int64_t n = laci_shape_count(laci_plan_shape(&net->plan, value));
    tensors[at] = floats && !net->plan.status ? laci_net_weight_from_floats(net, floats, n) : -1;
  }
}

void laci_lower_norm_constant(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_primitive *pd = NULL;
  int p[4];
  const laci_function *first = fused->n_posts > 0 ? &fused->posts[0].function : NULL;
  bool relu = first && first->kind == LACI_FUNCTION_RELU && first->alpha == 0;
  int flags = LACI_NORM_GIVEN | (relu ? LACI_NORM_RELU : 0);
  int from = laci_net_make_whole_tensor(net, laci_net_read_value(net, node->inputs[0])),
      to = laci_net_new_result_like(net, from, true);
  make_norm_parameter_tensors(net, node, p);
  if (net->plan.status) return;
  lac_status st = laci_primitive_describe_batch_norm(
      &pd, net->onednn, net->tensors[from].md, laci_node_float(node, "epsilon", 1e-5f), flags);
  if (!laci_net_check_status(net, st, "batch norm")) return;
  laci_net_step_add(net, fused, pd, 6,
                    (const int[][2]){{LACI_ARG_SRC, from},
                                     {LACI_ARG_DST, to},
                                     {LACI_ARG_MEAN, p[0]},
                                     {LACI_ARG_VARIANCE, p[1]},
                                     {LACI_ARG_SCALE, p[2]},
                                     {LACI_ARG_SHIFT, p[3]}});
  for (int at = relu; at < fused->n_posts; at++) {
    to = laci_net_apply_function(net, fused, to, &fused->posts[at].function);
  }
  laci_net_bind_value(net, fused->output, to);
}

/* ---- Running statistics ---- */

typedef struct running {
  int64_t channels;
  float momentum, unbiased; /* unbiased: n / (n - 1), a factor of the variance */
} running;

/* Updates the running statistics. Tensors of the step: mean, var, running mean, running var, new
 * mean, new var. */
static lac_status run_statistics_update(laci_net *net, laci_net_step *step, lac_error *err) {
  const running *r = step->context;
  (void)err;
  for (int which = 0; which < 2; which++) {
    const float *now = laci_net_tensor_data(net, step->tensors[which]);
    const float *before = laci_net_tensor_data(net, step->tensors[2 + which]);
    float *after = laci_net_tensor_data(net, step->tensors[4 + which]);
    float part = (1 - r->momentum) * (which ? r->unbiased : 1);
    for (int64_t c = 0; c < r->channels; c++) after[c] = r->momentum * before[c] + part * now[c];
  }
  return LAC_OK;
}

int laci_norm_new_vector(laci_net *net, int64_t n) {
  laci_shape shape = laci_shape_of(1, &n);
  laci_layout *md = laci_net_dense_layout(net, &shape, LACI_ELEMENT_F32);
  int tensor = md ? laci_net_new_result(net, &shape, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  return tensor;
}

int laci_norm_read_vector(laci_net *net, int value) {
  return laci_net_convert_to_dense(net, laci_net_read_value(net, value), LACI_ELEMENT_F32);
}

void laci_norm_update_running_statistics(laci_net *net, const laci_node *node, int mean, int var) {
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  bool wanted = false;
  for (int at = 3; at < node->n_outputs; at++) {
    wanted = wanted || (node->outputs[at] >= 0 && net->plan.values[node->outputs[at]].n_uses > 0);
  }
  running *r = wanted ? laci_plan_alloc(&net->plan, 1, sizeof *r) : NULL;
  if (!r) return;
  int64_t n = laci_shape_count(x) / x->dims[1];
  *r = (running){.channels = x->dims[1],
                 .momentum = laci_node_float(node, "momentum", 0.9f),
                 .unbiased = n > 1 ? (float)((double)n / (double)(n - 1)) : 1};
  int after[2] = {laci_norm_new_vector(net, x->dims[1]), laci_norm_new_vector(net, x->dims[1])};
  int tensors[] = {mean,
                   var,
                   laci_norm_read_vector(net, node->inputs[3]),
                   laci_norm_read_vector(net, node->inputs[4]),
                   after[0],
                   after[1]};
  laci_net_step *step = laci_net_step_add_code(net, node, run_statistics_update, 6, tensors);
  if (!step) return;
  step->context = r;
  step->what = "running statistics";
  for (int at = 0; at < 2; at++) {
    if (node->outputs[3 + at] >= 0) laci_net_bind_value(net, node->outputs[3 + at], after[at]);
  }
}

/* ---- Forward and backward ---- */

bool laci_norm_has_fixed_statistics(const laci_node *node) {
  return laci_node_int(node, "fixed", 0) != 0;
}

bool laci_norm_find_statistics(const laci_net *net, const laci_node *node, int from[2]) {
  const bool fixed = laci_norm_has_fixed_statistics(node);
  for (int at = 0; at < 2; at++)
    from[at] = fixed ? node->inputs[3 + at] : output_or_none(node, 1 + at);
  return fixed || (net->recomputing && from[0] >= 0 && from[1] >= 0);
}

static float read_epsilon(const laci_node *node) { return laci_node_float(node, "epsilon", 1e-5f); }

void laci_lower_norm_train(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int known[] = {output_or_none(node, 1), output_or_none(node, 2)};
  int from[2], flags = 0;
  bool given = laci_norm_find_statistics(net, node, from);
  laci_primitive *pd = NULL;
  if (fused->n_posts > 0) flags |= LACI_NORM_RELU;
  if (given) flags |= LACI_NORM_GIVEN;
  int x = laci_net_make_whole_tensor(net, laci_net_read_value(net, node->inputs[0]));
  int scale = laci_norm_read_vector(net, node->inputs[1]),
      shift = laci_norm_read_vector(net, node->inputs[2]);
  int64_t channels = laci_plan_shape(&net->plan, node->inputs[0])->dims[1];
  int y = laci_net_new_result_like(net, x, true);
  int mean = given ? laci_norm_read_vector(net, from[0]) : laci_norm_new_vector(net, channels);
  int var = given ? laci_norm_read_vector(net, from[1]) : laci_norm_new_vector(net, channels);
  if (net->plan.status) return;
  lac_status st = laci_primitive_describe_batch_norm_train(&pd, net->onednn, net->tensors[x].md,
                                                           read_epsilon(node), flags);
  if (!laci_net_check_status(net, st, "batch norm of training")) return;
  int workspace = fused->n_posts > 0 ? laci_net_workspace_new(net, fused->node, pd) : -1;
  laci_net_step_add(net, fused, pd, workspace >= 0 ? 7 : 6,
                    (const int[][2]){{LACI_ARG_SRC, x},
                                     {LACI_ARG_SCALE, scale},
                                     {LACI_ARG_SHIFT, shift},
                                     {LACI_ARG_DST, y},
                                     {LACI_ARG_MEAN, mean},
                                     {LACI_ARG_VARIANCE, var},
                                     {LACI_ARG_WORKSPACE, workspace}});
  laci_net_bind_value(net, fused->output, y);
  if (net->recomputing) return;
  if (known[0] >= 0) laci_net_bind_value(net, known[0], mean);
  if (known[1] >= 0) laci_net_bind_value(net, known[1], var);
  laci_norm_update_running_statistics(net, node, mean, var);
}

void laci_lower_norm_train_gradient(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int forward = net->plan.graph->values[node->inputs[3]].producer;
  int workspace = forward >= 0 ? net->workspaces[forward] : -1;
  int flags = 0;
  bool reads_shift = laci_norm_gradient_reads_shift();
  laci_primitive *hint = NULL, *pd = NULL;
  if (workspace >= 0) flags |= LACI_NORM_RELU;
  if (laci_norm_has_fixed_statistics(node)) flags |= LACI_NORM_GIVEN;
  int x = laci_net_make_whole_tensor(net, laci_net_read_value(net, node->inputs[1]));
  if (x < 0) return;
  const laci_layout *md = net->tensors[x].md;
  float epsilon = read_epsilon(node);
  int64_t channels = laci_plan_shape(&net->plan, node->inputs[1])->dims[1];
  lac_status st = laci_primitive_describe_batch_norm_train(&hint, net->onednn, md, epsilon, flags);
  if (!st) {
    st = laci_primitive_describe_batch_norm_gradient(&pd, net->onednn, md, epsilon, flags, hint);
  }
  laci_primitive_destroy(hint);
  if (!laci_net_check_status(net, st, "gradient of batch norm")) return;
  int dy = laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[0]), md,
                                   laci_net_float_element(net));
  int scale = laci_norm_read_vector(net, node->inputs[2]);
  int mean = laci_norm_read_vector(net, node->inputs[3]),
      var = laci_norm_read_vector(net, node->inputs[4]);
  int dscale = laci_norm_new_vector(net, channels), dshift = laci_norm_new_vector(net, channels);
  int dx = laci_net_new_result_like(net, dy, true);
  laci_net_step_add(net, fused, pd, 8 + reads_shift + (workspace >= 0),
                    (const int[][2]){{LACI_ARG_SRC, x},
                                     {LACI_ARG_MEAN, mean},
                                     {LACI_ARG_VARIANCE, var},
                                     {LACI_ARG_DIFF_DST, dy},
                                     {LACI_ARG_SCALE, scale},
                                     {LACI_ARG_DIFF_SRC, dx},
                                     {LACI_ARG_DIFF_SCALE, dscale},
                                     {LACI_ARG_DIFF_SHIFT, dshift},
                                     {reads_shift ? LACI_ARG_SHIFT : LACI_ARG_WORKSPACE,
                                      reads_shift ? scale : workspace},
                                     {LACI_ARG_WORKSPACE, workspace}});
  if (output_or_none(node, 0) >= 0) laci_net_bind_value(net, node->outputs[0], dx);
  if (output_or_none(node, 1) >= 0) laci_net_bind_value(net, node->outputs[1], dscale);
  if (output_or_none(node, 2) >= 0) laci_net_bind_value(net, node->outputs[2], dshift);
}

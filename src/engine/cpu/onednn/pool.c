/* SPDX-License-Identifier: Apache-2.0
 * Pools and their gradients.
 *
 * A pool reads its input in the layout in which it is stored. The gradient of a max pool goes to
 * the pixels where the forward pool found the maxima, which that pool stores in its workspace. An
 * average pool needs no workspace. */
#include "engine/cpu/onednn/pool.h"

#include <string.h>

#include "cpu/cpu.h"
#include "engine/cpu/onednn/convolution.h"
#include "graph/ops.h"
#include "engine/cpu/onednn/onednn.h"

bool laci_pool_has_gradient(const laci_net *net, int pool) {
  const laci_value *x = &net->plan.graph->values[net->plan.graph->nodes[pool].inputs[0]];
  for (int at = 0; at < x->n_readers; at++) {
    if (net->plan.computed[x->readers[at]] &&
        laci_plan_workspace_producer(&net->plan, x->readers[at]) == pool)
      return true;
  }
  return false;
}

/* ---- Forward ---- */

/** Returns the input's tensor in the layout in which it is stored. Row-major values, which native
 * layouts become for AVX2, are first copied into blocks of 8 channels: oneDNN's pools take ten
 * times as long over other layouts there. */
static int read_pool_input(laci_net *net, int value, bool trains) {
  enum { BLOCK = 8 };
  const int from = laci_net_make_whole_tensor(net, laci_net_read_value(net, value));
  const laci_shape *x = laci_plan_shape(&net->plan, value);
  const bool avx2 = laci_cpu_level_in_force() == LACI_CPU_AVX2 && !laci_cpu_has_avx512f();
  if (from < 0 || !avx2 || trains || x->rank != 4 || x->dims[1] % BLOCK) return from;
  laci_layout *rows = laci_net_dense_layout(net, x, laci_net_float_element(net)), *blocks = NULL;
  int to = from;
  if (rows && laci_layout_equal(rows, net->tensors[from].md)) {
    if (!laci_layout_create_blocks(&blocks, x->dims, BLOCK, laci_net_float_element(net))) {
      laci_plan_fail_no_memory(&net->plan);
    }
    to = blocks ? laci_net_convert_tensor(net, from, blocks, laci_net_float_element(net)) : -1;
  }
  laci_layout_destroy(rows);
  laci_layout_destroy(blocks);
  return to;
}

/** Adds the step of a pool over any window; returns the result's tensor. A max pool whose gradient
 * is computed stores in its workspace where the maxima are. */
static int add_pool_step(laci_net *net, const laci_fused *fused, laci_pool_kind alg,
                         const laci_window *window, const laci_shape *y) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_primitive *pd = NULL;
  const bool trains = alg == LACI_POOL_MAX && laci_pool_has_gradient(net, fused->node);
  const bool upright = !trains && laci_conv_is_one_pixel_wide(
                                      laci_plan_shape(&net->plan, node->inputs[0]), y, window);
  int from = read_pool_input(net, node->inputs[0], trains);
  laci_shape shape = *y;
  laci_window w = *window;
  if (upright) {
    from = laci_conv_exchange_tensor_axes(net, from);
    laci_conv_exchange_shape_axes(&shape);
    laci_conv_exchange_window_axes(&w);
  }
  laci_layout *any = laci_net_any_layout(net, &shape, laci_net_float_element(net));
  int to = -1;
  if (net->plan.status) goto out;
  const laci_layout *const mds[] = {net->tensors[from].md, any};
  lac_status st = trains ? laci_primitive_describe_pool_train(&pd, net->onednn, alg, mds, &w)
                         : laci_primitive_describe_pool(&pd, net->onednn, alg, mds, &w);
  if (!laci_net_check_status(net, st, "pool")) goto out;
  int workspace = trains ? laci_net_workspace_new(net, fused->node, pd) : -1;
  to = laci_net_new_result(net, &shape, laci_net_float_element(net),
                           laci_primitive_layout(pd, LACI_ARG_DST));
  laci_net_step_add(
      net, fused, pd, workspace >= 0 ? 3 : 2,
      (const int[][2]){{LACI_ARG_SRC, from}, {LACI_ARG_DST, to}, {LACI_ARG_WORKSPACE, workspace}});
  if (upright) to = laci_conv_exchange_tensor_axes(net, to);
out:
  laci_layout_destroy(any);
  return to;
}

/** Does oneDNN divide by the right number of elements? Not in a last window of ceil_mode where
 * padding counts: only the elements inside the pads count there. */
static bool is_divisor_supported(const laci_node *node, const laci_window *w) {
  size_t n;
  const int64_t *pads = laci_node_ints(node, "pads", &n);
  if (laci_node_int(node, "ceil_mode", 0) == 0) return true;
  for (int at = 0; at < w->n_spatial; at++) {
    if (w->pads_end[at] > (pads ? pads[w->n_spatial + at] : 0)) return false;
  }
  return true;
}

bool laci_pool_read_window(const laci_net *net, const laci_node *node, laci_window *w) {
  size_t n;
  const int64_t *kernel = laci_node_ints(node, "kernel_shape", &n);
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  if (!kernel || (int)n != x->rank - 2 || !laci_plan_is_float(&net->plan, node->inputs[0]))
    return false;
  if (node->n_outputs > 1 && node->outputs[1] >= 0) return false;
  if (laci_plan_window_may_be_all_padding(&net->plan, node)) return false;
  return laci_conv_read_window(node, x, laci_plan_shape(&net->plan, node->outputs[0]), kernel, w);
}

static laci_pool_kind find_pool_kind(const laci_node *node) {
  if (node->op == &laci_op_max_pool) return LACI_POOL_MAX;
  return laci_node_int(node, "count_include_pad", 0) != 0 ? LACI_POOL_MEAN_PADDED : LACI_POOL_MEAN;
}

bool laci_can_lower_pool(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_window window;
  *why = "a window or an output that oneDNN lacks";
  if (!laci_pool_read_window(net, node, &window)) return false;
  return find_pool_kind(node) != LACI_POOL_MEAN_PADDED || is_divisor_supported(node, &window);
}

void laci_lower_pool(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_window window;
  (void)laci_pool_read_window(net, node, &window);
  int to = add_pool_step(net, fused, find_pool_kind(node), &window,
                         laci_plan_shape(&net->plan, fused->output));
  laci_net_bind_value(net, fused->output, to);
}

bool laci_can_lower_pool_channels(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int n_spatial = laci_plan_shape(&net->plan, node->inputs[0])->rank - 2;
  *why = "an input that oneDNN lacks";
  return n_spatial >= 1 && n_spatial <= 3 && laci_plan_is_float(&net->plan, node->inputs[0]);
}

void laci_lower_pool_channels(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  laci_window w = {.n_spatial = x->rank - 2};
  bool max = node->op == &laci_op_global_max_pool;
  laci_shape y = *x;
  for (int at = 0; at < w.n_spatial; at++) {
    w.kernel[at] = w.strides[at] = x->dims[at + 2];
    y.dims[at + 2] = 1;
  }
  int to = add_pool_step(net, fused, max ? LACI_POOL_MAX : LACI_POOL_MEAN, &w, &y);
  laci_net_bind_reshaped(net, fused->output, to);
}

/* ---- Backward ---- */

/** Adds the primitive's step, and a reorder of the gradient of the pool's result to the layout that
 * the primitive reads. */
static void add_pool_gradient_step(laci_net *net, const laci_fused *fused, laci_primitive *pd,
                                   int workspace) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_element dt = laci_net_float_element(net);
  int dy = laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[0]),
                                   laci_primitive_layout(pd, LACI_ARG_DIFF_DST), dt);
  int dx = laci_net_new_result(net, laci_plan_shape(&net->plan, fused->output), dt,
                               laci_primitive_layout(pd, LACI_ARG_DIFF_SRC));
  laci_net_step_add(
      net, fused, pd, workspace >= 0 ? 3 : 2,
      (const int[][2]){
          {LACI_ARG_DIFF_DST, dy}, {LACI_ARG_DIFF_SRC, dx}, {LACI_ARG_WORKSPACE, workspace}});
  laci_net_bind_value(net, fused->output, dx);
}

static bool can_lower_max_grad(laci_net *net, const laci_fused *fused, const char **why) {
  int pool = laci_plan_workspace_producer(&net->plan, fused->node);
  *why = "its pool is not computed by oneDNN";
  return pool >= 0 && net->workspaces[pool] >= 0;
}

static void lower_max_grad(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int pool = laci_plan_workspace_producer(&net->plan, fused->node);
  laci_primitive *hint = NULL, *pd = NULL;
  const laci_node *forward = &net->plan.graph->nodes[pool];
  size_t n;
  laci_window window;
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[1]);
  (void)laci_conv_read_window(forward, x, laci_plan_shape(&net->plan, forward->outputs[0]),
                              laci_node_ints(forward, "kernel_shape", &n), &window);
  int from = laci_net_make_whole_tensor(net, laci_net_read_value(net, node->inputs[1]));
  laci_layout *any = laci_net_any_layout(net, laci_plan_shape(&net->plan, forward->outputs[0]),
                                         laci_net_float_element(net));
  if (!net->plan.status) {
    const laci_layout *src = net->tensors[from].md;
    lac_status st = laci_primitive_describe_pool_train(
        &hint, net->onednn, LACI_POOL_MAX, (const laci_layout *const[]){src, any}, &window);
    if (!st) {
      const laci_layout *const mds[] = {src, laci_primitive_layout(hint, LACI_ARG_DST)};
      st = laci_primitive_describe_pool_gradient(&pd, net->onednn, LACI_POOL_MAX, mds, &window,
                                                 hint);
    }
    if (laci_net_check_status(net, st, "gradient of this pool"))
      add_pool_gradient_step(net, fused, pd, net->workspaces[pool]);
    laci_primitive_destroy(hint);
  }
  laci_layout_destroy(any);
}

/** Reads the window of an AveragePoolGrad; false: oneDNN does not support it. */
static bool read_average_pool_window(const laci_net *net, const laci_fused *fused,
                                     laci_window *window) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, fused->output);
  size_t n;
  const int64_t *kernel = laci_node_ints(node, "kernel_shape", &n);
  return kernel && (int)n == x->rank - 2 &&
         laci_conv_read_window(node, x, laci_plan_shape(&net->plan, node->inputs[0]), kernel,
                               window);
}

static bool can_lower_average_grad(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_window window;
  *why = "a window that oneDNN lacks";
  bool padded = find_pool_kind(node) == LACI_POOL_MEAN_PADDED;
  return read_average_pool_window(net, fused, &window) &&
         !(padded && laci_node_int(node, "ceil_mode", 0) != 0);
}

static void lower_average_grad(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, fused->output);
  const laci_shape *y = laci_plan_shape(&net->plan, node->inputs[0]);
  laci_element dt = laci_net_float_element(net);
  laci_pool_kind alg = find_pool_kind(node);
  laci_primitive *hint = NULL, *pd = NULL;
  laci_window window;
  (void)read_average_pool_window(net, fused, &window);
  laci_layout *dx = laci_net_channels_last_layout(net, x, dt),
              *dy = laci_net_channels_last_layout(net, y, dt);
  if (!net->plan.status) {
    const laci_layout *const mds[] = {dx, dy};
    lac_status st = laci_primitive_describe_pool_train(&hint, net->onednn, alg, mds, &window);
    if (!st) st = laci_primitive_describe_pool_gradient(&pd, net->onednn, alg, mds, &window, hint);
    if (laci_net_check_status(net, st, "gradient of this pool"))
      add_pool_gradient_step(net, fused, pd, -1);
    laci_primitive_destroy(hint);
  }
  laci_layout_destroy(dx);
  laci_layout_destroy(dy);
}

/* ---- The lists of implementations ---- */

const laci_implementation laci_implementations_max_pool_grad[] = {
    {"oneDNN's", LACI_FUSIBLE_NOTHING, can_lower_max_grad, lower_max_grad},
    {.name = NULL},
};
const laci_implementation laci_implementations_average_pool_grad[] = {
    {"oneDNN's", LACI_FUSIBLE_NOTHING, can_lower_average_grad, lower_average_grad},
    {.name = NULL},
};

/* SPDX-License-Identifier: Apache-2.0
 * Gradients of pools.
 *
 * A maximum's gradient goes where the forward pool found it: that pool leaves the places behind in
 * its workspace (ops_conv.c asks laci_net_has_pool_gradient). An average needs no memory. */
#include <string.h>

#include "engine/cpu/dnnl_backward.h"
#include "engine/cpu/net_in.h"

static bool same_window(const laci_node *a, const laci_node *b) {
  static const char *const names[] = {"kernel_shape", "strides", "pads", "dilations"};
  static const int64_t none[2 * LACI_MAX_RANK] = {0};
  for (int at = 0; at < 4; at++) {
    size_t n_a, n_b;
    const int64_t *x = laci_node_ints(a, names[at], &n_a), *y = laci_node_ints(b, names[at], &n_b);
    bool zero = at == 2 && !x && n_b <= 2 * LACI_MAX_RANK; /* pads that are not given */
    if (zero) {
      x = none;
      n_a = n_b;
    }
    if (!x && y) { /* strides and dilations of 1 */
      for (size_t i = 0; i < n_b; i++) {
        if (y[i] != 1) return false;
      }
      continue;
    }
    if (n_a != n_b || (n_a > 0 && memcmp(x, y, n_a * sizeof *x) != 0)) return false;
  }
  return laci_node_int(a, "ceil_mode", 0) == laci_node_int(b, "ceil_mode", 0);
}

static bool is_pool(const laci_node *node) {
  const char *automatic = laci_node_text(node, "auto_pad", "NOTSET");
  return laci_node_is(node, "MaxPool") && strcmp(automatic, "NOTSET") == 0;
}

int laci_net_max_pool_of(const laci_net *net, const laci_node *grad) {
  const laci_value *x = &net->graph->values[grad->inputs[1]];
  for (int at = 0; at < x->n_readers; at++) {
    const laci_node *node = &net->graph->nodes[x->readers[at]];
    if (net->computed[x->readers[at]] && is_pool(node) && same_window(node, grad)) {
      return x->readers[at];
    }
  }
  return -1;
}

bool laci_net_has_pool_gradient(const laci_net *net, const laci_node *pool) {
  const laci_value *x = &net->graph->values[pool->inputs[0]];
  for (int at = 0; at < x->n_readers; at++) {
    const laci_node *node = &net->graph->nodes[x->readers[at]];
    if (!net->computed[x->readers[at]] || !laci_node_is_ours(node, "MaxPoolGrad")) continue;
    int from = laci_net_max_pool_of(net, node);
    if (from >= 0 && &net->graph->nodes[from] == pool) return true;
  }
  return false;
}

/** The primitive's step: brings the gradient behind the pool into its layout. */
static void gradient_step(laci_net *net, const laci_net_layer *layer, dnnl_primitive_desc_t pd,
                          int workspace) {
  const laci_node *node = &net->graph->nodes[layer->node];
  dnnl_data_type_t dt = laci_net_dt(net);
  int dy = laci_net_as(net, laci_net_read(net, node->inputs[0]),
                       dnnl_primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0), dt);
  int dx = laci_net_result(net, laci_net_shape(net, layer->output), dt,
                           dnnl_primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0));
  laci_net_step_add(
      net, layer, pd, workspace >= 0 ? 3 : 2,
      (const int[][2]){
          {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}, {DNNL_ARG_WORKSPACE, workspace}});
  laci_net_bind(net, layer->output, dx);
}

void laci_build_max_pool_grad(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  int pool = laci_net_max_pool_of(net, node);
  int workspace = pool >= 0 ? net->workspaces[pool] : -1;
  dnnl_primitive_desc_t hint = NULL, pd = NULL;
  if (workspace < 0) {
    laci_net_fail(net, LAC_UNSUPPORTED, "its pool is not computed by oneDNN");
    return;
  }
  const laci_node *forward = &net->graph->nodes[pool];
  size_t n;
  laci_dnnl_window window;
  const laci_shape *x = laci_net_shape(net, node->inputs[1]);
  (void)laci_net_window(forward, x, laci_net_shape(net, forward->outputs[0]),
                        laci_node_ints(forward, "kernel_shape", &n), &window);
  int from = laci_net_whole(net, laci_net_read(net, node->inputs[1]));
  laci_md any = laci_net_any(net, laci_net_shape(net, forward->outputs[0]), laci_net_dt(net));
  if (!net->status) {
    laci_md_view src = net->tensors[from].md;
    dnnl_status_t st = laci_pd_pool_train(&hint, net->engine, dnnl_pooling_max,
                                          (const laci_md_view[]){src, any}, &window, net->attr);
    if (!st) {
      const laci_md_view mds[] = {src, dnnl_primitive_desc_query_md(hint, dnnl_query_dst_md, 0)};
      st = laci_pd_pool_gradient(&pd, net->engine, dnnl_pooling_max, mds, &window, hint, net->attr);
    }
    if (laci_net_did(net, st, "gradient of this pool")) gradient_step(net, layer, pd, workspace);
    if (hint) (void)dnnl_primitive_desc_destroy(hint);
  }
  laci_md_drop(any);
}

void laci_build_average_pool_grad(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *x = laci_net_shape(net, layer->output);
  const laci_shape *y = laci_net_shape(net, node->inputs[0]);
  dnnl_data_type_t dt = laci_net_dt(net);
  dnnl_primitive_desc_t hint = NULL, pd = NULL;
  laci_dnnl_window window;
  size_t n;
  const int64_t *kernel = laci_node_ints(node, "kernel_shape", &n);
  bool padded = laci_node_int(node, "count_include_pad", 0) != 0;
  if (!kernel || (int)n != x->rank - 2 || !laci_net_window(node, x, y, kernel, &window) ||
      (padded && laci_node_int(node, "ceil_mode", 0) != 0)) {
    laci_net_fail(net, LAC_UNSUPPORTED, "a window that oneDNN lacks");
    return;
  }
  dnnl_alg_kind_t alg =
      padded ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
  laci_md dx = laci_net_channels_last(net, x, dt), dy = laci_net_channels_last(net, y, dt);
  if (!net->status) {
    const laci_md_view mds[] = {dx, dy};
    dnnl_status_t st = laci_pd_pool_train(&hint, net->engine, alg, mds, &window, net->attr);
    if (!st) st = laci_pd_pool_gradient(&pd, net->engine, alg, mds, &window, hint, net->attr);
    if (laci_net_did(net, st, "gradient of this pool")) gradient_step(net, layer, pd, -1);
    if (hint) (void)dnnl_primitive_desc_destroy(hint);
  }
  laci_md_drop(dx);
  laci_md_drop(dy);
}

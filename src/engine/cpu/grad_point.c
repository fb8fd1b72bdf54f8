/* SPDX-License-Identifier: Apache-2.0
 * Gradients of element-wise functions.
 *
 * Relu's needs its result only. Where the Relu melted into the batch norm before it, so does its
 * gradient: the value is the one behind it, under another name. */
#include "engine/cpu/dnnl_backward.h"
#include "engine/cpu/net_in.h"

/** dY times the slope at `data`, which lies as it lies. */
static int slope_step(laci_net *net, const laci_net_layer *layer, const laci_eltwise *e, int dy,
                      int data) {
  bool by_result = e->alg == dnnl_eltwise_relu_use_dst_for_bwd;
  const float ab[2] = {e->alpha, e->beta};
  dnnl_primitive_desc_t hint = NULL, pd = NULL;
  data = laci_net_whole(net, data);
  if (data < 0) return -1;
  laci_md_view md = net->tensors[data].md;
  dnnl_status_t st = laci_pd_eltwise_train(&hint, net->engine, e->alg, ab, md, net->attr);
  if (!st) st = laci_pd_eltwise_gradient(&pd, net->engine, e->alg, ab, md, hint, net->attr);
  if (hint) (void)dnnl_primitive_desc_destroy(hint);
  if (!laci_net_did(net, st, "gradient of this function")) return -1;
  int from = laci_net_as(net, dy, md, laci_net_dt(net));
  int to = laci_net_result_like(net, from, true);
  laci_net_step_add(net, layer, pd, 3,
                    (const int[][2]){{by_result ? DNNL_ARG_DST : DNNL_ARG_SRC, data},
                                     {DNNL_ARG_DIFF_DST, from},
                                     {DNNL_ARG_DIFF_SRC, to}});
  return to;
}

/** Does the batch norm's gradient that reads this one undo the Relu itself? */
static bool melted(const laci_net *net, const laci_node *node) {
  const laci_value *dx = &net->graph->values[node->outputs[0]];
  for (int at = 0; at < dx->n_readers; at++) {
    const laci_node *next = &net->graph->nodes[dx->readers[at]];
    if (!laci_node_is_ours(next, "BatchNormTrainGrad")) continue;
    int norm = net->graph->values[next->inputs[3]].producer;
    if (next->inputs[0] == node->outputs[0] && norm >= 0 && net->workspaces[norm] >= 0) return true;
  }
  return false;
}

void laci_build_relu_grad(laci_net *net, const laci_net_layer *layer) {
  static const laci_eltwise relu = {dnnl_eltwise_relu_use_dst_for_bwd, 0, 0};
  const laci_node *node = &net->graph->nodes[layer->node];
  int dy = laci_net_read(net, node->inputs[0]);
  if (!melted(net, node)) {
    dy = slope_step(net, layer, &relu, dy, laci_net_read(net, node->inputs[1]));
  }
  laci_net_bind(net, layer->output, dy);
}

void laci_build_unary_grad(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  laci_eltwise e[2];
  if (laci_eltwise_named(node, laci_node_text(node, "of", ""), e) != 1) {
    laci_net_fail(net, LAC_UNSUPPORTED, "a function that oneDNN lacks");
    return;
  }
  int dy = laci_net_read(net, node->inputs[0]), x = laci_net_read(net, node->inputs[1]);
  laci_net_bind(net, layer->output, slope_step(net, layer, e, dy, x));
}

void laci_build_clip_grad(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  laci_eltwise e;
  if (!laci_net_clip(net, node, 2, &e)) {
    laci_net_fail(net, LAC_UNSUPPORTED, "bounds that oneDNN lacks");
    return;
  }
  e.alg = dnnl_eltwise_clip_v2; /* whose slope is 0 at the bounds, as the operator has it */
  int dy = laci_net_read(net, node->inputs[0]), x = laci_net_read(net, node->inputs[1]);
  laci_net_bind(net, layer->output, slope_step(net, layer, &e, dy, x));
}

/* SPDX-License-Identifier: Apache-2.0
 * Convolutions while training: weights that change, and the gradients of input and weights.
 *
 * Weights come and gradients go row-major, as the optimiser keeps them. Images lie in blocks of 16
 * channels on both ways wherever that fits, so that forward, backward and all between them agree
 * and nothing but weights is reordered; Winograd's algorithm is at home there, too. Gradients of
 * weights are f32 also where all else is bf16. */
#include "engine/cpu/onednn/backward.h"
#include "engine/cpu/lower/conv.h"

/* What the three primitives of one convolution have in common. */
typedef struct conv {
  laci_shape x, weight, y; /* weight: with an axis of groups where there are several */
  laci_dnnl_window window;
  laci_md md_x, md_weight, md_y; /* in blocks or of any layout; the weight's is always any */
  bool winograd;                 /* worth trying */
} conv;

static void conv_clear(conv *c) {
  laci_md_drop(c->md_x);
  laci_md_drop(c->md_weight);
  laci_md_drop(c->md_y);
}

/** In blocks where those divide the channels. */
static laci_md blocks_or_any(laci_net *net, const laci_shape *shape, bool blocks) {
  laci_md md = blocks ? laci_net_blocks(net, shape, laci_net_dt(net)) : NULL;
  return md ? md : laci_net_any(net, shape, laci_net_dt(net));
}

/** The forward primitive with Winograd's algorithm or without. */
static dnnl_status_t try_forward(const laci_net *net, const conv *c, laci_md_view bias,
                                 bool winograd, dnnl_primitive_desc_t *pd) {
  const laci_md_view mds[] = {c->md_x, c->md_weight, bias, c->md_y};
  dnnl_alg_kind_t alg = winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
  return laci_pd_conv_train(pd, net->engine, alg, mds, &c->window, net->attr);
}

/** Is it a window? values: those that stand for x, weight and y (or their gradients). */
static bool values_fit(const laci_net *net, const laci_node *node, const int values[3],
                       const char **why) {
  const laci_shape *x = laci_net_shape(net, values[0]), *y = laci_net_shape(net, values[2]);
  const laci_shape *weight = laci_net_shape(net, values[1]);
  laci_dnnl_window window;
  *why = "a window that oneDNN lacks";
  return x->rank >= 3 && weight->rank == x->rank &&
         laci_conv_window(node, x, y, weight->dims + 2, &window);
}

static void conv_describe(laci_net *net, const laci_node *node, const int values[3], conv *c) {
  const laci_shape *weight = laci_net_shape(net, values[1]);
  int64_t groups = laci_node_int(node, "group", 1);
  *c = (conv){.x = *laci_net_shape(net, values[0]), .y = *laci_net_shape(net, values[2])};
  (void)laci_conv_window(node, &c->x, &c->y, weight->dims + 2, &c->window);
  bool blocks = net->blocks && laci_conv_allows_blocks(&c->x, &c->y, groups);
  c->weight = laci_conv_grouped(weight, groups);
  c->md_x = blocks_or_any(net, &c->x, blocks);
  c->md_weight = laci_net_any(net, &c->weight, laci_net_dt(net));
  c->md_y = blocks_or_any(net, &c->y, blocks);
  c->winograd = blocks && laci_conv_allows_winograd(net, &c->x, &c->y, groups, &c->window);
}

/** A weight that changes, in the layout that is wanted. */
static int conv_weight(laci_net *net, int value, const conv *c, laci_md_view wanted) {
  int tensor = laci_net_read(net, value);
  if (c->weight.rank != c->x.rank) {
    dnnl_data_type_t dt = dnnl_f32;
    tensor = laci_net_as_dense(net, tensor, dt);
    tensor = laci_net_view(net, tensor, &c->weight, laci_net_dense(net, &c->weight, dt), false);
  }
  return laci_net_as(net, tensor, wanted, laci_net_dt(net));
}

/** The primitive in the best form that there is. NULL after a failure. */
static dnnl_primitive_desc_t choose_forward(laci_net *net, const conv *c, laci_md_view bias) {
  dnnl_primitive_desc_t pd = NULL;
  if (net->status) return NULL;
  if (c->winograd && try_forward(net, c, bias, true, &pd) == dnnl_success) return pd;
  return laci_net_did(net, try_forward(net, c, bias, false, &pd), "convolution") ? pd : NULL;
}

bool laci_conv_values_fit(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->graph->nodes[fused->node];
  return values_fit(net, node, (int[]){node->inputs[0], node->inputs[1], fused->output}, why);
}

void laci_conv_values(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->graph->nodes[fused->node];
  dnnl_data_type_t dt = laci_net_dt(net);
  laci_md bias_md = NULL;
  int bias = -1;
  conv c = {0};
  const int values[] = {node->inputs[0], node->inputs[1], fused->output};
  conv_describe(net, node, values, &c);
  if (laci_net_has(node, 2)) {
    bias_md = laci_net_dense(net, laci_net_shape(net, node->inputs[2]), dnnl_f32);
    bias = laci_net_as_dense(net, laci_net_read(net, node->inputs[2]), dnnl_f32);
  }
  dnnl_primitive_desc_t pd = choose_forward(net, &c, bias_md);
  if (!pd) goto out;
  laci_md_view src = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
  int x = laci_net_as(net, laci_net_read(net, node->inputs[0]), src, dt);
  int w = conv_weight(net, node->inputs[1], &c,
                      dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
  int y = laci_net_result(net, &c.y, dt, dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0));
  laci_net_step_add(
      net, fused, pd, bias >= 0 ? 4 : 3,
      (const int[][2]){
          {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}, {DNNL_ARG_BIAS, bias}});
  laci_net_bind(net, fused->output, y);
out:
  laci_md_drop(bias_md);
  conv_clear(&c);
}

typedef dnnl_status_t gradient_of(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                  laci_dnnl_triple md, const laci_dnnl_window *w,
                                  const_dnnl_primitive_desc_t hint,
                                  const_dnnl_primitive_attr_t attr);

/** The gradient's primitive with Winograd's algorithm or without; the forward one is its hint. */
static dnnl_status_t try_gradient(const laci_net *net, const conv *c, laci_dnnl_triple md,
                                  gradient_of *describe, dnnl_primitive_desc_t *pd) {
  dnnl_primitive_desc_t hint = NULL;
  dnnl_status_t st = try_forward(net, c, NULL, md.alg == dnnl_convolution_winograd, &hint);
  if (st) return st;
  st = describe(pd, net->engine, md, &c->window, hint, net->attr);
  (void)dnnl_primitive_desc_destroy(hint);
  return st;
}

/** The same for a gradient; `what` it is called where there is none. */
static dnnl_primitive_desc_t choose_gradient(laci_net *net, const conv *c, laci_dnnl_triple md,
                                             gradient_of *describe, const char *what) {
  dnnl_primitive_desc_t pd = NULL;
  md.alg = dnnl_convolution_winograd;
  if (c->winograd && try_gradient(net, c, md, describe, &pd) == dnnl_success) return pd;
  md.alg = dnnl_convolution_direct;
  return laci_net_did(net, try_gradient(net, c, md, describe, &pd), what) ? pd : NULL;
}

/* ---- Gradients ---- */

static bool grad_input_fits(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->graph->nodes[fused->node];
  return values_fit(net, node, (int[]){fused->output, node->inputs[1], node->inputs[0]}, why);
}

static void lower_grad_input(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->graph->nodes[fused->node];
  dnnl_data_type_t dt = laci_net_dt(net);
  dnnl_primitive_desc_t pd = NULL;
  conv c = {0};
  conv_describe(net, node, (int[]){fused->output, node->inputs[1], node->inputs[0]}, &c);
  if (!net->status) {
    laci_dnnl_triple md = {.src = c.md_x, .weights = c.md_weight, .dst = c.md_y};
    pd = choose_gradient(net, &c, md, laci_pd_conv_input_gradient,
                         "gradient of a convolution's input");
  }
  if (pd) {
    laci_md_view dy_md = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0);
    int dy = laci_net_as(net, laci_net_read(net, node->inputs[0]), dy_md, dt);
    int w = conv_weight(net, node->inputs[1], &c,
                        dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
    int dx =
        laci_net_result(net, &c.x, dt, dnnl_primitive_desc_query_md(pd, dnnl_query_diff_src_md, 0));
    laci_net_step_add(
        net, fused, pd, 3,
        (const int[][2]){{DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, dx}});
    laci_net_bind(net, fused->output, dx);
  }
  conv_clear(&c);
}

static bool grad_weight_fits(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->graph->nodes[fused->node];
  return values_fit(net, node, (int[]){node->inputs[0], fused->output, node->inputs[1]}, why);
}

static void lower_grad_weight(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->graph->nodes[fused->node];
  dnnl_data_type_t dt = laci_net_dt(net);
  dnnl_primitive_desc_t pd = NULL;
  conv c = {0};
  conv_describe(net, node, (int[]){node->inputs[0], fused->output, node->inputs[1]}, &c);
  laci_md dw_md = laci_net_any(net, &c.weight, dnnl_f32);
  if (dw_md && !net->status) {
    laci_dnnl_triple md = {.src = c.md_x, .weights = dw_md, .dst = c.md_y};
    pd = choose_gradient(net, &c, md, laci_pd_conv_weight_gradient,
                         "gradient of a convolution's weights");
  }
  if (pd) {
    laci_md_view x_md = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
    laci_md_view dy_md = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_dst_md, 0);
    int x = laci_net_as(net, laci_net_read(net, node->inputs[0]), x_md, dt);
    int dy = laci_net_as(net, laci_net_read(net, node->inputs[1]), dy_md, dt);
    int dw = laci_net_result(net, &c.weight, dnnl_f32,
                             dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0));
    laci_net_step_add(
        net, fused, pd, 3,
        (const int[][2]){{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_WEIGHTS, dw}});
    laci_net_bind_shaped(net, fused->output, dw);
  }
  laci_md_drop(dw_md);
  conv_clear(&c);
}

const laci_implementation laci_ways_conv_grad_input[] = {
    {"winograd of bf16", LACI_TAKES_NOTHING, laci_conv_winograd_fits, laci_conv_winograd},
    {"oneDNN's", LACI_TAKES_NOTHING, grad_input_fits, lower_grad_input},
    {.name = NULL},
};
const laci_implementation laci_ways_conv_grad_weight[] = {
    {"pairs of bf16", LACI_TAKES_NOTHING, laci_conv_pairs_fit, laci_conv_pairs},
    {"oneDNN's", LACI_TAKES_NOTHING, grad_weight_fits, lower_grad_weight},
    {.name = NULL},
};

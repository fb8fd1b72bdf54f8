/* SPDX-License-Identifier: Apache-2.0
 * Convolutions while training: weights that change, and the gradients of input and weights.
 *
 * Weights and their gradients are row-major, as the optimizer stores them. Wherever possible,
 * images are in blocks of 16 channels, forward and backward, so that all steps agree and only
 * weights are reordered. oneDNN's Winograd kernels need these blocks, too. Gradients of weights are
 * f32 even in bf16 networks. */
#include "engine/cpu/onednn/convolution.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/onednn/onednn.h"

/* What the three primitives of one convolution have in common. */
typedef struct conv {
  /* shapes; that of the weight has an axis for groups if there are several */
  laci_shape x, weight, y;
  laci_window window;
  /* layouts in blocks, or such that the primitive chooses them; md_weight is always of the latter
   * kind */
  laci_layout *md_x, *md_weight, *md_y;
  bool winograd; /* Winograd's algorithm is worth trying */
} conv;

static void destroy_conv_layouts(conv *c) {
  laci_layout_destroy(c->md_x);
  laci_layout_destroy(c->md_weight);
  laci_layout_destroy(c->md_y);
}

/** Makes a layout in blocks of 16 channels if `blocks` is set and 16 divides the channels; else one
 * that the primitive chooses. */
static laci_layout *make_blocks_or_any_layout(laci_net *net, const laci_shape *shape, bool blocks) {
  laci_layout *md = blocks ? laci_net_blocks_layout(net, shape, laci_net_float_element(net)) : NULL;
  return md ? md : laci_net_any_layout(net, shape, laci_net_float_element(net));
}

/** Describes the forward primitive, with Winograd's algorithm or without. */
static lac_status try_to_describe_forward(const laci_net *net, const conv *c,
                                          const laci_layout *bias, bool winograd,
                                          laci_primitive **pd) {
  const laci_layout *const mds[] = {c->md_x, c->md_weight, bias, c->md_y};
  laci_conv_algorithm alg = winograd ? LACI_CONV_WINOGRAD : LACI_CONV_DIRECT;
  return laci_primitive_describe_conv_train(pd, net->onednn, alg, mds, &c->window);
}

/** Does oneDNN support the convolution's window? values: x, weight and y (or their gradients). */
static bool is_conv_window_supported(const laci_net *net, const laci_node *node,
                                     const int values[3], const char **why) {
  const laci_shape *x = laci_plan_shape(&net->plan, values[0]),
                   *y = laci_plan_shape(&net->plan, values[2]);
  const laci_shape *weight = laci_plan_shape(&net->plan, values[1]);
  laci_window window;
  *why = "a window that oneDNN lacks";
  return x->rank >= 3 && weight->rank == x->rank &&
         laci_conv_read_window(node, x, y, weight->dims + 2, &window);
}

static void describe_trained_conv(laci_net *net, const laci_node *node, const int values[3],
                                  conv *c) {
  const laci_shape *weight = laci_plan_shape(&net->plan, values[1]);
  int64_t groups = laci_node_int(node, "group", 1);
  *c = (conv){.x = *laci_plan_shape(&net->plan, values[0]),
              .y = *laci_plan_shape(&net->plan, values[2])};
  (void)laci_conv_read_window(node, &c->x, &c->y, weight->dims + 2, &c->window);
  bool blocks = net->blocks && laci_conv_can_use_blocks(&c->x, &c->y, groups);
  c->weight = laci_conv_grouped_shape(weight, groups);
  c->md_x = make_blocks_or_any_layout(net, &c->x, blocks);
  c->md_weight = laci_net_any_layout(net, &c->weight, laci_net_float_element(net));
  c->md_y = make_blocks_or_any_layout(net, &c->y, blocks);
  c->winograd = blocks && laci_conv_can_use_winograd(net, &c->x, &c->y, groups, &c->window);
}

/** Returns a tensor of a weight that changes from step to step, in the wanted layout. */
static int read_conv_weight(laci_net *net, int value, const conv *c, const laci_layout *wanted) {
  int tensor = laci_net_read_value(net, value);
  if (c->weight.rank != c->x.rank) {
    laci_element dt = LACI_ELEMENT_F32;
    tensor = laci_net_convert_to_dense(net, tensor, dt);
    tensor = laci_net_view_new(net, tensor, &c->weight, laci_net_dense_layout(net, &c->weight, dt),
                               false);
  }
  return laci_net_convert_tensor(net, tensor, wanted, laci_net_float_element(net));
}

/** Describes the best available forward primitive. NULL after a failure. */
static laci_primitive *choose_forward_primitive(laci_net *net, const conv *c,
                                                const laci_layout *bias) {
  laci_primitive *pd = NULL;
  if (net->plan.status) return NULL;
  if (c->winograd && try_to_describe_forward(net, c, bias, true, &pd) == LAC_OK) return pd;
  return laci_net_check_status(net, try_to_describe_forward(net, c, bias, false, &pd),
                               "convolution")
             ? pd
             : NULL;
}

bool laci_can_lower_conv_values(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  return is_conv_window_supported(net, node,
                                  (int[]){node->inputs[0], node->inputs[1], fused->output}, why);
}

void laci_lower_conv_values(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_element dt = laci_net_float_element(net);
  laci_layout *bias_md = NULL;
  int bias = -1;
  conv c = {0};
  const int values[] = {node->inputs[0], node->inputs[1], fused->output};
  describe_trained_conv(net, node, values, &c);
  if (laci_plan_has_input(node, 2)) {
    bias_md =
        laci_net_dense_layout(net, laci_plan_shape(&net->plan, node->inputs[2]), LACI_ELEMENT_F32);
    bias =
        laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[2]), LACI_ELEMENT_F32);
  }
  laci_primitive *pd = choose_forward_primitive(net, &c, bias_md);
  if (!pd) goto out;
  const laci_layout *src = laci_primitive_layout(pd, LACI_ARG_SRC);
  int x = laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[0]), src, dt);
  int w = read_conv_weight(net, node->inputs[1], &c, laci_primitive_layout(pd, LACI_ARG_WEIGHTS));
  int y = laci_net_new_result(net, &c.y, dt, laci_primitive_layout(pd, LACI_ARG_DST));
  laci_net_step_add(
      net, fused, pd, bias >= 0 ? 4 : 3,
      (const int[][2]){
          {LACI_ARG_SRC, x}, {LACI_ARG_WEIGHTS, w}, {LACI_ARG_DST, y}, {LACI_ARG_BIAS, bias}});
  laci_net_bind_value(net, fused->output, y);
out:
  laci_layout_destroy(bias_md);
  destroy_conv_layouts(&c);
}

typedef lac_status gradient_of(laci_primitive **made, const laci_onednn *dnn,
                               laci_conv_algorithm algorithm, const laci_layout *const md[3],
                               const laci_window *w, const laci_primitive *hint);

/** Describes a gradient's primitive, with Winograd's algorithm or without; the forward primitive is
 * its hint. */
static lac_status try_to_describe_gradient(const laci_net *net, const conv *c,
                                           laci_conv_algorithm algorithm,
                                           const laci_layout *const md[3], gradient_of *describe,
                                           laci_primitive **pd) {
  laci_primitive *hint = NULL;
  lac_status st = try_to_describe_forward(net, c, NULL, algorithm == LACI_CONV_WINOGRAD, &hint);
  if (st) return st;
  st = describe(pd, net->onednn, algorithm, md, &c->window, hint);
  laci_primitive_destroy(hint);
  return st;
}

/** Describes the best available primitive of a gradient. NULL after a failure, whose text calls it
 * `what`. */
static laci_primitive *choose_gradient_primitive(laci_net *net, const conv *c,
                                                 const laci_layout *const md[3],
                                                 gradient_of *describe, const char *what) {
  laci_primitive *pd = NULL;
  if (c->winograd &&
      try_to_describe_gradient(net, c, LACI_CONV_WINOGRAD, md, describe, &pd) == LAC_OK) {
    return pd;
  }
  lac_status st = try_to_describe_gradient(net, c, LACI_CONV_DIRECT, md, describe, &pd);
  return laci_net_check_status(net, st, what) ? pd : NULL;
}

/* ---- Gradients ---- */

static bool can_lower_grad_input(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  return is_conv_window_supported(net, node,
                                  (int[]){fused->output, node->inputs[1], node->inputs[0]}, why);
}

static void lower_grad_input(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_element dt = laci_net_float_element(net);
  laci_primitive *pd = NULL;
  conv c = {0};
  describe_trained_conv(net, node, (int[]){fused->output, node->inputs[1], node->inputs[0]}, &c);
  if (!net->plan.status) {
    const laci_layout *const md[] = {c.md_x, c.md_weight, c.md_y};
    pd = choose_gradient_primitive(net, &c, md, laci_primitive_describe_conv_input_gradient,
                                   "gradient of a convolution's input");
  }
  if (pd) {
    const laci_layout *dy_md = laci_primitive_layout(pd, LACI_ARG_DIFF_DST);
    int dy = laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[0]), dy_md, dt);
    int w = read_conv_weight(net, node->inputs[1], &c, laci_primitive_layout(pd, LACI_ARG_WEIGHTS));
    int dx = laci_net_new_result(net, &c.x, dt, laci_primitive_layout(pd, LACI_ARG_DIFF_SRC));
    laci_net_step_add(
        net, fused, pd, 3,
        (const int[][2]){{LACI_ARG_DIFF_DST, dy}, {LACI_ARG_WEIGHTS, w}, {LACI_ARG_DIFF_SRC, dx}});
    laci_net_bind_value(net, fused->output, dx);
  }
  destroy_conv_layouts(&c);
}

static bool can_lower_grad_weight(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  return is_conv_window_supported(net, node,
                                  (int[]){node->inputs[0], fused->output, node->inputs[1]}, why);
}

static void lower_grad_weight(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_element dt = laci_net_float_element(net);
  laci_primitive *pd = NULL;
  conv c = {0};
  describe_trained_conv(net, node, (int[]){node->inputs[0], fused->output, node->inputs[1]}, &c);
  laci_layout *dw_md = laci_net_any_layout(net, &c.weight, LACI_ELEMENT_F32);
  if (dw_md && !net->plan.status) {
    const laci_layout *const md[] = {c.md_x, dw_md, c.md_y};
    pd = choose_gradient_primitive(net, &c, md, laci_primitive_describe_conv_weight_gradient,
                                   "gradient of a convolution's weights");
  }
  if (pd) {
    const laci_layout *x_md = laci_primitive_layout(pd, LACI_ARG_SRC);
    const laci_layout *dy_md = laci_primitive_layout(pd, LACI_ARG_DIFF_DST);
    int x = laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[0]), x_md, dt);
    int dy = laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[1]), dy_md, dt);
    int dw = laci_net_new_result(net, &c.weight, LACI_ELEMENT_F32,
                                 laci_primitive_layout(pd, LACI_ARG_DIFF_WEIGHTS));
    laci_net_step_add(
        net, fused, pd, 3,
        (const int[][2]){{LACI_ARG_SRC, x}, {LACI_ARG_DIFF_DST, dy}, {LACI_ARG_DIFF_WEIGHTS, dw}});
    laci_net_bind_reshaped(net, fused->output, dw);
  }
  laci_layout_destroy(dw_md);
  destroy_conv_layouts(&c);
}

const laci_implementation laci_implementations_conv_grad_input[] = {
    {"zeros left out, by our kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native,
     laci_lower_native},
    {"winograd of bf16", LACI_FUSIBLE_NOTHING, laci_can_lower_conv_winograd,
     laci_lower_conv_winograd},
    {"oneDNN's", LACI_FUSIBLE_NOTHING, can_lower_grad_input, lower_grad_input},
    {.name = NULL},
};
const laci_implementation laci_implementations_conv_grad_weight[] = {
    {"kept weights alone, by our kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native_gradient,
     laci_lower_native_gradient},
    {"bf16 pairs", LACI_FUSIBLE_NOTHING, laci_can_lower_conv_bf16_gradient,
     laci_lower_conv_bf16_gradient},
    {"oneDNN's", LACI_FUSIBLE_NOTHING, can_lower_grad_weight, lower_grad_weight},
    {.name = NULL},
};

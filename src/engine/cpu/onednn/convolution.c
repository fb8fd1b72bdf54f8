/* SPDX-License-Identifier: Apache-2.0
 * Convolutions with constant weights by oneDNN, and the choice whether values are in blocks of
 * channels.
 *
 * oneDNN chooses the layouts of a convolution's input, weights and output, unless the network's
 * values are in blocks of channels, which its Winograd kernels need
 * (laci_conv_choose_blocked_layout). The weights are multiplied by the fused scale and reordered
 * once. Next: convolution_window.c. */
#include "engine/cpu/onednn/convolution.h"
#include "cpu/cpu.h"
#include "graph/ops.h"
#include "kernel/pointwise/swish.h"
#include "engine/cpu/native/native.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

enum {
  BLOCK = LACI_NET_BLOCK,
  /* least channels of the input; with fewer, the transforms take more time than is saved */
  WINOGRAD_MIN_CHANNELS = 64,
  /* least channels of the output where its images have WINOGRAD_FEW_ROWS rows or more */
  WINOGRAD_FEW_CHANNELS = 32,
  WINOGRAD_FEW_ROWS = 14, /* with fewer rows the output needs WINOGRAD_MIN_CHANNELS channels, too */
  /* The whole network is in blocks if at least one in so many of its multiplications is in a layer
   * that gains by blocks. A depthwise convolution moves far more bytes for each multiplication, so
   * a smaller share is enough. */
  WINOGRAD_SHARE = 8,
  DEPTHWISE_SHARE = 32,
};

/* ---- Convolution ---- */

laci_net_weight laci_conv_weight(const laci_net *net, const laci_fused *fused,
                                 const laci_shape *shape) {
  laci_net_weight weight = {.value = net->plan.graph->nodes[fused->node].inputs[1],
                            .shape = *shape,
                            .scale = fused->scale,
                            .n_scale = fused->channels,
                            .run = laci_shape_count(shape) / fused->channels,
                            .factor = 1};
  int64_t stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    weight.strides[axis] = stride;
    stride *= shape->dims[axis];
  }
  return weight;
}

int laci_conv_bias(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const float *bias =
      laci_plan_has_input(node, 2) ? laci_plan_floats(&net->plan, node->inputs[2]) : NULL;
  if (!fused->scale) return bias ? laci_net_weight_from_floats(net, bias, fused->channels) : -1;
  float *sum = laci_alloc((size_t)fused->channels, sizeof *sum);
  if (!sum) laci_plan_fail_no_memory(&net->plan);
  for (int64_t c = 0; c < fused->channels && sum; c++) {
    sum[c] = (bias ? bias[c] * fused->scale[c] : 0) + fused->shift[c];
  }
  int tensor = sum ? laci_net_weight_from_floats(net, sum, fused->channels) : -1;
  laci_free(sum);
  return tensor;
}

/* ---- How a convolution is computed ---- */

typedef struct conv {
  const laci_shape *x, *y;
  laci_shape weight; /* grouped */
  int64_t groups;
  laci_window window;
  laci_element result;
  laci_layout *bias; /* NULL: none */
} conv;

static void read_conv(const laci_net *net, const laci_fused *fused, conv *c) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *stored = laci_plan_shape(&net->plan, node->inputs[1]);
  *c = (conv){.x = laci_plan_shape(&net->plan, node->inputs[0]),
              .y = laci_plan_shape(&net->plan, node->outputs[0]),
              .groups = laci_node_int(node, "group", 1),
              .result = laci_net_result_element(net, fused->output)};
  c->weight = laci_conv_grouped_shape(stored, c->groups);
  (void)laci_conv_read_window(node, c->x, c->y, stored->dims + 2, &c->window);
}

/** Makes a layout in blocks of 16 channels, or one that the primitive chooses if 16 does not divide
 * the channels. */
static laci_layout *make_blocks_or_any_layout(laci_net *net, const laci_shape *shape,
                                              laci_element dt) {
  laci_layout *md = laci_net_blocks_layout(net, shape, dt);
  return md ? md : laci_net_any_layout(net, shape, dt);
}

/** Describes a primitive for c, with input and output in blocks or in layouts that oneDNN chooses.
 * A status of refusal does not fail the plan. */
static lac_status try_to_describe_conv(laci_net *net, const conv *c, laci_conv_algorithm alg,
                                       bool blocks, const laci_posts *attr, laci_primitive **pd) {
  laci_element dt = laci_net_float_element(net);
  laci_layout *src =
      blocks ? make_blocks_or_any_layout(net, c->x, dt) : laci_net_any_layout(net, c->x, dt);
  laci_layout *dst = blocks ? make_blocks_or_any_layout(net, c->y, c->result)
                            : laci_net_any_layout(net, c->y, c->result);
  laci_layout *w = laci_net_any_layout(net, &c->weight, dt);
  lac_status st = LAC_NO_MEMORY;
  *pd = NULL;
  if (!net->plan.status) {
    st = laci_primitive_describe_conv(
        pd, net->onednn, alg, (const laci_layout *const[]){src, w, c->bias, dst}, &c->window, attr);
  }
  laci_layout_destroy(src);
  laci_layout_destroy(w);
  laci_layout_destroy(dst);
  return st;
}

/** Is Winograd's algorithm faster? With enough channels, the measured speedup is 1.1 (7x7 pixels)
 * to 3. */
static bool gains_by_winograd(const laci_net *net, const conv *c) {
  int64_t in = c->x->dims[1], out = c->y->dims[1];
  int64_t rows = c->y->dims[2], columns = c->y->dims[c->y->rank - 1];
  int64_t least = rows < columns ? rows : columns;
  return laci_conv_allows_winograd(net, c->x, c->y, c->groups, &c->window) &&
         in >= WINOGRAD_MIN_CHANNELS && out >= WINOGRAD_FEW_CHANNELS &&
         (out >= WINOGRAD_MIN_CHANNELS || least >= WINOGRAD_FEW_ROWS);
}

bool laci_conv_gains_by_winograd(const laci_net *net, const laci_fused *fused) {
  conv c;
  read_conv(net, fused, &c);
  return laci_cpu_has_avx512f() && gains_by_winograd(net, &c);
}

static laci_primitive *choose_conv(laci_net *net, const conv *c, const laci_posts *attr) {
  laci_primitive *pd = NULL;
  bool blocks = net->blocks && laci_conv_allows_blocks(c->x, c->y, c->groups);
  if (blocks && gains_by_winograd(net, c) &&
      try_to_describe_conv(net, c, LACI_CONV_WINOGRAD, true, attr, &pd) == LAC_OK) {
    return pd;
  }
  if (blocks && try_to_describe_conv(net, c, LACI_CONV_DIRECT, true, attr, &pd) == LAC_OK) {
    if (!laci_primitive_is_reference(pd)) return pd;
    laci_primitive_destroy(pd);
  }
  lac_status st = try_to_describe_conv(net, c, LACI_CONV_DIRECT, false, attr, &pd);
  return laci_net_check_status(net, st, "convolution") ? pd : NULL;
}

/** Multiplications of the direct algorithm: of all convolutions, of those that gain by Winograd's
 * algorithm, and of depthwise ones. */
typedef struct products {
  double all, winograd, depthwise;
  bool needs_copies; /* a depthwise convolution would need copies into blocks and back */
} products;

static void count_products(laci_net *net, const laci_fused *fused, products *p) {
  laci_primitive *pd = NULL;
  conv c;
  read_conv(net, fused, &c);
  int64_t channels = c.y->dims[1];
  double n = (double)laci_shape_count(c.y) * (double)(laci_shape_count(&c.weight) / channels);
  p->all += n;
  if (c.groups == c.x->dims[1] && c.groups == channels) {
    p->depthwise += n;
    p->needs_copies = p->needs_copies || channels % BLOCK != 0;
  }
  if (!gains_by_winograd(net, &c)) return;
  /* Without AVX-512, and in version 3, oneDNN has no Winograd kernel. */
  if (try_to_describe_conv(net, &c, LACI_CONV_WINOGRAD, true, NULL, &pd) != LAC_OK) return;
  laci_primitive_destroy(pd);
  p->winograd += n;
}

/** Does a convolution's weight change, as in training? Forward and backward primitives agree about
 * blocks, but not about layouts that each would choose. */
static bool has_conv_of_values(const laci_net *net) {
  for (int n = 0; n < net->plan.graph->n_nodes; n++) {
    const laci_node *node = &net->plan.graph->nodes[n];
    if (net->plan.computed[n] && node->op == &laci_op_conv &&
        !laci_plan_is_constant(&net->plan, node->inputs[1])) {
      return true;
    }
  }
  return false;
}

void laci_conv_choose_blocked_layout(laci_net *net) {
  products p = {0};
  if (!laci_cpu_has_avx512f()) return; /* narrower vectors need other blocks */
  net->blocks = has_conv_of_values(net);
  if (net->plan.bf16 || net->blocks) return;
  for (int n = 0; n < net->plan.graph->n_nodes && !net->plan.status; n++) {
    const laci_node *node = &net->plan.graph->nodes[n];
    const char *why;
    if (!net->plan.computed[n] || node->op != &laci_op_conv) continue;
    if (!laci_plan_has_elements(&net->plan, node)) continue;
    if (laci_native_has_layer(net, &net->plan.fused[n])) continue;
    if (laci_conv_constant_fits(net, &net->plan.fused[n], &why))
      count_products(net, &net->plan.fused[n], &p);
  }
  net->blocks = p.winograd * WINOGRAD_SHARE > p.all ||
                (p.depthwise * DEPTHWISE_SHARE > p.all && !p.needs_copies);
}

/** Adds the step of the convolution; returns the result's tensor. */
static int add_conv_step(laci_net *net, const laci_fused *fused, laci_primitive *pd,
                         const laci_shape *weight, int bias, int sum) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_element dt = laci_net_result_element(net, fused->output);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  const laci_layout *src = laci_primitive_layout(pd, LACI_ARG_SRC);
  const laci_layout *dst = laci_primitive_layout(pd, LACI_ARG_DST);
  int x = laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[0]), src,
                                  laci_net_float_element(net));
  const laci_net_weight dense = laci_conv_weight(net, fused, weight);
  int w = laci_net_weight_in_layout(net, &dense, laci_primitive_layout(pd, LACI_ARG_WEIGHTS));
  int to;
  if (sum >= 0) {
    to = laci_net_sum_target(net, laci_net_read_value(net, sum), dst, dt);
  } else {
    laci_layout *md = NULL;
    if (!laci_layout_create_copy(&md, dst)) laci_plan_fail_no_memory(&net->plan);
    int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, laci_layout_bytes(dst));
    to = laci_net_tensor_new(net, y, dt, md, buffer);
  }
  laci_net_step_add(
      net, fused, pd, bias >= 0 ? 4 : 3,
      (const int[][2]){
          {LACI_ARG_SRC, x}, {LACI_ARG_WEIGHTS, w}, {LACI_ARG_DST, to}, {LACI_ARG_BIAS, bias}});
  return to;
}

/* ---- Swish, by a kernel of ours (swish.h): oneDNN's takes twice its time ---- */

enum { SWISH_GRAIN = 16384 }; /* elements, for the threads */

typedef struct swish_work {
  laci_swish *swish;
  float *x;
} swish_work;

static void swish_range(int64_t begin, int64_t end, void *context) {
  const swish_work *w = context;
  w->swish(w->x + begin, end - begin);
}

/* Applies swish to all bytes of the result in any layout; padding of blocks is 0 and stays 0. */
static lac_status run_swish(laci_net *net, laci_net_step *step, lac_error *err) {
  size_t bytes = laci_layout_bytes(net->tensors[step->tensors[0]].md);
  swish_work w = {.swish = laci_swish_variant(), .x = laci_net_tensor_data(net, step->tensors[0])};
  (void)err;
  laci_pool_for(net->pool, (int64_t)(bytes / sizeof(float)), SWISH_GRAIN, swish_range, &w);
  return LAC_OK;
}

static void add_swish_step(laci_net *net, const laci_fused *fused, int tensor) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_net_step *step = laci_net_step_add_code(net, node, run_swish, 1, &tensor);
  if (!step) return;
  step->what = "swish in place";
  step->kernel = "swish";
  step->shown = tensor;
}

/** Removes a swish from the end of the fused node's posts, for the separate kernel; false: there is
 * none. */
static bool remove_last_swish(const laci_net *net, laci_fused *fused) {
  const laci_post *last = fused->n_posts > 0 ? &fused->posts[fused->n_posts - 1] : NULL;
  bool swish = last && last->value < 0 && last->function.kind == LACI_FUNCTION_SWISH;
  if (!swish || last->function.alpha != 1 || net->plan.bf16) return false;
  fused->n_posts--;
  return true;
}

void laci_lower_conv_dense(laci_net *net, const laci_fused *whole) {
  laci_fused fused = *whole;
  int sum, to = -1;
  conv c;
  read_conv(net, &fused, &c);
  bool swish = remove_last_swish(net, &fused);
  laci_shape channels = laci_shape_of(1, &fused.channels);
  int bias = laci_conv_bias(net, &fused);
  laci_posts *attr = laci_net_create_posts(net, &fused, &sum);
  c.bias = bias >= 0 ? laci_net_dense_layout(net, &channels, LACI_ELEMENT_F32) : NULL;
  laci_primitive *pd = net->plan.status ? NULL : choose_conv(net, &c, attr);
  if (pd) to = add_conv_step(net, &fused, pd, &c.weight, bias, sum);
  if (to >= 0 && swish) add_swish_step(net, &fused, to);
  laci_net_bind_value(net, fused.output, to);
  laci_layout_destroy(c.bias);
  laci_posts_destroy(attr);
}

/* SPDX-License-Identifier: Apache-2.0
 * Convolutions with constant weights by oneDNN, and the choice whether values are in blocks of
 * channels.
 *
 * oneDNN chooses the layouts of a convolution's input, weights and output, unless the network's
 * values are in blocks of channels, which its Winograd kernels need
 * (laci_conv_choose_blocked_layout). The weights are multiplied by the fused scale and reordered
 * once. Next: convolution_window.c. */
#include "engine/cpu/onednn/convolution.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "engine/cpu/lower/move.h"
#include "graph/ops.h"
#include "kernel/pointwise/swish.h"
#include "engine/cpu/native/native.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

enum {
  BLOCK = LACI_NET_BLOCK,
  /* minimum number of input channels for Winograd's algorithm: with fewer, its transforms take
   * longer than it saves */
  WINOGRAD_MIN_CHANNELS = 64,
  /* minimum number of output channels for Winograd's algorithm, if the output has WINOGRAD_FEW_ROWS
   * rows and columns */
  WINOGRAD_FEW_CHANNELS = 32,
  WINOGRAD_FEW_ROWS = 14, /* an output with fewer rows or columns needs WINOGRAD_MIN_CHANNELS
                             channels */
  /* The network's values are in blocks if Winograd's algorithm can compute more than
   * 1/WINOGRAD_SHARE of its multiplications. They are, too, if more than 1/DEPTHWISE_SHARE of them
   * are depthwise, since a depthwise convolution moves far more bytes for each multiplication.
   * The latter needs whole blocks of channels in every depthwise convolution. */
  WINOGRAD_SHARE = 8,
  DEPTHWISE_SHARE = 32,
};

/* ---- Weights and bias ---- */

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
      laci_plan_has_input(node, 2) ? laci_plan_constant_floats(&net->plan, node->inputs[2]) : NULL;
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

/** Exchanges height and width if the convolution is one pixel wide: that is quicker. */
static void exchange_axes_if_one_pixel_wide(laci_conv *c) {
  c->upright = laci_conv_is_one_pixel_wide(&c->x, &c->y, &c->window);
  if (!c->upright) return;
  laci_conv_exchange_shape_axes(&c->x);
  laci_conv_exchange_shape_axes(&c->y);
  laci_conv_exchange_shape_axes(&c->weight);
  laci_conv_exchange_window_axes(&c->window);
}

/** Describes the node's convolution, in the shapes of the graph. */
static void describe_node_conv(const laci_net *net, const laci_fused *fused, laci_conv *c) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *stored = laci_plan_shape(&net->plan, node->inputs[1]);
  *c = (laci_conv){.x = *laci_plan_shape(&net->plan, node->inputs[0]),
                   .y = *laci_plan_shape(&net->plan, node->outputs[0]),
                   .groups = laci_node_int(node, "group", 1),
                   .result = laci_net_result_element(net, fused->output)};
  c->weight = laci_conv_grouped_shape(stored, c->groups);
  (void)laci_conv_read_window(node, &c->x, &c->y, stored->dims + 2, &c->window);
}

/** Describes the node's convolution in the shapes in which it is computed. */
static void describe_conv_for_kernel(const laci_net *net, const laci_fused *fused, laci_conv *c) {
  describe_node_conv(net, fused, c);
  exchange_axes_if_one_pixel_wide(c);
}

/** Makes a layout in blocks of 16 channels, or one that the primitive chooses if 16 does not divide
 * the channels. */
static laci_layout *make_blocks_or_any_layout(laci_net *net, const laci_shape *shape,
                                              laci_element dt) {
  laci_layout *md = laci_net_blocks_layout(net, shape, dt);
  return md ? md : laci_net_any_layout(net, shape, dt);
}

/** Describes a primitive for c, with input and output in blocks or in layouts that oneDNN chooses.
 * If oneDNN refuses, its status is returned, and the plan does not fail. */
static lac_status try_to_describe_conv(laci_net *net, const laci_conv *c, laci_conv_algorithm alg,
                                       bool blocks, const laci_posts *attr, laci_primitive **pd) {
  laci_element dt = laci_net_float_element(net);
  laci_layout *src =
      blocks ? make_blocks_or_any_layout(net, &c->x, dt) : laci_net_any_layout(net, &c->x, dt);
  laci_layout *dst = blocks ? make_blocks_or_any_layout(net, &c->y, c->result)
                            : laci_net_any_layout(net, &c->y, c->result);
  laci_layout *w = laci_net_any_layout(net, &c->weight, dt), *bias = NULL;
  lac_status st = LAC_NO_MEMORY;
  *pd = NULL;
  if (c->has_bias)
    bias = laci_net_dense_layout(net, &(laci_shape){1, {c->y.dims[1]}}, LACI_ELEMENT_F32);
  if (!net->plan.status) {
    st = laci_primitive_describe_conv(
        pd, net->onednn, alg, (const laci_layout *const[]){src, w, bias, dst}, &c->window, attr);
  }
  laci_layout_destroy(bias);
  laci_layout_destroy(src);
  laci_layout_destroy(w);
  laci_layout_destroy(dst);
  return st;
}

/** Is Winograd's algorithm faster? With enough channels, the measured speedup is 1.1 (7x7 pixels)
 * to 3. */
static bool is_winograd_faster(const laci_net *net, const laci_conv *c) {
  int64_t in = c->x.dims[1], out = c->y.dims[1];
  int64_t rows = c->y.dims[2], columns = c->y.dims[c->y.rank - 1];
  int64_t least = rows < columns ? rows : columns;
  return laci_conv_can_use_winograd(net, &c->x, &c->y, c->groups, &c->window) &&
         in >= WINOGRAD_MIN_CHANNELS && out >= WINOGRAD_FEW_CHANNELS &&
         (out >= WINOGRAD_MIN_CHANNELS || least >= WINOGRAD_FEW_ROWS);
}

bool laci_conv_is_winograd_faster(const laci_net *net, const laci_fused *fused) {
  laci_conv c;
  describe_conv_for_kernel(net, fused, &c);
  return laci_cpu_has_avx512f() && is_winograd_faster(net, &c);
}

/** Is the kernel oneDNN's reference, or one that copies all windows into a matrix? */
static bool is_kernel_slow(const laci_primitive *pd) {
  return laci_primitive_is_reference(pd) || laci_primitive_copies_windows(pd);
}

/** Replaces *pd, a slow kernel, by a quick one, if there is one for a copy of x in which each row
 * includes its pads. oneDNN's quick kernels support no pads wider than the few pixels that they
 * compute at a time. c then describes this copy. */
static void replace_wide_pads(laci_net *net, laci_conv *c, const laci_posts *attr,
                              laci_primitive **pd) {
  const int last = c->window.n_spatial - 1;
  laci_primitive *other = NULL;
  laci_conv wide = *c;
  int64_t before = c->window.pads_begin[last], after = c->window.pads_end[last];
  if (before <= 0 || after < 0 || c->widened || !is_kernel_slow(*pd)) return;
  wide.x.dims[wide.x.rank - 1] += before + after;
  wide.window.pads_begin[last] = wide.window.pads_end[last] = 0;
  wide.margin = before;
  wide.widened = true;
  const lac_status st = try_to_describe_conv(net, &wide, LACI_CONV_DIRECT, false, attr, &other);
  if (st == LAC_NO_MEMORY) laci_plan_fail_no_memory(&net->plan);
  if (st) return;
  bool quick = !is_kernel_slow(other);
  laci_primitive_destroy(quick ? *pd : other);
  if (!quick) return;
  *pd = other;
  *c = wide;
}

static laci_primitive *choose_conv_primitive(laci_net *net, laci_conv *c, const laci_posts *attr) {
  laci_primitive *pd = NULL;
  bool blocks = net->blocks && laci_conv_can_use_blocks(&c->x, &c->y, c->groups);
  if (blocks && is_winograd_faster(net, c) &&
      try_to_describe_conv(net, c, LACI_CONV_WINOGRAD, true, attr, &pd) == LAC_OK) {
    return pd;
  }
  if (blocks && try_to_describe_conv(net, c, LACI_CONV_DIRECT, true, attr, &pd) == LAC_OK) {
    if (!laci_primitive_is_reference(pd)) return pd;
    laci_primitive_destroy(pd);
  }
  lac_status st = try_to_describe_conv(net, c, LACI_CONV_DIRECT, false, attr, &pd);
  if (!laci_net_check_status(net, st, "convolution")) return NULL;
  replace_wide_pads(net, c, attr, &pd);
  return pd;
}

/** Numbers of multiplications by the direct algorithm: of all convolutions, of those that
 * Winograd's algorithm makes faster, and of depthwise ones. */
typedef struct products {
  double all, winograd, depthwise;
  bool needs_copies; /* a depthwise convolution would need copies into blocks and back */
} products;

static void add_products_of_convolution(laci_net *net, const laci_fused *fused, products *p) {
  laci_primitive *pd = NULL;
  laci_conv c;
  describe_conv_for_kernel(net, fused, &c);
  int64_t channels = c.y.dims[1];
  double n = (double)laci_shape_count(&c.y) * (double)(laci_shape_count(&c.weight) / channels);
  p->all += n;
  if (c.groups == c.x.dims[1] && c.groups == channels) {
    p->depthwise += n;
    p->needs_copies = p->needs_copies || channels % BLOCK != 0;
  }
  if (!is_winograd_faster(net, &c)) return;
  /* Without AVX-512, and in version 3, oneDNN has no Winograd kernel. */
  if (try_to_describe_conv(net, &c, LACI_CONV_WINOGRAD, true, NULL, &pd) != LAC_OK) return;
  laci_primitive_destroy(pd);
  p->winograd += n;
}

/** Does a convolution's weight change, as in training? Forward and backward primitives agree about
 * blocks, but not about layouts that each would choose. */
static bool has_changing_conv_weights(const laci_net *net) {
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
  net->blocks = has_changing_conv_weights(net);
  if (net->plan.bf16 || net->blocks) return;
  for (int n = 0; n < net->plan.graph->n_nodes && !net->plan.status; n++) {
    const laci_node *node = &net->plan.graph->nodes[n];
    const char *why;
    if (!net->plan.computed[n] || node->op != &laci_op_conv) continue;
    if (!laci_plan_has_elements(&net->plan, node)) continue;
    if (laci_native_is_chosen_layer(net, &net->plan.fused[n])) continue;
    if (laci_can_lower_conv_constant(net, &net->plan.fused[n], &why))
      add_products_of_convolution(net, &net->plan.fused[n], &p);
  }
  net->blocks = p.winograd * WINOGRAD_SHARE > p.all ||
                (p.depthwise * DEPTHWISE_SHARE > p.all && !p.needs_copies);
}

/** Returns a copy of x in layout md, with c->margin zeros before each row, and zeros after it. */
static int add_steps_that_pad_rows(laci_net *net, const laci_conv *c, int x,
                                   const laci_layout *md) {
  int64_t offsets[LACI_MAX_RANK] = {0};
  laci_primitive *pd = NULL;
  laci_layout *part = NULL;
  if (net->plan.status || x < 0) return -1;
  const laci_shape shape = net->tensors[x].shape;
  const int to = laci_net_new_result(net, &c->x, laci_net_float_element(net), md);
  offsets[shape.rank - 1] = c->margin;
  laci_move_add_clear_step(net, to);
  if (net->plan.status) return -1;
  if (!laci_layout_create_part(&part, md, shape.rank, shape.dims, offsets)) {
    laci_plan_fail_no_memory(&net->plan); /* every layout can describe a part of a row, so only
                                             memory can be missing */
  }
  const int inside = laci_net_view_new(net, to, &shape, part, true);
  if (net->plan.status) return -1;
  lac_status st = laci_primitive_describe_reorder(&pd, net->onednn, net->tensors[x].md,
                                                  net->tensors[inside].md);
  if (!laci_net_check_status(net, st, "padding")) return -1;
  laci_net_step_add(net, NULL, pd, 2, (const int[][2]){{LACI_ARG_SRC, x}, {LACI_ARG_DST, inside}});
  return to;
}

/** Returns the weights in the layout `wanted`. Row-major weights have the same bytes if height and
 * width are exchanged. */
static int read_weights_in_layout(laci_net *net, const laci_conv *c,
                                  const laci_conv_operands *operands, const laci_layout *wanted) {
  if (!operands->constant) {
    laci_layout *md = laci_net_dense_layout(net, &c->weight, LACI_ELEMENT_F32);
    const int dense = laci_net_view_new(net, operands->weights, &c->weight, md, false);
    return laci_net_convert_tensor(net, dense, wanted, laci_net_float_element(net));
  }
  laci_net_weight constant = *operands->constant;
  constant.shape = c->weight;
  return laci_net_weight_in_layout(net, &constant, wanted);
}

/** Adds the step of the convolution; returns the result's tensor. */
static int add_conv_step(laci_net *net, const laci_fused *fused, laci_primitive *pd,
                         const laci_conv *c, const laci_conv_operands *operands, int sum) {
  const laci_layout *src = laci_primitive_layout(pd, LACI_ARG_SRC);
  const laci_layout *dst = laci_primitive_layout(pd, LACI_ARG_DST);
  const laci_layout *weights = laci_primitive_layout(pd, LACI_ARG_WEIGHTS);
  const laci_element dt = laci_net_float_element(net);
  int x = c->upright ? laci_conv_exchange_tensor_axes(net, operands->x) : operands->x, to;
  x = c->widened ? add_steps_that_pad_rows(net, c, x, src)
                 : laci_net_convert_tensor(net, x, src, dt);
  const int w = read_weights_in_layout(net, c, operands, weights);
  if (sum >= 0) {
    int have = laci_net_read_value(net, sum);
    if (c->upright) have = laci_conv_exchange_tensor_axes(net, have);
    to = laci_net_make_sum_target(net, have, dst, c->result);
  } else {
    to = laci_net_new_result(net, &c->y, c->result, dst);
  }
  laci_net_step_add(net, fused, pd, operands->bias >= 0 ? 4 : 3,
                    (const int[][2]){{LACI_ARG_SRC, x},
                                     {LACI_ARG_WEIGHTS, w},
                                     {LACI_ARG_DST, to},
                                     {LACI_ARG_BIAS, operands->bias}});
  return c->upright ? laci_conv_exchange_tensor_axes(net, to) : to;
}

/* ---- Swish, by a kernel of ours (swish.h): oneDNN's takes twice its time ---- */

enum { SWISH_GRAIN = 16384 }; /* number of elements that a thread computes at a time */

typedef struct swish_work {
  laci_swish *swish;
  float *x;
} swish_work;

static void apply_swish_range(int64_t begin, int64_t end, void *context) {
  const swish_work *w = context;
  w->swish(w->x + begin, end - begin);
}

/* Applies swish to all bytes of the result in any layout; padding of blocks is 0 and stays 0. */
static lac_status run_swish(laci_net *net, laci_net_step *step, lac_error *err) {
  size_t bytes = laci_layout_bytes(net->tensors[step->tensors[0]].md);
  swish_work w = {.swish = laci_swish_variant(), .x = laci_net_tensor_data(net, step->tensors[0])};
  (void)err;
  laci_pool_for(net->pool, (int64_t)(bytes / sizeof(float)), SWISH_GRAIN, apply_swish_range, &w);
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

/* ---- Posts of which oneDNN has no quick kernel ---- */

/** Is the post a swish that our kernel computes? */
static bool can_compute_swish_post(const laci_net *net, const laci_post *post) {
  return post->value < 0 && post->function.kind == LACI_FUNCTION_SWISH &&
         post->function.alpha == 1 && !net->plan.bf16;
}

/** Adds a step that adds the value to the tensor, in place. */
static void add_sum_step(laci_net *net, const laci_fused *fused, int value, int tensor) {
  laci_primitive *pd = NULL;
  int other = laci_net_read_value(net, value);
  if (net->plan.status || tensor < 0) return;
  const laci_layout *md = net->tensors[tensor].md;
  other = laci_net_convert_tensor(net, other, md, net->tensors[tensor].dt);
  lac_status st = laci_primitive_describe_binary(&pd, net->onednn, LACI_BINARY_ADD,
                                                 (const laci_layout *const[]){md, md, md}, NULL);
  if (!laci_net_check_status(net, st, "sum after a convolution")) return;
  laci_net_step_add(
      net, fused, pd, 3,
      (const int[][2]){{LACI_ARG_SRC, tensor}, {LACI_ARG_SRC_1, other}, {LACI_ARG_DST, tensor}});
}

/** Adds a step that computes the function of the tensor, in place. */
static void add_function_step(laci_net *net, const laci_fused *fused, const laci_function *function,
                              int tensor) {
  laci_primitive *pd = NULL;
  if (net->plan.status || tensor < 0) return;
  lac_status st =
      laci_primitive_describe_function(&pd, net->onednn, function, net->tensors[tensor].md);
  if (!laci_net_check_status(net, st, "function after a convolution")) return;
  laci_net_step_add(net, fused, pd, 2,
                    (const int[][2]){{LACI_ARG_SRC, tensor}, {LACI_ARG_DST, tensor}});
}

/** Adds a step for each post from number `first` on. */
static void add_post_steps(laci_net *net, const laci_fused *fused, int first, int tensor) {
  for (int at = first; at < fused->n_posts && tensor >= 0; at++) {
    const laci_post *post = &fused->posts[at];
    if (post->value >= 0) add_sum_step(net, fused, post->value, tensor);
    else if (can_compute_swish_post(net, post)) add_swish_step(net, fused, tensor);
    else add_function_step(net, fused, &post->function, tensor);
  }
}

/** Chooses a primitive with as many of the first posts as its kernel computes quickly, and sets
 * fused->n_posts to their number. oneDNN's kernels for AVX2 add no value after a function; its
 * reference does, but takes a hundred times as long. A swish at the end is left to our kernel. */
static laci_primitive *choose_conv_primitive_and_posts(laci_net *net, laci_conv *c,
                                                       laci_fused *fused, int *sum) {
  for (;; fused->n_posts--) {
    if (fused->n_posts > 0 && can_compute_swish_post(net, &fused->posts[fused->n_posts - 1])) {
      fused->n_posts--;
    }
    laci_posts *attr = laci_net_create_posts(net, fused, sum);
    laci_primitive *pd = net->plan.status ? NULL : choose_conv_primitive(net, c, attr);
    laci_posts_destroy(attr);
    if (!pd || fused->n_posts == 0 || !laci_primitive_is_reference(pd)) return pd;
    laci_primitive_destroy(pd);
  }
}

int laci_conv_add_steps(laci_net *net, const laci_fused *whole, const laci_conv *conv,
                        const laci_conv_operands *operands) {
  laci_fused fused = *whole;
  laci_conv c = *conv;
  int sum, to = -1;
  c.has_bias = operands->bias >= 0;
  exchange_axes_if_one_pixel_wide(&c);
  laci_primitive *pd = choose_conv_primitive_and_posts(net, &c, &fused, &sum);
  if (pd) to = add_conv_step(net, &fused, pd, &c, operands, sum);
  add_post_steps(net, whole, fused.n_posts, to);
  return to;
}

void laci_lower_conv_dense(laci_net *net, const laci_fused *fused) {
  laci_conv c;
  describe_node_conv(net, fused, &c);
  const int bias = laci_conv_bias(net, fused);
  const int x = laci_net_read_value(net, net->plan.graph->nodes[fused->node].inputs[0]);
  const laci_net_weight weight = laci_conv_weight(net, fused, &c.weight);
  const laci_conv_operands operands = {.x = x, .constant = &weight, .weights = -1, .bias = bias};
  laci_net_bind_value(net, fused->output, laci_conv_add_steps(net, fused, &c, &operands));
}

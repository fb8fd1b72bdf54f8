/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of bf16 in training by kernel/convolution/winograd.h, forward and the gradient of
 * the input: 3x3 windows of stride 1, where there are enough channels to make up for the
 * transforms.
 *
 * Weights change in every step, so that each run transforms them anew from their row-major f32. The
 * images are cut into bands, which threads share. Results do not depend on the number of threads.
 * Read next: kernel/convolution/winograd.h. */
#include "engine/cpu/onednn/convolution.h"
#include "base/min.h"
#include "graph/ops.h"
#include "kernel/convolution/winograd.h"
#include "engine/cpu/native/native.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

enum {
  BLOCK = LACI_WINOGRAD_BLOCK,
  WINDOW = LACI_WINOGRAD_WINDOW,
  LEAST_BLOCKS = 2, /* minimum number of channel blocks: with fewer, oneDNN's direct kernels are as
                       fast */
};

typedef struct winograd_step {
  laci_winograd g;
  laci_winograd_kernel kernel;
  bool gradient;
  int64_t n, rows, images;    /* number of images in the batch (n), and of rows and images in a
                                 band */
  int64_t row_bands, n_bands; /* number of bands that cover an image's rows, and of all bands */
  int64_t shares;             /* number of threads that work, each with its own scratch */
  int x, weight, y, transformed, scratch;
  size_t scratch_bytes;
} winograd_step;

typedef struct winograd_work {
  const winograd_step *s;
  const uint16_t *x;
  const float *weight;
  uint16_t *transformed, *y;
  char *scratch;
} winograd_work;

static void transform_weight_blocks(int64_t begin, int64_t end, void *context) {
  const winograd_work *w = context;
  w->s->kernel.transform(&w->s->g, w->weight, w->s->gradient, (int64_t[]){begin, end},
                         w->transformed);
}

static void convolve_thread_bands(int64_t begin, int64_t end, void *context) {
  const winograd_work *w = context;
  const winograd_step *s = w->s;
  for (int64_t share = begin; share < end; share++) {
    void *scratch = w->scratch + (size_t)share * s->scratch_bytes;
    int64_t last = (share + 1) * s->n_bands / s->shares;
    for (int64_t i = share * s->n_bands / s->shares; i < last; i++) {
      int64_t n = i / s->row_bands * s->images, row = i % s->row_bands * s->rows;
      const laci_winograd_band band = {.n_first = n,
                                       .n_last = laci_min(n + s->images, s->n),
                                       .row_first = row,
                                       .row_last = laci_min(row + s->rows, s->g.out_h)};
      s->kernel.convolve(&s->g, &band, w->x, w->transformed, w->y, scratch);
    }
  }
}

static lac_status run_winograd(laci_net *net, laci_net_step *step, lac_error *err) {
  const winograd_step *s = step->context;
  winograd_work w = {.s = s,
                     .x = laci_net_tensor_data(net, s->x),
                     .weight = laci_net_tensor_data(net, s->weight),
                     .transformed = laci_net_tensor_data(net, s->transformed),
                     .y = laci_net_tensor_data(net, s->y),
                     .scratch = laci_net_tensor_data(net, s->scratch)};
  (void)err;
  laci_pool_for(net->pool, s->g.k_blocks, 1, transform_weight_blocks, &w);
  laci_pool_for(net->pool, s->shares, 1, convolve_thread_bands, &w);
  return LAC_OK;
}

/* ---- Building ---- */

/** Describes the convolution x -> y that is computed. For a gradient, x is the gradient of the
 * results. */
static bool describe_convolution(const laci_net *net, const laci_shape *x, const laci_shape *y,
                                 const laci_window *window, bool gradient, laci_winograd *g) {
  const int64_t *pads = window->pads_begin;
  if (!net->plan.bf16 || !net->blocks || x->rank != 4) return false;
  if (x->dims[1] % BLOCK || y->dims[1] % BLOCK) return false;
  for (int axis = 0; axis < 2; axis++) {
    bool fits = window->kernel[axis] == WINDOW && window->strides[axis] == 1 &&
                window->dilates[axis] == 0 && pads[axis] < WINDOW;
    if (!fits) return false;
  }
  *g = (laci_winograd){.c_blocks = x->dims[1] / BLOCK,
                       .k_blocks = y->dims[1] / BLOCK,
                       .h = x->dims[2],
                       .w = x->dims[3],
                       .out_h = y->dims[2],
                       .out_w = y->dims[3],
                       .pad_top = gradient ? WINDOW - 1 - pads[0] : pads[0],
                       .pad_left = gradient ? WINDOW - 1 - pads[1] : pads[1]};
  return g->c_blocks >= LEAST_BLOCKS && g->k_blocks >= LEAST_BLOCKS;
}

static bool divide_images_into_bands(winograd_step *s, int n_threads) {
  if (laci_winograd_scratch_bytes(&s->g, 1, 1) == 0) return false; /* too large for bands */
  laci_winograd_choose_band(&s->g, &s->rows, &s->images);
  s->images = laci_min(s->images, (s->n + n_threads - 1) / n_threads);
  s->row_bands = (s->g.out_h + s->rows - 1) / s->rows;
  s->n_bands = (s->n + s->images - 1) / s->images * s->row_bands;
  s->shares = laci_min(n_threads, s->n_bands);
  s->scratch_bytes = (laci_winograd_scratch_bytes(&s->g, s->rows, s->images) + 63) / 64 * 64;
  return s->scratch_bytes > 0;
}

/** Reads the window of the forward convolution, whose input and output are the gradient's output
 * and input. */
static bool read_forward_window(const laci_net *net, const laci_fused *fused, laci_window *window) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *in = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *weight = laci_plan_shape(&net->plan, node->inputs[1]);
  const laci_shape *out = laci_plan_shape(&net->plan, fused->output);
  bool gradient = node->op == &laci_op_conv_grad_input;
  return weight->rank == in->rank && in->rank == 4 &&
         laci_conv_read_window(node, gradient ? out : in, gradient ? in : out, weight->dims + 2,
                               window);
}

static bool plan_winograd_step(const laci_net *net, const laci_fused *fused, winograd_step *s) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  laci_window window;
  *s = (winograd_step){.kernel = laci_winograd_variant(),
                       .gradient = node->op == &laci_op_conv_grad_input,
                       .n = x->dims[0]};
  return s->kernel.convolve && laci_node_int(node, "group", 1) == 1 &&
         read_forward_window(net, fused, &window) &&
         describe_convolution(net, x, laci_plan_shape(&net->plan, fused->output), &window,
                              s->gradient, &s->g) &&
         divide_images_into_bands(s, net->n_threads);
}

bool laci_can_lower_conv_winograd(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  winograd_step s;
  *why = "no 3x3 window of bf16 in blocks, or a bias";
  bool biased = node->op == &laci_op_conv && laci_plan_has_input(node, 2);
  return !biased && plan_winograd_step(net, fused, &s);
}

void laci_lower_conv_winograd(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  winograd_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || !plan_winograd_step(net, fused, s)) return;
  s->x = laci_net_read_in_blocks(net, node->inputs[0]);
  s->weight =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[1]), LACI_ELEMENT_F32);
  laci_layout *md = laci_net_blocks_layout(net, y, LACI_ELEMENT_BF16);
  s->y = md ? laci_net_new_result(net, y, LACI_ELEMENT_BF16, md) : -1;
  laci_layout_destroy(md);
  s->transformed =
      laci_net_scratch_new(net, (size_t)laci_winograd_n_weights(&s->g) * sizeof(uint16_t));
  s->scratch = laci_net_scratch_new(net, s->scratch_bytes * (size_t)s->shares);
  laci_net_step *step = laci_net_step_add_code(
      net, node, run_winograd, 5, (int[]){s->x, s->weight, s->y, s->transformed, s->scratch});
  if (!step) return;
  step->kernel = "winograd along rows, bf16";
  step->context = s;
  step->shown = s->y;
  laci_net_step_mark_scratch(step, 3);
  laci_net_step_mark_scratch(step, 4);
  step->flops = 2 * laci_shape_count(y) * x->dims[1] * WINDOW * WINDOW;
  laci_net_bind_value(net, fused->output, s->y);
}

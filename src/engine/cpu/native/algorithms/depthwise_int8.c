/* SPDX-License-Identifier: Apache-2.0
 * A depthwise convolution of int8 between native layers, as a step (kernel/sparse/
 * depthwise_int8x4.h). Networks for small devices have it between two products, so that values stay
 * bytes from layer to layer. */
#include "base/divide.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "kernel/sparse/depthwise_int8x4.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"

typedef struct work {
  const laci_depthwise_int8x4 *kernel;
  laci_sparse_operands o;
} work;

static void convolve_item_range(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  laci_depthwise_int8x4_variant()(w->kernel, &w->o, begin, end);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  enum { PARTS = 8 }; /* number of parts of the work for each thread */
  work w = {step->state, laci_native_layer_step_operands(net, step)};
  const int64_t n = laci_depthwise_int8x4_n_items(w.kernel);
  laci_native_fill_result_border(net, step, w.o.y);
  laci_pool_for(net->pool, n, laci_ceil_div(n, (int64_t)net->n_threads * PARTS),
                convolve_item_range, &w);
}

/** Returns the weights as the kernel reads them, in the plan's memory. NULL after a failure, which
 * is recorded in the plan. */
static const int8_t *pack_weights(laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const size_t n = (size_t)(g->channels_out * laci_sparse_weights_per_row(g));
  const size_t bytes = (size_t)laci_depthwise_int8x4_weight_bytes(g);
  const float *dense = laci_native_read_dense_weights(net, layer);
  float *whole = dense ? laci_alloc(n, sizeof *whole) : NULL;
  int8_t *packed = whole ? laci_plan_alloc(&net->plan, bytes, 1) : NULL;
  if (dense && !whole) laci_plan_fail_no_memory(&net->plan);
  for (size_t at = 0; packed && at < n; at++) whole[at] = dense[at];
  if (packed && laci_native_quantize_dense_weights(net, layer, whole)) {
    laci_depthwise_int8x4_pack(g, whole, packed);
    net->plan.weight_bytes += bytes;
  }
  laci_free(whole);
  return packed;
}

static void prepare_depthwise_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_layer *layer = step->layer;
  const laci_sparse_layout in = laci_native_input_layout(net, layer);
  laci_depthwise_int8x4 *kernel = laci_plan_alloc(&net->plan, 1, sizeof *kernel);
  if (!kernel) return;
  *kernel =
      (laci_depthwise_int8x4){.window = layer->window,
                              .in = in,
                              .out = laci_native_output_layout(net, layer),
                              .n_image_blocks = laci_native_image_blocks(&in, layer->n_images),
                              .weight = pack_weights(net, layer)};
  step->state = kernel;
  step->kernel = laci_native_compiled_kernel_name(net, "int8 depthwise", &layer->window);
  step->flops = laci_native_flops(net, layer);
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "it is no depthwise convolution of int8";
  return layer->kind == LACI_NATIVE_DEPTHWISE && layer->int8;
}

/** Estimates the time from the share of the peak rate that the kernel reaches. If the table of
 * costs lacks this share, a usual one is taken: on a Xeon with VNNI it was 0.3 to 0.6 for large
 * images, and 0.2 for small ones. */
static double estimate_layer_cost(const laci_net *net, const laci_native_layer *layer) {
  const double usual_share = 0.4;
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  const bool images = laci_native_has_image_lanes(layer->n_images);
  const double known = images ? c->depthwise_images : c->depthwise;
  return laci_cost_n_results(layer) * laci_cost_n_terms(&layer->window) /
         (known > 0 ? known : usual_share);
}

const laci_algorithm laci_algorithm_depthwise_int8 = {.name = "depthwise_int8",
                                                      .timed_as = "sparse",
                                                      .kind = LACI_NATIVE_DEPTHWISE,
                                                      .can = can_compute_layer,
                                                      .cost = estimate_layer_cost,
                                                      .make = prepare_depthwise_step,
                                                      .run = run_layer};

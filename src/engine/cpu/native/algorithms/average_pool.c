/* SPDX-License-Identifier: Apache-2.0
 * An AveragePool or GlobalAveragePool of int8 between native layers (kernel/sparse/average_pool.h),
 * whose result has a scale of its own. */
#include "cpu/pool.h"
#include "kernel/sparse/average_pool.h"
#include "kernel/sparse/bytes.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"

typedef struct pool_work {
  const laci_average_pool *pool;
  const float *x;
  float *y;
} pool_work;

static void pool_item_range(int64_t begin, int64_t end, void *context) {
  const pool_work *w = context;
  laci_average_pool_variant()(w->pool, w->x, w->y, begin, end);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  pool_work w = {step->state, laci_net_tensor_data(net, step->tensors.x),
                 laci_net_tensor_data(net, step->tensors.y)};
  const int64_t n_items = laci_average_pool_n_items(w.pool);
  const int64_t grain =
      laci_native_items_per_task(n_items, w.pool->n_image_blocks * w.pool->in.n_floats);
  laci_native_fill_result_border(net, step, w.y);
  laci_pool_for(net->pool, n_items, grain, pool_item_range, &w);
}

static void prepare_pool_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_layer *layer = step->layer;
  const laci_native_int8_data *int8 = layer->int8;
  const laci_sparse_layout in = laci_native_input_layout(net, layer);
  laci_average_pool *pool = laci_plan_alloc(&net->plan, 1, sizeof *pool);
  if (!pool) return;
  *pool = (laci_average_pool){.window = layer->window,
                              .in = in,
                              .out = step->out,
                              .n_image_blocks = laci_native_image_blocks(&in, layer->n_images),
                              .counts_padding = int8->counts_padding,
                              .scale = int8->x->scale / int8->y->scale,
                              .x_zero = laci_bytes_zero_point(int8->x),
                              .zero = int8->quantized.zero,
                              .low = int8->quantized.low,
                              .high = int8->quantized.high};
  step->state = pool;
  step->kernel = "int8 average";
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "it is no average pool of int8";
  return layer->kind == LACI_NATIVE_POOL && layer->int8 && layer->int8->averages;
}

/** Estimates the time: a result costs as much as one of an int8 sum, and each pixel of its window a
 * quarter of that. */
static double estimate_layer_cost(const laci_net *net, const laci_native_layer *layer) {
  const double each = 0.25;
  const laci_sparse_window *g = &layer->window;
  const double light = laci_cost_figures_of(net, layer)->light;
  return laci_cost_n_results(layer) * light * (1 + each * (double)(g->kernel_h * g->kernel_w));
}

const laci_algorithm laci_algorithm_average_pool = {.name = "average_pool",
                                                    .timed_as = "sparse",
                                                    .kind = LACI_NATIVE_POOL,
                                                    .can = can_compute_layer,
                                                    .cost = estimate_layer_cost,
                                                    .make = prepare_pool_step,
                                                    .run = run_layer};

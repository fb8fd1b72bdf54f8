/* SPDX-License-Identifier: Apache-2.0
 * A MaxPool between native layers, of floats or of int8. The result of int8 has the scale and zero
 * point of the input. */
#include "kernel/sparse/max_pool.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"

typedef struct pool_work {
  const laci_max_pool *pool;
  const float *x;
  float *y;
} pool_work;

static void pool_item_range(int64_t begin, int64_t end, void *context) {
  const pool_work *w = context;
  laci_max_pool_variant()(w->pool, w->x, w->y, begin, end);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  pool_work w = {step->state, laci_net_tensor_data(net, step->tensors.x),
                 laci_net_tensor_data(net, step->tensors.y)};
  laci_native_fill_result_border(net, step, w.y);
  laci_pool_for(net->pool, laci_max_pool_n_items(w.pool), 1, pool_item_range, &w);
}

static void prepare_pool_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_layer *layer = step->layer;
  const laci_sparse_layout in = laci_native_input_layout(net, layer);
  laci_max_pool *pool = laci_plan_alloc(&net->plan, 1, sizeof *pool);
  if (!pool) return;
  *pool =
      (laci_max_pool){layer->window, in, step->out, laci_native_image_blocks(&in, layer->n_images)};
  step->state = pool;
  step->kernel = layer->int8 ? "int8 pool" : "native pool";
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  const bool averages = layer->int8 && layer->int8->averages;
  *why = "it is no MaxPool";
  return layer->kind == LACI_NATIVE_POOL && !layer->is_dense && !averages;
}

const laci_algorithm laci_algorithm_pool = {.name = "pool",
                                            .timed_as = "sparse",
                                            .kind = LACI_NATIVE_POOL,
                                            .can = can_compute_layer,
                                            .cost = laci_cost_of_memory_bound,
                                            .make = prepare_pool_step,
                                            .run = run_layer};

/* SPDX-License-Identifier: Apache-2.0
 * The sum of two int8 values between int8 layers, followed by a Relu or Clip or nothing: the end of
 * a residual block of a quantized network. Both operands and the result have the same layout. */
#include "kernel/sparse/bytes.h"
#include "engine/cpu/native/layer.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"

typedef struct sum_work {
  const laci_bytes_sum *sum;
  const float *a, *b; /* the operands; each float is four int8 elements */
  float *y;
} sum_work;

enum { GRAIN = 1 << 14 }; /* number of groups of four bytes that a thread adds at a time */

static void add_int8_element_range(int64_t begin, int64_t end, void *context) {
  const sum_work *w = context;
  laci_bytes_variant()->add(w->sum, w->a + begin, w->b + begin, end - begin, w->y + begin);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  const laci_native_tensors *t = &step->tensors;
  const size_t bytes = net->buffers[net->tensors[t->y].buffer].bytes;
  sum_work w = {.sum = step->state,
                .a = laci_net_tensor_data(net, t->x),
                .b = laci_net_tensor_data(net, t->residual),
                .y = laci_net_tensor_data(net, t->y)};
  laci_pool_for(net->pool, (int64_t)(bytes / sizeof(float)), GRAIN, add_int8_element_range, &w);
}

static void prepare_sum_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_int8_data *int8 = step->layer->int8;
  laci_bytes_sum *sum = laci_plan_alloc(&net->plan, 1, sizeof *sum);
  if (!sum) return;
  *sum = (laci_bytes_sum){.a_scale = int8->x->scale / int8->y->scale,
                          .b_scale = int8->residual->scale / int8->y->scale,
                          .a_zero = -int8->x->low,
                          .b_zero = -int8->residual->low,
                          .zero = -int8->y->low,
                          .low = int8->quantized.low,
                          .high = int8->quantized.high};
  step->state = sum;
  step->kernel = "int8 sum";
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "it is no sum of int8";
  return layer->kind == LACI_NATIVE_SUM && !layer->is_dense;
}

const laci_algorithm laci_algorithm_sum = {.name = "sum",
                                           .timed_as = "sparse",
                                           .kind = LACI_NATIVE_SUM,
                                           .can = can_compute_layer,
                                           .cost = laci_cost_of_memory_bound,
                                           .make = prepare_sum_step,
                                           .run = run_layer};

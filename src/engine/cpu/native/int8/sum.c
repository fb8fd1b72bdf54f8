/* SPDX-License-Identifier: Apache-2.0
 * The sum of two int8 values between int8 layers, followed by a Relu or Clip or nothing: the end of
 * a residual block of a quantized network. Both operands and the result have the same layout. */
#include "kernel/sparse/bytes.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"

typedef struct sum_step {
  laci_bytes_sum sum;
  int64_t n;
} sum_step;

typedef struct sum_work {
  const sum_step *s;
  const float *a, *b; /* places */
  float *y;
} sum_work;

enum { GRAIN = 1 << 14 }; /* places */

static void add_some(int64_t begin, int64_t end, void *context) {
  const sum_work *w = context;
  laci_bytes_now()->add(&w->s->sum, w->a + begin, w->b + begin, end - begin, w->y + begin);
}

static lac_status run_sum(laci_net *net, laci_net_step *step, lac_error *err) {
  const sum_step *s = step->context;
  sum_work w = {.s = s,
                .a = laci_net_data(net, step->tensors[0]),
                .b = laci_net_data(net, step->tensors[1]),
                .y = laci_net_data(net, step->tensors[2])};
  (void)err;
  laci_pool_for(net->pool, s->n, GRAIN, add_some, &w);
  return LAC_OK;
}

static void make(laci_net *net, const laci_native_layer *layer) {
  const laci_native_bytes *bytes = layer->bytes;
  const laci_native_tensors t = laci_native_take_tensors(net, layer);
  sum_step *s = laci_plan_new(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_code(net, &net->plan.graph->nodes[layer->fused->node],
                                           run_sum, 3, (int[]){t.x, t.residual, t.y});
  if (!s || !step || t.y < 0) return;
  *s = (sum_step){{.a_scale = bytes->x->scale / bytes->y->scale,
                   .b_scale = bytes->residual->scale / bytes->y->scale,
                   .a_zero = -bytes->x->low,
                   .b_zero = -bytes->residual->low,
                   .zero = -bytes->y->low,
                   .low = bytes->quantized.low,
                   .high = bytes->quantized.high},
                  (int64_t)(net->buffers[net->tensors[t.y].buffer].bytes / sizeof(float))};
  step->what = laci_net_describe(net, layer->fused);
  step->kernel = "int8 sum";
  step->context = s;
  step->shown = t.y;
  laci_net_bind(net, layer->fused->output, t.y);
}

static bool can(const laci_net *net, const laci_native_layer *layer, const char **why) {
  (void)net;
  *why = "it is no sum of int8";
  return layer->kind == LACI_NATIVE_SUM && !layer->full;
}

const laci_algorithm laci_algorithm_sum = {
    .name = "sum", .timed_as = "sparse", .can = can, .cost = laci_cost_light, .make = make};

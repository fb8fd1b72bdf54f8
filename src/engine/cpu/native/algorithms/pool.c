/* SPDX-License-Identifier: Apache-2.0
 * A MaxPool between native layers, of floats or of int8. The result of int8 has the scale and zero
 * point of the input. */
#include "engine/cpu/native/layout/tensors.h"
#include "kernel/sparse/max_pool.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "cpu/pool.h"
#include "kernel/sparse/reorder.h"
#include "engine/cpu/native/algorithms/algorithm.h"

typedef struct pool_step {
  laci_max_pool pool;
  laci_sparse_size size; /* of the result */
  uint32_t around;       /* the value around the result's pixels */
} pool_step;

typedef struct pool_work {
  const pool_step *s;
  const float *x;
  float *y;
} pool_work;

static void pool_some(int64_t begin, int64_t end, void *context) {
  const pool_work *w = context;
  laci_max_pool_now()(&w->s->pool, w->x, w->y, begin, end);
}

static lac_status run_pool(laci_net *net, laci_net_step *step, lac_error *err) {
  const pool_step *s = step->context;
  pool_work w = {s, laci_net_data(net, step->tensors[0]), laci_net_data(net, step->tensors[1])};
  (void)err;
  laci_native_fill_border(net, &s->pool.out, &s->size, s->around, w.y);
  laci_pool_for(net->pool, laci_max_pool_items(&s->pool), 1, pool_some, &w);
  return LAC_OK;
}

static void make(laci_net *net, const laci_native_layer *layer) {
  const laci_native_bytes *bytes = layer->bytes;
  const laci_native_layout in = laci_native_layout_at(net, layer->input, bytes ? bytes->x : NULL);
  const laci_native_layout out = laci_native_layout_at(net, layer->output, bytes ? bytes->y : NULL);
  const laci_shape *shape = laci_plan_shape(&net->plan, layer->output);
  const int x = laci_native_read_as(net, layer->input, &in);
  const int y = laci_native_tensor(net, shape, &out, -1);
  pool_step *s = laci_plan_new(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_code(net, &net->plan.graph->nodes[layer->fused->node],
                                           run_pool, 2, (int[]){x, y});
  if (!s || !step || x < 0 || y < 0) return;
  *s = (pool_step){
      {layer->window, in.layout, out.layout, laci_native_image_blocks(&in.layout, layer->n_images)},
      laci_native_size_of(net, shape, &out),
      laci_native_around(&out)};
  step->kernel = bytes ? "int8 pool" : "native pool";
  step->context = s;
  step->shown = y;
  laci_net_bind(net, layer->fused->output, y);
}

static bool can(const laci_net *net, const laci_native_layer *layer, const char **why) {
  (void)net;
  *why = "it is no MaxPool";
  return layer->kind == LACI_NATIVE_POOL && !layer->full;
}

const laci_algorithm laci_algorithm_pool = {
    .name = "pool", .timed_as = "sparse", .can = can, .cost = laci_cost_light, .make = make};

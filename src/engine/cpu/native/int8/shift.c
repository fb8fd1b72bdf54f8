/* SPDX-License-Identifier: Apache-2.0
 * The sum of an int8 matrix and one constant for each column, whose result is int8: the bias that
 * exporters add to a product after it is quantized. Operand and result have the same layout. */
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/plan/quantized.h"
#include "graph/graph.h"
#include "kernel/sparse/bytes.h"

typedef struct shift_state {
  laci_bytes_form form;
  laci_bytes_shift shift;
} shift_state;

typedef struct shift_work {
  const shift_state *s;
  const float *x;
  float *y;
} shift_work;

static void add_constants_to_items(int64_t begin, int64_t end, void *context) {
  const shift_work *w = context;
  laci_bytes_variant()->shift(&w->s->form, &w->s->shift, w->x, w->y, begin, end);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  shift_work w = {step->state, laci_net_tensor_data(net, step->tensors.x),
                  laci_net_tensor_data(net, step->tensors.y)};
  laci_pool_for(net->pool, laci_bytes_n_items(&w.s->form), 1, add_constants_to_items, &w);
  laci_native_fill_result_border(net, step, w.y); /* padding is zeros, to which nothing is added */
}

/** Returns the constants that are added, with zeros for the rest of the last int8x4; NULL: no
 * memory. */
static const float *copy_column_constants(laci_net *net, const laci_native_layer *layer) {
  const laci_node *node = &net->plan.graph->nodes[layer->fused->node];
  const int value = node->inputs[laci_plan_is_constant(&net->plan, node->inputs[1]) ? 1 : 0];
  const int64_t n = layer->window.channels_in;
  const float *from = laci_plan_constant_floats(&net->plan, value);
  float *to = laci_plan_alloc(&net->plan, (size_t)n + LACI_BYTES_PER_WORD, sizeof *to);
  for (int64_t at = 0; from && to && at < n; at++) to[at] = from[at];
  return from ? to : NULL;
}

static void prepare_shift_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_layer *layer = step->layer;
  const laci_native_layout in = laci_native_layout_of_value(net, layer->input, layer->int8->x);
  shift_state *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  const float *constants = copy_column_constants(net, layer);
  if (!s || !constants) return;
  *s = (shift_state){
      .form = {.floats = in.as_floats,
               .int8x4 = in.layout,
               .channels = layer->window.channels_in,
               .n_image_blocks = laci_native_image_blocks(&in.layout, layer->n_images),
               .q = layer->int8->x},
      .shift = {.by = constants, .to = layer->int8->y}};
  step->state = s;
  step->kernel = "int8 shift";
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "it is no sum of an int8 matrix and constants";
  return layer->kind == LACI_NATIVE_SHIFT && !layer->is_dense;
}

const laci_algorithm laci_algorithm_shift = {.name = "shift",
                                             .timed_as = "sparse",
                                             .kind = LACI_NATIVE_SHIFT,
                                             .can = can_compute_layer,
                                             .cost = laci_cost_of_memory_bound,
                                             .make = prepare_shift_step,
                                             .run = run_layer};

/* SPDX-License-Identifier: Apache-2.0
 * A gate between int8 layers: an int8 factor multiplies each channel of an int8 image, as at the
 * end of squeeze and excitation. The result has the layout of the image. */
#include "engine/cpu/native/int8/int8.h"
#include "base/divide.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "kernel/sparse/bytes.h"

typedef struct gate_step {
  laci_bytes_form form;
  laci_bytes_gate gate;
} gate_step;

typedef struct gate_work {
  const laci_bytes_form *form;
  laci_bytes_gate gate;
  const float *x;
  float *y;
} gate_work;

static void multiply_item_range(int64_t begin, int64_t end, void *context) {
  const gate_work *w = context;
  laci_bytes_variant()->multiply(w->form, &w->gate, w->x, w->y, begin, end);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  enum { PARTS = 4 }; /* number of parts of the work for each thread */
  const laci_native_tensors *t = &step->tensors;
  const gate_step *s = step->state;
  gate_work w = {.form = &s->form,
                 .gate = s->gate,
                 .x = laci_net_tensor_data(net, t->x),
                 .y = laci_net_tensor_data(net, t->y)};
  w.gate.factors = laci_net_tensor_data(net, t->residual);
  const int64_t n = laci_bytes_n_items(&s->form);
  laci_pool_for(net->pool, n, laci_ceil_div(n, (int64_t)net->n_threads * PARTS),
                multiply_item_range, &w);
}

static void prepare_gate_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_layer *layer = step->layer;
  const laci_native_int8_data *int8 = layer->int8;
  const laci_native_layout of_x = laci_native_layout_of_value(net, layer->output, int8->y);
  const laci_native_layout of_gates =
      laci_native_layout_of_value(net, int8->gate_value, int8->gate);
  gate_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s) return;
  const double scale = (double)int8->x->scale * (double)int8->gate->scale / (double)int8->y->scale;
  *s = (gate_step){
      .form = {.floats = of_x.as_floats,
               .int8x4 = of_x.layout,
               .channels = layer->window.channels_out,
               .n_image_blocks = laci_native_image_blocks(&of_x.layout, layer->n_images),
               .q = int8->x},
      .gate = {.layout = of_gates.layout,
               .scale = (float)scale,
               .x_zero = -int8->x->low,
               .gate_zero = -int8->gate->low,
               .zero = -int8->y->low,
               .low = int8->quantized.low,
               .high = int8->quantized.high}};
  step->state = s;
  step->kernel = "int8 gate";
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "it is no product of an int8 image and a factor for each channel";
  return layer->kind == LACI_NATIVE_GATE && !layer->is_dense;
}

const laci_algorithm laci_algorithm_gate = {.name = "gate",
                                            .timed_as = "sparse",
                                            .kind = LACI_NATIVE_GATE,
                                            .can = can_compute_layer,
                                            .cost = laci_cost_of_memory_bound,
                                            .make = prepare_gate_step,
                                            .run = run_layer};

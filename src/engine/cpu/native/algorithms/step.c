/* SPDX-License-Identifier: Apache-2.0
 * A chosen layer as a step of the net: operands and result in their native layouts, and the
 * algorithm that computes it. */
#include <stdio.h>
#include <string.h>

#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"

static lac_status run_native_step(laci_net *net, laci_net_step *step, lac_error *err) {
  const laci_native_layer_step *s = step->context;
  (void)err;
  s->algorithm->run(net, s);
  return LAC_OK;
}

/** Returns the step of a layer, as far as it is known before the algorithm prepares it. */
static laci_native_layer_step describe_native_step(laci_net *net, const laci_native_layer *layer) {
  const laci_native_layout out =
      laci_native_layout_of_value(net, layer->output, layer->int8 ? layer->int8->y : NULL);
  const laci_shape *y = laci_plan_shape(&net->plan, layer->output);
  return (laci_native_layer_step){
      .layer = layer,
      .algorithm = laci_algorithm_by_id(layer->algorithm),
      .skips_zeros = laci_algorithm_by_id(layer->algorithm)->skips_zeros && layer->kept < 1,
      .out = out.layout,
      .size = laci_native_size_in_layout(net, y, &out),
      .around = laci_native_border_value(&out),
      .weights = -1,
      .scratch = -1};
}

/** Describes the nodes that the layer computes. */
static const char *describe_nodes(laci_net *net, const laci_native_layer *layer) {
  char text[256];
  const char *what = laci_net_describe_fused(net, layer->fused);
  if (layer->last == layer->fused) return what;
  (void)snprintf(text, sizeof text, "%s + %s", what, laci_net_describe_fused(net, layer->last));
  return laci_plan_copy_text(&net->plan, text);
}

static void add_native_step(laci_net *net, laci_native_layer_step *s) {
  enum { SCRATCH = 4, ALWAYS = 6 }; /* ALWAYS: number of tensors that every step has */
  const laci_fused *fused = s->layer->fused;
  s->tensors = laci_native_make_layer_tensors(net, s->layer);
  if (s->scratch_bytes > 0) s->scratch = laci_net_scratch_new(net, s->scratch_bytes);
  const laci_native_tensors *t = &s->tensors;
  const laci_native_move *move = s->layer->move;
  const int n_more = t->sources ? move->n_sources - 1 : 0;
  int *tensors = laci_plan_alloc(&net->plan, (size_t)n_more + ALWAYS, sizeof *tensors);
  if (!tensors) return;
  memcpy(tensors, (int[]){t->x, t->bias, t->residual, s->weights, s->scratch, t->y},
         ALWAYS * sizeof *tensors);
  for (int at = 0; at < n_more; at++) tensors[ALWAYS + at] = t->sources[1 + at];
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node],
                                               run_native_step, ALWAYS + n_more, tensors);
  if (!step) return;
  laci_net_step_mark_scratch(step, SCRATCH);
  step->what = describe_nodes(net, s->layer);
  step->kernel = s->kernel;
  step->sparse = s->skips_zeros;
  step->context = s;
  step->shown = t->y;
  step->flops = s->flops;
  laci_net_bind_value(net, move ? move->result : s->layer->last->output, t->y);
}

bool laci_native_is_chosen_layer(const laci_net *net, const laci_fused *fused) {
  return laci_native_chosen_layer(net, fused) != NULL;
}

bool laci_native_is_within_layer(const laci_net *net, int value) {
  const laci_native_net *native = net->native;
  for (int at = 0; native && at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (layer->chosen && layer->last != layer->fused && layer->fused->output == value) return true;
  }
  return false;
}

bool laci_can_lower_native(laci_net *net, const laci_fused *fused, const char **why) {
  *why = "dense weights, or dense kernels are faster";
  return laci_native_is_chosen_layer(net, fused);
}

static void lower_layer(laci_net *net, const laci_native_layer *layer) {
  laci_native_layer_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s) return;
  *s = describe_native_step(net, layer);
  s->algorithm->make(net, s);
  if (!net->plan.status) add_native_step(net, s);
}

void laci_lower_native(laci_net *net, const laci_fused *fused) {
  const laci_native_layer *layer = laci_native_chosen_layer(net, fused);
  /* a layer of several nodes is computed together with its last node */
  if (layer->last->node == fused->node) lower_layer(net, layer);
}

bool laci_native_lower_output(laci_net *net, int value) {
  const laci_native_net *native = net->native;
  for (int at = 0; native && at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (!layer->chosen || !layer->move || layer->move->result != value) continue;
    lower_layer(net, layer);
    return true;
  }
  return false;
}

laci_sparse_operands laci_native_layer_step_operands(const laci_net *net,
                                                     const laci_native_layer_step *step) {
  return laci_native_kernel_operands(net, step->layer, &step->tensors);
}

void laci_native_fill_result_border(laci_net *net, const laci_native_layer_step *step, float *y) {
  laci_native_fill_border(net, &step->out, &step->size, step->around, y);
}

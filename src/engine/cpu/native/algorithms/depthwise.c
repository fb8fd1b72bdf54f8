/* SPDX-License-Identifier: Apache-2.0
 * A depthwise convolution between native layers, as a step. It reads and writes the native layouts
 * of these layers (kernel/sparse/depthwise.h). */
#include <string.h>

#include "base/divide.h"
#include "engine/cpu/native/layout/tensors.h"
#include "kernel/sparse/depthwise.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "cpu/pool.h"
#include "kernel/sparse/reorder.h"
#include "engine/cpu/native/algorithms/algorithm.h"

typedef struct depthwise_step {
  const laci_depthwise *kernel;
  const laci_native_layer *layer;
  laci_sparse_size size; /* of the result */
  laci_native_tensors tensors;
  int weight;
} depthwise_step;

/* What a thread does at a time: some tiles of some channels, of one image block. */
typedef struct work {
  const laci_depthwise *kernel;
  laci_sparse_operands o;
  int64_t tiles, channels;   /* of one item of work */
  int64_t parts, over_parts; /* into how many the tiles of an image block, and all channels, are cut
                                */
} work;

static int64_t end_of(int64_t begin, int64_t n, int64_t most) {
  return begin + n < most ? begin + n : most;
}

static void multiply_some(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const laci_depthwise *d = w->kernel;
  for (int64_t at = begin; at < end; at++) {
    const int64_t image_block = at / w->over_parts / w->parts * d->n_each;
    const int64_t tile = at / w->over_parts % w->parts * w->tiles;
    const int64_t channel = at % w->over_parts * w->channels;
    const laci_sparse_part part = {d->tiles, image_block + tile,
                                   image_block + end_of(tile, w->tiles, d->n_each), channel,
                                   end_of(channel, w->channels, d->window.channels_out)};
    laci_depthwise_multiply_now()(d, &w->o, &part);
  }
}

/* Fills what is no pixel of the result with zeros. In PC16P the tiles cover all memory of an image,
 * but for a last group of 16 pixels that may be beyond all pixels. */
static void zero(const laci_net *net, const depthwise_step *s, float *y) {
  const laci_depthwise *d = s->kernel;
  if (d->out.format != LACI_FORMAT_PC16P) {
    laci_native_fill_border(net, &d->out, &s->size, 0, y);
    return;
  }
  const int64_t each = laci_sparse_border_items(&d->out, &s->size) / d->n_images;
  for (int64_t at = 0; at < d->n_images; at++) {
    laci_sparse_fill_border(&d->out, &s->size, 0, y, at * each + d->n_each, (at + 1) * each);
  }
}

static lac_status run_depthwise(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { TILES = 256, ROWS = 16, CHANNELS = 16 };
  const depthwise_step *s = step->context;
  const laci_depthwise *d = s->kernel;
  const bool images = d->out.format == LACI_FORMAT_HWC16N;
  work w = {.kernel = d,
            .o = laci_native_operands_of(net, s->layer, &s->tensors),
            .tiles = images ? ROWS * d->window.out_w : TILES,
            .channels = CHANNELS};
  (void)err;
  w.o.weight = laci_net_data(net, s->weight);
  w.parts = laci_ceil_div(d->n_each, w.tiles);
  w.over_parts = laci_ceil_div(d->window.channels_out, w.channels);
  zero(net, s, w.o.y);
  laci_pool_for(net->pool, d->n_images * w.parts * w.over_parts, 1, multiply_some, &w);
  return LAC_OK;
}

/** The kernel, in the plan's memory, its tiles included. NULL after a failure, and where the
 * implementation declines. */
static laci_depthwise *make_kernel(laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_layouts layouts = {
      .in = laci_native_layer_in(net, layer),
      .out = laci_native_layer_out(net, layer),
      .n_images =
          laci_native_image_blocks(laci_native_memory_at(net, layer->output), layer->n_images)};
  laci_depthwise made, *kernel = laci_plan_new(&net->plan, 1, sizeof *kernel);
  lac_error why = {0};
  if (!kernel) return NULL;
  const lac_status st = laci_depthwise_init(&layer->window, &layouts, &made, &why);
  if (st == LAC_UNSUPPORTED) laci_net_decline(net, why.text);
  else if (st) laci_plan_fail(&net->plan, st, "%s", why.text);
  const size_t n = (size_t)(made.n_each * made.n_images);
  *kernel = made;
  kernel->tiles = st ? NULL : laci_plan_new(&net->plan, n, sizeof *kernel->tiles);
  if (kernel->tiles) memcpy(kernel->tiles, made.tiles, n * sizeof *kernel->tiles);
  laci_depthwise_clear(&made);
  return kernel->tiles ? kernel : NULL;
}

static void make(laci_net *net, const laci_native_layer *layer) {
  const laci_shape *y = laci_plan_shape(&net->plan, layer->output);
  depthwise_step *s = laci_plan_new(&net->plan, 1, sizeof *s);
  const laci_depthwise *kernel = s ? make_kernel(net, layer) : NULL;
  if (!kernel) return;
  *s = (depthwise_step){.kernel = kernel,
                        .layer = layer,
                        .size = laci_native_size(net, y, false),
                        .tensors = laci_native_take_tensors(net, layer),
                        .weight = laci_native_dense(net, layer)};
  const laci_native_tensors *t = &s->tensors;
  laci_net_step *step =
      laci_net_step_code(net, &net->plan.graph->nodes[layer->fused->node], run_depthwise, 5,
                         (int[]){t->x, t->bias, t->residual, s->weight, t->y});
  if (!step) return;
  step->what = laci_net_describe(net, layer->fused);
  step->kernel = laci_native_compiled_name(net, "depthwise", &layer->window);
  step->context = s;
  step->shown = t->y;
  step->flops = 2 * laci_shape_count(y) * layer->window.kernel_h * layer->window.kernel_w;
  laci_net_bind(net, layer->fused->output, t->y);
}

static bool can(const laci_net *net, const laci_native_layer *layer, const char **why) {
  (void)net;
  *why = "several channels make a result";
  return layer->kind == LACI_NATIVE_DEPTHWISE && !layer->full;
}

static double cost(const laci_net *net, const laci_native_layer *layer) {
  const laci_cost_figures *c = laci_costs_of(net, layer);
  const bool images = laci_native_by_images(layer->n_images);
  return laci_cost_results(layer) * laci_cost_terms(&layer->window) /
         (images ? c->depthwise_images : c->depthwise);
}

const laci_algorithm laci_algorithm_depthwise = {
    .name = "depthwise", .timed_as = "sparse", .can = can, .cost = cost, .make = make};

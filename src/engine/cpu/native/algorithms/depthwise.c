/* SPDX-License-Identifier: Apache-2.0
 * A depthwise convolution between native layers, as a step. It reads and writes the native layouts
 * of these layers (kernel/sparse/depthwise.h). */
#include <string.h>

#include "base/divide.h"
#include "kernel/sparse/depthwise.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "cpu/pool.h"
#include "kernel/sparse/reorder.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/* The work of a layer. A work item is some tiles of some channels, of one image block. */
typedef struct work {
  const laci_depthwise *kernel;
  laci_sparse_operands o;
  int64_t tiles, channels;   /* number of tiles and of channels in a work item */
  int64_t parts, over_parts; /* number of work items into which the tiles of an image block (parts),
                                and all channels (over_parts), are divided */
} work;

static int64_t end_of_range(int64_t begin, int64_t n, int64_t most) {
  return begin + n < most ? begin + n : most;
}

static void convolve_item_range(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const laci_depthwise *d = w->kernel;
  for (int64_t at = begin; at < end; at++) {
    const int64_t image_block = at / w->over_parts / w->parts * d->tiles_per_block;
    const int64_t tile = at / w->over_parts % w->parts * w->tiles;
    const int64_t channel = at % w->over_parts * w->channels;
    const laci_sparse_part part = {d->tiles, image_block + tile,
                                   image_block + end_of_range(tile, w->tiles, d->tiles_per_block),
                                   channel,
                                   end_of_range(channel, w->channels, d->window.channels_out)};
    laci_depthwise_multiply_variant()(d, &w->o, &part);
  }
}

/* Writes zeros to those places of the result's memory that are no pixels. In PC16P the tiles cover
 * all memory of an image, except for a last block of 16 pixels that may be beyond all pixels. */
static void zero_result_border(laci_net *net, const laci_native_layer_step *s, float *y) {
  const laci_depthwise *d = s->state;
  if (d->out.format != LACI_FORMAT_PC16P) {
    laci_native_fill_result_border(net, s, y);
    return;
  }
  const int64_t each = laci_sparse_border_n_items(&d->out, &s->size) / d->n_images;
  for (int64_t at = 0; at < d->n_images; at++) {
    laci_sparse_fill_border(&d->out, &s->size, 0, y, at * each + d->tiles_per_block,
                            (at + 1) * each);
  }
}

static void run_layer(laci_net *net, const laci_native_layer_step *s) {
  enum { TILES = 256, ROWS = 16, CHANNELS = 16 };
  const laci_depthwise *d = s->state;
  const bool images = d->out.format == LACI_FORMAT_HWC16N;
  work w = {.kernel = d,
            .o = laci_native_layer_step_operands(net, s),
            .tiles = images ? ROWS * d->window.out_w : TILES,
            .channels = CHANNELS};
  w.o.weight = laci_net_tensor_data(net, s->weights);
  w.parts = laci_ceil_div(d->tiles_per_block, w.tiles);
  w.over_parts = laci_ceil_div(d->window.channels_out, w.channels);
  zero_result_border(net, s, w.o.y);
  laci_pool_for(net->pool, d->n_images * w.parts * w.over_parts, 1, convolve_item_range, &w);
}

/** Makes the kernel and its tiles, in the plan's memory. Returns NULL after a failure, or if the
 * algorithm declines the layer. */
static laci_depthwise *make_depthwise_kernel(laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_layouts layouts = {
      .in = laci_native_input_layout(net, layer),
      .out = laci_native_output_layout(net, layer),
      .n_images = laci_native_image_blocks(laci_native_assigned_layout(net, layer->output),
                                           layer->n_images)};
  laci_depthwise made, *kernel = laci_plan_alloc(&net->plan, 1, sizeof *kernel);
  lac_error why = {0};
  if (!kernel) return NULL;
  const lac_status st = laci_depthwise_init(&layer->window, &layouts, &made, &why);
  if (st == LAC_UNSUPPORTED) laci_net_decline_node(net, why.text);
  else if (st) laci_plan_fail(&net->plan, st, "%s", why.text);
  const size_t n = (size_t)(made.tiles_per_block * made.n_images);
  *kernel = made;
  kernel->tiles = st ? NULL : laci_plan_alloc(&net->plan, n, sizeof *kernel->tiles);
  if (kernel->tiles) memcpy(kernel->tiles, made.tiles, n * sizeof *kernel->tiles);
  laci_depthwise_clear(&made);
  return kernel->tiles ? kernel : NULL;
}

static void prepare_depthwise_step(laci_net *net, laci_native_layer_step *step) {
  const laci_sparse_window *g = &step->layer->window;
  const laci_shape *y = laci_plan_shape(&net->plan, step->layer->output);
  step->state = make_depthwise_kernel(net, step->layer);
  if (step->state) step->weights = laci_native_store_dense_weights(net, step->layer);
  step->kernel = laci_native_compiled_kernel_name(net, "depthwise", g);
  step->flops = 2 * laci_shape_count(y) * g->kernel_h * g->kernel_w;
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "several channels make a result, or it is of int8";
  return layer->kind == LACI_NATIVE_DEPTHWISE && !layer->is_dense && !layer->int8;
}

/** Estimates the time from the share of the peak rate that the kernel reaches. Windows that stride
 * along rows of one image gather every second pixel first. */
static double depthwise_cost(const laci_net *net, const laci_native_layer *layer) {
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  const bool strides = layer->window.stride_w > 1 && c->depthwise_strided > 0;
  double share = strides ? c->depthwise_strided : c->depthwise;
  if (laci_native_has_image_lanes(layer->n_images)) share = c->depthwise_images;
  return laci_cost_n_results(layer) * laci_cost_n_terms(&layer->window) / share;
}

const laci_algorithm laci_algorithm_depthwise = {.name = "depthwise",
                                                 .timed_as = "sparse",
                                                 .kind = LACI_NATIVE_DEPTHWISE,
                                                 .can = can_compute_layer,
                                                 .cost = depthwise_cost,
                                                 .make = prepare_depthwise_step,
                                                 .run = run_layer};

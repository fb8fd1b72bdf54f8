/* SPDX-License-Identifier: Apache-2.0
 * A convolution by Winograd's algorithm (kernel/sparse/winograd4.h), as a step: between native
 * layers, or in a network without zeros.
 *
 * Weights are transformed once, by all threads. Tiles are divided into blocks. If there are enough
 * blocks, and a cache that all threads share holds the weights, each thread computes its own blocks
 * with its own scratch. Otherwise all threads compute each block together: they share the input
 * channels to be transformed, then the points to be multiplied, then the output channels. */
#include <math.h>
#include <string.h>

#include "base/divide.h"
#include "kernel/sparse/winograd4.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"

typedef struct winograd_state {
  laci_winograd4 w;
  int64_t n_blocks;
  int64_t shares;           /* number of parts of the work; each is computed by one thread, block by
                               block; 1: all threads compute each block together */
  int64_t n_points, n_sums; /* numbers of floats of scratch memory for each part: transformed inputs
                               (points) and their sums */
} winograd_state;

typedef struct work {
  const winograd_state *s;
  laci_winograd4_kernel kernel;
  laci_sparse_operands o;
  const float *weights;
  laci_winograd4_block block; /* the current block, if all threads compute each block together, and
                                 its scratch memory */
  float *points, *sums;
} work;

static laci_winograd4_block make_block_of_tiles(const winograd_state *s, int64_t at) {
  return laci_winograd4_block_of_units(&s->w, at * s->w.n_units / s->n_blocks,
                                       (at + 1) * s->w.n_units / s->n_blocks);
}

/* ---- Blocks of one thread ---- */

static void compute_blocks_separately(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const winograd_state *s = w->s;
  const laci_sparse_window *g = &s->w.window;
  for (int64_t share = begin; share < end; share++) {
    float *points = w->points + share * (s->n_points + s->n_sums), *sums = points + s->n_points;
    const int64_t last = (share + 1) * s->n_blocks / s->shares;
    for (int64_t at = share * s->n_blocks / s->shares; at < last; at++) {
      const laci_winograd4_block b = make_block_of_tiles(s, at);
      w->kernel.transform(&s->w, &b, w->o.x, (int64_t[]){0, s->w.sources}, points);
      w->kernel.multiply(&s->w, &b, w->weights, points, (int64_t[]){0, s->w.points}, sums);
      w->kernel.finish(&s->w, &b, sums, (int64_t[]){0, g->channels_out}, &w->o);
    }
  }
}

/* ---- A block computed by all threads ---- */

static void transform_input_range(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  w->kernel.transform(&w->s->w, &w->block, w->o.x, (int64_t[]){begin, end}, w->points);
}

static void multiply_points_of_range(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  w->kernel.multiply(&w->s->w, &w->block, w->weights, w->points, (int64_t[]){begin, end}, w->sums);
}

static void transform_output_range(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  w->kernel.finish(&w->s->w, &w->block, w->sums, (int64_t[]){begin, end}, &w->o);
}

static void compute_blocks_together(laci_net *net, work *w) {
  enum { CHANNELS = 8 };
  const laci_sparse_window *g = &w->s->w.window;
  w->sums = w->points + w->s->n_points;
  for (int64_t at = 0; at < w->s->n_blocks; at++) {
    w->block = make_block_of_tiles(w->s, at);
    laci_pool_for(net->pool, w->s->w.sources, CHANNELS, transform_input_range, w);
    laci_pool_for(net->pool, w->s->w.points, 1, multiply_points_of_range, w);
    laci_pool_for(net->pool, g->channels_out, CHANNELS, transform_output_range, w);
  }
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  const winograd_state *s = step->state;
  work w = {.s = s,
            .kernel = laci_winograd4_variant(&s->w),
            .o = laci_native_layer_step_operands(net, step),
            .weights = laci_net_tensor_data(net, step->weights),
            .points = laci_net_tensor_data(net, step->scratch)};
  laci_native_fill_result_border(net, step, w.o.y);
  if (s->shares > 1) laci_pool_for(net->pool, s->shares, 1, compute_blocks_separately, &w);
  else compute_blocks_together(net, &w);
}

/* ---- Planning ---- */

typedef struct filling {
  const laci_winograd4 *w;
  const float *dense;
  float *to;
} filling;

static void transform_weight_range(int64_t begin, int64_t end, void *context) {
  const filling *f = context;
  laci_winograd4_transform_weights(f->w, f->dense, (int64_t[]){begin, end}, f->to);
}

/** Transforms the layer's weights into a tensor of the plan, and returns its index; -1 after a
 * failure, which is recorded in the plan. */
static int make_transformed_weights(laci_net *net, const laci_native_layer *layer,
                                    const laci_winograd4 *w) {
  const int value = net->plan.graph->nodes[layer->fused->node].inputs[1];
  const int tensor = laci_net_weight_new(net, laci_winograd4_weight_bytes(&layer->window), value);
  const float *dense = tensor >= 0 ? laci_native_read_dense_weights(net, layer) : NULL;
  if (!dense) return -1;
  filling f = {w, dense, laci_net_tensor_data(net, tensor)};
  laci_pool_for(net->pool, laci_winograd4_n_groups(w), 1, transform_weight_range, &f);
  return tensor;
}

/** Makes the kernel's tiles, in the plan's memory. Returns false after a failure, or if the
 * algorithm declines the layer. */
static bool make_result_tiles(laci_net *net, const laci_native_layer *layer, laci_winograd4 *w) {
  const laci_sparse_layout *out = laci_native_assigned_layout(net, layer->output);
  const laci_sparse_layouts layouts = {.in = laci_native_input_layout(net, layer),
                                       .out = laci_native_output_layout(net, layer),
                                       .n_images = laci_native_image_blocks(out, layer->n_images)};
  lac_error why = {0};
  laci_winograd4 made;
  const lac_status st = laci_winograd4_init(&layer->window, &layouts, &made, &why);
  if (st == LAC_UNSUPPORTED) laci_net_decline_node(net, why.text);
  else if (st) laci_plan_fail(&net->plan, st, "%s", why.text);
  const size_t n = (size_t)(made.results_per_block * made.n_image_blocks);
  *w = made;
  w->results = st ? NULL : laci_plan_alloc(&net->plan, n, sizeof *w->results);
  if (w->results) memcpy(w->results, made.results, n * sizeof *w->results);
  laci_winograd4_clear(&made);
  return w->results != NULL;
}

/* Decides how threads share the work. Threads with blocks of their own neither wait for each other
 * nor read what another one wrote. But each of them reads all weights, which a shared cache should
 * hold. */
static void divide_work_among_threads(const laci_net *net, const laci_native_layer *layer,
                                      winograd_state *s) {
  const laci_winograd4 *w = &s->w;
  const int64_t n_threads = net->n_threads, apart = laci_winograd4_units_per_block(w, false);
  const double shared = laci_cost_figures_of(net, layer)->weights_shared;
  const bool small = (double)laci_winograd4_weight_bytes(&w->window) <= shared;
  s->n_blocks = laci_ceil_div(w->n_units, apart);
  s->shares = small && s->n_blocks >= n_threads ? n_threads : 1;
  if (s->shares > 1) s->n_blocks = laci_ceil_div(s->n_blocks, n_threads) * n_threads;
  else s->n_blocks = laci_ceil_div(w->n_units, laci_winograd4_units_per_block(w, true));
  const laci_winograd4_block b =
      laci_winograd4_block_of_units(w, 0, laci_ceil_div(w->n_units, s->n_blocks));
  s->n_points = laci_winograd4_block_floats(w, &b, w->sources);
  s->n_sums = laci_winograd4_block_floats(w, &b, w->window.channels_out);
}

static void prepare_winograd_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_layer *layer = step->layer;
  const laci_shape *y = laci_plan_shape(&net->plan, layer->output);
  winograd_state *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || !make_result_tiles(net, layer, &s->w)) return;
  divide_work_among_threads(net, layer, s);
  step->state = s;
  step->weights = make_transformed_weights(net, layer, &s->w);
  step->scratch_bytes = (size_t)(s->shares * (s->n_points + s->n_sums)) * sizeof(float);
  step->kernel = laci_native_compiled_kernel_name(net, "winograd", &layer->window);
  step->flops = 2 * laci_shape_count(y) * laci_sparse_weights_per_row(&layer->window);
}

/* ---- The algorithm's record ---- */

/** Estimates the time of a layer. SIMD lanes are tiles, padded to whole vectors, or 16 images. */
static double winograd4_cost(const laci_net *net, const laci_native_layer *layer) {
  enum { SIDE = LACI_WINOGRAD4_SIDE, VECTOR = 8 };
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  if (c->winograd == 0) return INFINITY;
  const int64_t tiles = laci_ceil_div(g->out_h, SIDE) * laci_ceil_div(g->out_w, SIDE);
  const int64_t each = laci_native_has_image_lanes(layer->n_images) ? LACI_SPARSE_LANES : VECTOR;
  const int64_t n = each == VECTOR ? tiles * layer->n_images : layer->n_images;
  const double lanes = (double)(laci_ceil_div(n, each) * each * (each == VECTOR ? 1 : tiles));
  const double sources = (double)laci_winograd4_n_sources(g),
               points = (double)laci_winograd4_n_points(g);
  const double weights = points * sources * (double)g->channels_out;
  const double channels = sources + (double)g->channels_out;
  /* for strided windows, each thread computes blocks of its own, which caches hold */
  const bool strided = g->stride_w > 1;
  const bool far = each == VECTOR && points * lanes * channels > c->tiles_held;
  const double tile = strided ? c->tile_strided : far ? c->tile_far : c->tile;
  return weights * (lanes / c->winograd + c->transformed) + lanes * channels * tile + c->parts;
}

static double bytes_of_weights(const laci_net *net, const laci_native_layer *layer) {
  (void)net;
  return (double)laci_winograd4_weight_bytes(&layer->window);
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  *why = "its window, its type, or the memory that there is";
  return laci_native_has_constant_floats(net, layer) && !layer->rows &&
         !(net->native && net->native->tight) && laci_winograd4_can_compute(&layer->window);
}

/** Can the algorithm gain without zeros, where oneDNN does not use Winograd's algorithm? Its dense
 * kernels do so only with AVX-512, and only for 3x3 windows of stride 1. */
static bool can_gain_without_zeros(const laci_net *net, const laci_native_layer *layer) {
  enum { WINDOW = 3 };
  const bool lacks = layer->window.kernel_h != WINDOW || layer->window.stride_h > 1;
  return lacks || laci_jit_isa_allowed() == LACI_JIT_AVX2 || net->timings;
}

/** Can the kernel read a layout without zeros between rows? At the ends of a row it reads whatever
 * is stored there, so that memory must be readable: before the first row, this is the padding
 * above. */
static bool can_read_unpadded(const laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const laci_sparse_border b = laci_sparse_needed_border(g);
  (void)net;
  return b.top * g->w >= b.left;
}

const laci_algorithm laci_algorithm_winograd = {.name = "winograd",
                                                .timed_as = "winograd",
                                                .kind = LACI_NATIVE_PRODUCT,
                                                .transforms = true,
                                                .can = can_compute_layer,
                                                .gains_without_zeros = can_gain_without_zeros,
                                                .is_unpadded = can_read_unpadded,
                                                .cost = winograd4_cost,
                                                .bytes = bytes_of_weights,
                                                .make = prepare_winograd_step,
                                                .run = run_layer};

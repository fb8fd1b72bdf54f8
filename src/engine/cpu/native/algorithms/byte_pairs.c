/* SPDX-License-Identifier: Apache-2.0
 * A product of int8 by AVX2 (kernel/sparse/byte_pairs.h), for processors without VNNI. Rows that
 * keep two of four weights cost half of what all weights cost. */
#include "base/divide.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/layout/layout.h"
#include "kernel/sparse/byte_pairs.h"

/* ---- Planning ---- */

static void destroy_weights(laci_native_kernel *kernel) { laci_byte_pairs_clear(kernel->pairs); }

static lac_status store_weights(laci_net *net, const laci_native_layer *layer,
                                laci_native_kernel *kernel, lac_error *err) {
  laci_byte_pairs_weights *w = laci_plan_alloc(&net->plan, 1, sizeof *w);
  (void)layer;
  if (!w) return LAC_NO_MEMORY;
  const laci_sparse_convolution *convolution = &kernel->convolution;
  const lac_status st =
      laci_byte_pairs_init(&convolution->product, convolution->kept.weight, true, w, err);
  if (st) return st;
  kernel->pairs = w;
  kernel->drop = destroy_weights;
  laci_sparse_convolution_free_weights(&kernel->convolution);
  net->plan.weight_bytes += w->bytes;
  return LAC_OK;
}

/** Returns the number of floats of the layer's input. */
static int64_t count_input_floats(const laci_native_layer *layer,
                                  const laci_native_kernel *kernel) {
  const laci_sparse_layout *in = &kernel->convolution.in;
  return laci_native_image_blocks(in, layer->n_images) * in->n_floats;
}

static void prepare_step(laci_net *net, laci_native_layer_step *step) {
  laci_native_make_layer_kernels(net, step, store_weights);
  const laci_native_kernel *kernel = step->state;
  if (!kernel) return;
  step->scratch_bytes =
      laci_byte_pairs_copy_bytes(kernel->pairs, count_input_floats(step->layer, kernel));
  step->skips_zeros = kernel->pairs->copy == LACI_BYTE_PAIRS_NEIGHBOURS;
  step->kernel = step->skips_zeros
                     ? laci_native_product_name(net, step->layer, "pairs avx2")
                     : laci_native_compiled_kernel_name(net, "pairs", &step->layer->window);
}

/* ---- Running ---- */

typedef struct work {
  const laci_native_kernel *kernel;
  laci_sparse_operands o;
  void *copy;                    /* that of x; NULL: none */
  int64_t n_floats;              /* number of floats of x */
  int64_t tiles, rows;           /* maximum number of tiles, and of rows, in an item */
  int64_t n_of_tiles, n_of_rows; /* number of parts of all tiles, and of the rows of a group */
} work;

static void copy_range(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  laci_byte_pairs_copy_x(w->kernel->pairs, w->o.x, w->n_floats, begin, end, w->copy);
}

/** Divides the work into items: parts of tiles, and if these are few also parts of rows. */
static void divide_work(const laci_net *net, work *w) {
  enum { ITEMS_EACH = 4, TILES = 16 };
  const laci_byte_pairs_weights *pairs = w->kernel->pairs;
  const int64_t n_tiles = w->kernel->convolution.n_tiles;
  const int64_t wanted = net->n_threads > 1 ? (int64_t)net->n_threads * ITEMS_EACH : 1;
  const int64_t parts = laci_ceil_div(n_tiles, TILES);
  w->tiles = laci_ceil_div(n_tiles, parts);
  w->n_of_tiles = laci_ceil_div(n_tiles, w->tiles);
  const int64_t cuts = laci_ceil_div(wanted, w->n_of_tiles * pairs->n_groups);
  const int64_t blocks = laci_ceil_div(pairs->blocks_each, cuts);
  w->rows = blocks * LACI_BYTE_PAIRS_ROWS;
  w->n_of_rows = laci_ceil_div(pairs->rows_each, w->rows);
}

static void compute_item(const work *w, int64_t item) {
  const laci_sparse_convolution *convolution = &w->kernel->convolution;
  const laci_byte_pairs_weights *pairs = w->kernel->pairs;
  const int64_t tile = item % w->n_of_tiles * w->tiles, of_rows = item / w->n_of_tiles;
  const int64_t group = of_rows / w->n_of_rows, row = of_rows % w->n_of_rows * w->rows;
  const int64_t left = pairs->rows_each - row, first = group * pairs->rows_each + row;
  const int64_t tiles_left = convolution->n_tiles - tile;
  const laci_sparse_part part = {
      .tiles = convolution->tiles,
      .tile_first = tile,
      .tile_last = tile + (tiles_left < w->tiles ? tiles_left : w->tiles),
      .row_first = first,
      .row_last = first + (left < w->rows ? left : w->rows)};
  laci_byte_pairs_multiply(pairs, &w->o, &part, w->copy);
}

static void compute_items(int64_t begin, int64_t end, void *context) {
  for (int64_t item = begin; item < end; item++) compute_item(context, item);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  enum { GRAIN = 1 << 13 };
  work w = {.kernel = step->state, .o = laci_native_layer_step_operands(net, step)};
  w.n_floats = count_input_floats(step->layer, w.kernel);
  divide_work(net, &w);
  laci_native_fill_result_border(net, step, w.o.y);
  if (step->scratch_bytes > 0) {
    w.copy = laci_net_tensor_data(net, step->scratch);
    laci_pool_for(net->pool, w.n_floats, GRAIN, copy_range, &w);
  }
  const int64_t n_items = w.n_of_tiles * w.kernel->pairs->n_groups * w.n_of_rows;
  laci_pool_for(net->pool, n_items, 1, compute_items, &w);
}

/* ---- The record ---- */

/** Estimates the time of a layer. Where half of the weights are kept, it takes half the time, and
 * a fifth of that more for weights that are too large for a step. */
static double byte_pairs_cost(const laci_net *net, const laci_native_layer *layer) {
  const double half = 0.6, most_kept = 0.55;
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  const int64_t each = g->channels_out / g->groups;
  const double rows = (double)(laci_ceil_div(each, LACI_BYTE_PAIRS_ROWS) * LACI_BYTE_PAIRS_ROWS);
  const double lanes = (double)(laci_cost_n_tiles(layer, 1) * LACI_SPARSE_LANES);
  const double share = layer->kept <= most_kept ? half : 1;
  const double terms = (double)laci_sparse_row_length(g) * share;
  return lanes * rows * (double)g->groups * (terms / c->byte_pairs + c->result);
}

static double bytes_of_weights(const laci_net *net, const laci_native_layer *layer) {
  (void)net;
  return laci_cost_n_weights(layer);
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "it is no product of int8, or the processor has no AVX2";
  return layer->kind == LACI_NATIVE_PRODUCT && layer->int8 && !layer->mask &&
         laci_byte_pairs_can_run();
}

const laci_algorithm laci_algorithm_byte_pairs = {.name = "byte_pairs",
                                                  .timed_as = "byte-pairs",
                                                  .kind = LACI_NATIVE_PRODUCT,
                                                  .skips_zeros = true,
                                                  .adds_bytes = true,
                                                  .can = can_compute_layer,
                                                  .cost = byte_pairs_cost,
                                                  .bytes = bytes_of_weights,
                                                  .make = prepare_step,
                                                  .run = run_layer};

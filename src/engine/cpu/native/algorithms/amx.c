/* SPDX-License-Identifier: Apache-2.0
 * A product of int8 by AMX (kernel/sparse/amx.h), zeros included. It gains wherever a processor has
 * AMX: its registers multiply four times as much as vectors in the same time, more than any N:M
 * pattern saves. */
#include "base/divide.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "kernel/sparse/amx.h"

/* ---- Planning ---- */

/** How a layer's work is divided into items: `tiles` tiles times `rows` rows of a group. */
typedef struct division {
  int64_t tiles, rows;           /* maximum number of tiles, and of rows, in an item */
  int64_t n_of_tiles, n_of_rows; /* number of parts of all tiles, and of the rows of a group */
  size_t scratch_bytes;          /* bytes of scratch of a thread */
} division;

/** Divides the tiles so that the parts of each stay in a cache, and all threads have as many. If
 * that makes few items, rows are divided, too, so that all threads have work. */
static division divide_work(const laci_net *net, const laci_native_kernel *kernel) {
  enum { ITEMS_EACH = 4, BLOCK_ROWS = 2 * LACI_AMX_ROWS, BLOCK_TILES = 2 };
  const laci_amx_weights *w = kernel->amx;
  const int64_t n_tiles = kernel->convolution.n_tiles;
  const int64_t least = laci_ceil_div(n_tiles, laci_amx_tiles_per_part(w));
  const int64_t parts = least > 1 ? laci_ceil_div(least, net->n_threads) * net->n_threads : 1;
  division d = {.tiles = laci_ceil_div(n_tiles, parts * BLOCK_TILES) * BLOCK_TILES};
  d.n_of_tiles = laci_ceil_div(n_tiles, d.tiles);
  const int64_t wanted = (int64_t)net->n_threads * ITEMS_EACH;
  const int64_t cuts = laci_ceil_div(wanted, d.n_of_tiles * w->n_groups);
  d.rows = laci_ceil_div(laci_ceil_div(w->rows_each, cuts), BLOCK_ROWS) * BLOCK_ROWS;
  d.n_of_rows = laci_ceil_div(w->rows_each, d.rows);
  d.scratch_bytes = laci_amx_scratch_bytes(w, d.tiles);
  return d;
}

static void destroy_weights(laci_native_kernel *kernel) { laci_amx_weights_clear(kernel->amx); }

static lac_status store_weights(laci_net *net, const laci_native_layer *layer,
                                laci_native_kernel *kernel, lac_error *err) {
  laci_amx_weights *w = laci_plan_alloc(&net->plan, 1, sizeof *w);
  (void)layer;
  if (!w) return LAC_NO_MEMORY;
  const laci_sparse_convolution *convolution = &kernel->convolution;
  const lac_status st =
      laci_amx_weights_init(&convolution->product, convolution->kept.weight, w, err);
  if (st) return st;
  kernel->amx = w;
  kernel->drop = destroy_weights;
  laci_sparse_convolution_free_weights(&kernel->convolution);
  net->plan.weight_bytes += w->bytes;
  return LAC_OK;
}

static void prepare_amx_step(laci_net *net, laci_native_layer_step *step) {
  laci_native_make_layer_kernels(net, step, store_weights);
  const laci_native_kernel *kernel = step->state;
  if (!kernel) return;
  step->scratch_bytes = divide_work(net, kernel).scratch_bytes * (size_t)net->n_threads;
  step->kernel = "amx";
}

/* ---- Running ---- */

typedef struct work {
  const laci_native_kernel *kernel;
  laci_sparse_operands o;
  division division;
  char *scratch; /* of all threads */
} work;

/** Computes an item. Consecutive items have the same tiles. */
static void compute_item(const work *w, int64_t item, void *scratch) {
  const laci_sparse_convolution *convolution = &w->kernel->convolution;
  const laci_amx_weights *weights = w->kernel->amx;
  const division *d = &w->division;
  const int64_t of_rows = item % (weights->n_groups * d->n_of_rows);
  const int64_t group = of_rows / d->n_of_rows, row = of_rows % d->n_of_rows * d->rows;
  const int64_t left = weights->rows_each - row, first = group * weights->rows_each + row;
  const int64_t tile = item / (weights->n_groups * d->n_of_rows) * d->tiles;
  const int64_t tiles_left = convolution->n_tiles - tile;
  const laci_sparse_part part = {
      .tiles = convolution->tiles,
      .tile_first = tile,
      .tile_last = tile + (tiles_left < d->tiles ? tiles_left : d->tiles),
      .row_first = first,
      .row_last = first + (left < d->rows ? left : d->rows)};
  laci_amx_multiply(weights, &w->o, &part, scratch);
}

static void compute_items(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  void *scratch = w->scratch;
  if (scratch) scratch = w->scratch + (size_t)laci_pool_thread_index() * w->division.scratch_bytes;
  for (int64_t item = begin; item < end; item++) compute_item(w, item, scratch);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  const laci_native_kernel *kernel = step->state;
  const division d = divide_work(net, kernel);
  work w = {.kernel = kernel,
            .o = laci_native_layer_step_operands(net, step),
            .division = d,
            .scratch = d.scratch_bytes > 0 ? laci_net_tensor_data(net, step->scratch) : NULL};
  laci_native_fill_result_border(net, step, w.o.y);
  const int64_t n_items = d.n_of_tiles * kernel->amx->n_groups * d.n_of_rows;
  laci_pool_for(net->pool, n_items, 1, compute_items, &w);
}

/* ---- The record ---- */

/** Estimates the time of a layer: that of all registers, zeros included, and of its results. */
static double amx_cost(const laci_net *net, const laci_native_layer *layer) {
  enum { DEEP = LACI_AMX_INT8X4 * 4 };
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  const int64_t rows = laci_ceil_div(g->channels_out / g->groups, LACI_AMX_ROWS) * LACI_AMX_ROWS;
  const int64_t deep = laci_ceil_div(laci_sparse_row_length(g), DEEP) * DEEP;
  const double lanes = (double)(laci_cost_n_tiles(layer, 1) * LACI_SPARSE_LANES);
  return lanes * (double)(rows * g->groups) * ((double)deep / c->amx + c->result);
}

static double weight_bytes(const laci_net *net, const laci_native_layer *layer) {
  (void)net;
  return laci_cost_n_weights(layer);
}

static bool can_compute(const laci_net *net, const laci_native_layer *layer, const char **why) {
  (void)net;
  *why = "it is no product of int8, or the processor has no AMX";
  return layer->kind == LACI_NATIVE_PRODUCT && layer->int8 && !layer->mask &&
         laci_cpu_has_int8_tiles();
}

const laci_algorithm laci_algorithm_amx = {.name = "amx",
                                           .timed_as = "amx",
                                           .kind = LACI_NATIVE_PRODUCT,
                                           .adds_bytes = true,
                                           .can = can_compute,
                                           .cost = amx_cost,
                                           .bytes = weight_bytes,
                                           .make = prepare_amx_step,
                                           .run = run_layer};

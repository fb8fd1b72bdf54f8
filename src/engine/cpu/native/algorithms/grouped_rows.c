/* SPDX-License-Identifier: Apache-2.0
 * A product of constant floats that computes rows with the same kept columns together
 * (kernel/sparse/grouped_rows.h), without generated code. */
#include "base/divide.h"
#include "kernel/sparse/grouped_rows.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/layout/layout.h"
#include "cpu/pool.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/* ---- Planning ---- */

static void destroy_grouped_rows(laci_native_kernel *kernel) {
  laci_grouped_rows_clear(kernel->grouped);
}

/** Makes the grouped rows, or the CSR form if rows have too few kept columns in common: when the
 * algorithm was chosen, only the fraction of kept weights was known. */
static lac_status make_grouped_rows_or_csr(laci_net *net, const laci_native_layer *layer,
                                           laci_native_kernel *kernel, lac_error *err) {
  laci_sparse_convolution *convolution = &kernel->convolution;
  const laci_sparse_product *p = &convolution->product;
  if (!laci_grouped_rows_are_faster(p)) return laci_native_make_csr(net, layer, kernel, err);
  const int64_t vectors = laci_grouped_rows_n_vectors(convolution->tiles, convolution->n_tiles);
  const int64_t rows = laci_native_chunk_rows(net, p->n_rows, laci_grouped_rows_n_strips(vectors));
  laci_grouped_rows *grouped = laci_plan_alloc(&net->plan, 1, sizeof *grouped);
  if (!grouped) return LAC_NO_MEMORY;
  const lac_status st = laci_grouped_rows_init(p, convolution->kept.weight, rows, grouped, err);
  if (st) return st;
  kernel->grouped = grouped;
  kernel->drop = destroy_grouped_rows;
  laci_sparse_convolution_free_weights(convolution);
  net->plan.weight_bytes += grouped->bytes;
  return LAC_OK;
}

static void prepare_grouped_rows_step(laci_net *net, laci_native_layer_step *step) {
  laci_native_make_layer_kernels(net, step, make_grouped_rows_or_csr);
  const laci_native_kernel *kernel = step->state;
  if (kernel && !kernel->grouped) step->algorithm = &laci_algorithm_csr;
  step->kernel = laci_native_product_name(net, step->layer,
                                          kernel && kernel->grouped ? "grouped rows" : "csr");
}

/* ---- Running ---- */

typedef struct work {
  const laci_native_kernel *kernel;
  laci_sparse_operands o;
  int64_t n_vectors, n_strips;
} work;

/** Computes the work items [begin, end). Each is one chunk of rows for one strip of tiles; the
 * strips of a chunk follow each other. */
static void multiply_tile_strips(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const laci_sparse_tile *tiles = w->kernel->convolution.tiles;
  for (int64_t at = begin; at < end; at++) {
    const int64_t chunk = at / w->n_strips, strip = at % w->n_strips;
    const int64_t first = laci_sparse_strip_begin(w->n_vectors, w->n_strips, strip);
    const int64_t last = laci_sparse_strip_begin(w->n_vectors, w->n_strips, strip + 1);
    laci_grouped_rows_variant()(w->kernel->grouped, &w->o, chunk, tiles, first, last);
  }
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  work w = {.kernel = step->state, .o = laci_native_layer_step_operands(net, step)};
  const laci_sparse_convolution *convolution = &w.kernel->convolution;
  w.n_vectors = laci_grouped_rows_n_vectors(convolution->tiles, convolution->n_tiles);
  w.n_strips = laci_grouped_rows_n_strips(w.n_vectors);
  laci_native_fill_result_border(net, step, w.o.y);
  laci_pool_for(net->pool, w.kernel->grouped->n_chunks * w.n_strips, 1, multiply_tile_strips, &w);
}

/* ---- The algorithm's record ---- */

/* Returns the number of half tiles (vectors) that have results. */
static int64_t count_result_vectors(const laci_native_layer *layer) {
  enum { VECTOR = LACI_SPARSE_LANES / 2 };
  const laci_sparse_window *g = &layer->window;
  const int64_t between = laci_native_is_1x1(g) ? 0 : 1; /* number of zeros between two rows of
                                                            pixels */
  const int64_t pixels = (g->out_h - 1) * (g->out_w + between) + g->out_w;
  if (laci_native_has_image_lanes(layer->n_images)) return 2 * laci_cost_n_tiles(layer, 1);
  return layer->n_images * laci_ceil_div(pixels, VECTOR);
}

/** Estimates the time of a layer. Each strip has a constant overhead, which matters more with few
 * vectors (half tiles). */
static double grouped_rows_cost(const laci_net *net, const laci_native_layer *layer) {
  enum { VECTOR = LACI_SPARSE_LANES / 2, FEW = 128 };
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  const bool images = laci_native_has_image_lanes(layer->n_images);
  const double vectors = (double)count_result_vectors(layer);
  const double lost = (double)laci_grouped_rows_n_strips(count_result_vectors(layer)) * c->strip;
  const double share = (laci_native_is_1x1(g) || images ? c->grouped : c->grouped_window) *
                       (g->channels_out / g->groups < FEW ? c->grouped_few : 1);
  const double kept = laci_cost_n_terms(g) * layer->kept; /* number of kept weights in a row */
  const double result = images ? c->grouped_of_images : c->grouped_result;
  const double each = kept * (vectors + lost) / share + vectors * result;
  return (double)g->channels_out * (VECTOR * each + kept * c->grouped_weight);
}

static double bytes_of_weights(const laci_net *net, const laci_native_layer *layer) {
  const double each = 5.4;
  (void)net;
  return laci_cost_n_weights(layer) * layer->kept * each;
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  *why = "its weights change, are no floats, or do not keep half of each row";
  return !layer->is_dense && laci_native_has_constant_floats(net, layer) &&
         laci_native_may_group_rows(layer);
}

const laci_algorithm laci_algorithm_grouped_rows = {.name = "grouped_rows",
                                                    .timed_as = "lists",
                                                    .kind = LACI_NATIVE_PRODUCT,
                                                    .skips_zeros = true,
                                                    .can = can_compute_layer,
                                                    .cost = grouped_rows_cost,
                                                    .bytes = bytes_of_weights,
                                                    .make = prepare_grouped_rows_step,
                                                    .run = run_layer};

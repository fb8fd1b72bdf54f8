/* SPDX-License-Identifier: Apache-2.0
 * A product of constant floats by compressed sparse rows (kernel/sparse/csr.h), without generated
 * code. Where most weights are zeros in no regular pattern, CSR is faster than generated code. */
#include "kernel/sparse/csr.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/layout/layout.h"
#include "cpu/pool.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/* ---- Planning ---- */

static void destroy_csr(laci_native_kernel *kernel) { laci_csr_clear(kernel->csr); }

lac_status laci_native_make_csr(laci_net *net, const laci_native_layer *layer,
                                laci_native_kernel *kernel, lac_error *err) {
  laci_sparse_convolution *convolution = &kernel->convolution;
  const laci_sparse_product *p = &convolution->product;
  const int64_t strips = laci_csr_n_strips(convolution->n_tiles);
  const laci_csr_cut cut = {convolution->tiles, convolution->n_tiles,
                            laci_native_chunk_rows(net, p->n_rows, strips)};
  laci_csr *csr = laci_plan_alloc(&net->plan, 1, sizeof *csr);
  (void)layer;
  if (!csr) return LAC_NO_MEMORY;
  const lac_status st = laci_csr_init(p, convolution->kept.weight, &cut, csr, err);
  if (st) return st;
  kernel->csr = csr;
  kernel->drop = destroy_csr;
  laci_sparse_convolution_free_weights(convolution);
  net->plan.weight_bytes += csr->bytes;
  return LAC_OK;
}

static void prepare_csr_step(laci_net *net, laci_native_layer_step *step) {
  laci_native_make_layer_kernels(net, step, laci_native_make_csr);
  step->kernel = laci_native_product_name(net, step->layer, "csr");
}

/* ---- Running ---- */

typedef struct work {
  const laci_native_kernel *kernel;
  laci_sparse_operands o;
  int64_t n_strips;
} work;

/** Computes the work items [begin, end). Each is one chunk of rows for one strip of tiles; the
 * strips of a chunk follow each other. */
static void multiply_tile_strips(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const laci_sparse_convolution *convolution = &w->kernel->convolution;
  for (int64_t at = begin; at < end; at++) {
    const int64_t chunk = at / w->n_strips, strip = at % w->n_strips;
    const int64_t first = laci_sparse_strip_begin(convolution->n_tiles, w->n_strips, strip);
    const int64_t last = laci_sparse_strip_begin(convolution->n_tiles, w->n_strips, strip + 1);
    laci_csr_variant()(w->kernel->csr, &w->o, chunk, convolution->tiles + first, last - first);
  }
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  work w = {.kernel = step->state, .o = laci_native_layer_step_operands(net, step)};
  w.n_strips = laci_csr_n_strips(w.kernel->convolution.n_tiles);
  laci_native_fill_result_border(net, step, w.o.y);
  laci_pool_for(net->pool, w.kernel->csr->n_chunks * w.n_strips, 1, multiply_tile_strips, &w);
}

/* ---- The algorithm's record ---- */

/** Estimates the time of a layer. Weights are read again for each strip of tiles, while the
 * previous strip is computed. Fewer than FEW tiles take as long as FEW: each multiply-add waits for
 * the one before. */
static double csr_cost(const laci_net *net, const laci_native_layer *layer) {
  enum { FEW = 4 };
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  const bool aligned = laci_native_is_1x1(g) || laci_native_has_image_lanes(layer->n_images);
  const double kept = laci_cost_n_terms(g) * layer->kept; /* number of kept weights in a row */
  const int64_t n_tiles = laci_cost_n_tiles(layer, 1), tiles = n_tiles < FEW ? FEW : n_tiles;
  const double lanes = (double)(tiles * LACI_SPARSE_LANES * g->channels_out);
  return lanes * (kept / (aligned ? c->csr : c->csr_window) + c->result);
}

static double bytes_of_weights(const laci_net *net, const laci_native_layer *layer) {
  const double each = 8;
  (void)net;
  return laci_cost_n_weights(layer) * layer->kept * each;
}

/** Can CSR compute the layer? Not if its rows can be grouped, since CSR was not the fastest for any
 * of 26 such layers (bench/notes/sparse-kernels.md). */
static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  *why = laci_native_may_group_rows(layer) ? "its rows can be grouped"
                                           : "its weights change, are no floats, or have few zeros";
  return !layer->is_dense && laci_native_has_constant_floats(net, layer) &&
         !laci_native_may_group_rows(layer);
}

const laci_algorithm laci_algorithm_csr = {.name = "csr",
                                           .timed_as = "lists",
                                           .kind = LACI_NATIVE_PRODUCT,
                                           .skips_zeros = true,
                                           .can = can_compute_layer,
                                           .cost = csr_cost,
                                           .bytes = bytes_of_weights,
                                           .make = prepare_csr_step,
                                           .run = run_layer};

/* SPDX-License-Identifier: Apache-2.0
 * A product by code that is generated for its kept weights (jit/sparse_code.h). If no code can be
 * generated for its type of values here, the scalar reference computes it
 * (kernel/sparse/product.h). */
#include <math.h>
#include <string.h>

#include "base/divide.h"
#include "jit/sparse_code.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/* ---- Running ---- */

enum { ZERO_GRAIN = 1 << 16 };
/* Number of tiles and of rows in a work item of the scalar reference, which is used if there is no
 * code. */
enum { TILES = 32, ROWS = 32 };

typedef struct work {
  const laci_native_kernel *kernel;
  laci_sparse_operands o;
  int64_t row_parts;
} work;

static void multiply_items_by_reference(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const laci_sparse_convolution *convolution = &w->kernel->convolution;
  for (int64_t at = begin; at < end; at++) {
    const int64_t tile = at / w->row_parts * TILES, row = at % w->row_parts * ROWS;
    const laci_sparse_part part = {
        .tiles = convolution->tiles,
        .tile_first = tile,
        .tile_last = tile + TILES < convolution->n_tiles ? tile + TILES : convolution->n_tiles,
        .row_first = row,
        .row_last =
            row + ROWS < convolution->product.n_rows ? row + ROWS : convolution->product.n_rows};
    laci_sparse_multiply_scalar(&convolution->product, &w->o, &part);
  }
}

static void zero_border_of_items(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  memset(w->o.y + begin, 0, (size_t)(end - begin) * sizeof *w->o.y);
}

/** Writes zeros to all memory of the result that no kernel writes. */
static void zero_result_border(laci_net *net, const laci_native_layer_step *s, work *w) {
  const int64_t n_floats = laci_native_image_blocks(&s->out, s->layer->n_images) * s->out.n_floats;
  if (s->layer->scatter > 1 && s->layer->n_phases == 1) {
    laci_pool_for(net->pool, n_floats, ZERO_GRAIN, zero_border_of_items, w);
  } else {
    laci_native_fill_result_border(net, s, w->o.y);
  }
}

static void run_product_kernel(laci_net *net, const laci_native_layer_step *s, work *w) {
  const laci_sparse_convolution *convolution = &w->kernel->convolution;
  w->o.weight = convolution->kept.weight;
  w->row_parts = laci_ceil_div(convolution->product.n_rows, ROWS);
  if (w->kernel->code) {
    laci_sparse_code_run(w->kernel->code, &w->o, convolution->tiles, convolution->n_tiles,
                         net->pool, laci_net_tensor_data(net, s->scratch));
  } else {
    laci_pool_for(net->pool, laci_ceil_div(convolution->n_tiles, TILES) * w->row_parts, 1,
                  multiply_items_by_reference, w);
  }
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  work w = {.o = laci_native_layer_step_operands(net, step)};
  zero_result_border(net, step, &w);
  for (w.kernel = step->state; w.kernel; w.kernel = w.kernel->next)
    run_product_kernel(net, step, &w);
}

/* ---- Planning ---- */

static size_t scratch_bytes(const laci_net *net, const laci_native_kernel *kernel) {
  size_t most = 0;
  for (; kernel; kernel = kernel->next) {
    const size_t bytes =
        kernel->code ? laci_sparse_code_scratch_bytes(kernel->code, net->n_threads) : 0;
    if (bytes > most) most = bytes;
  }
  return most;
}

static void prepare_generated_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_layer *layer = step->layer;
  const laci_jit_isa isa = laci_native_code_isa(net, layer);
  laci_native_make_layer_kernels(net, step, laci_native_generate_code);
  const laci_native_kernel *kernel = step->state;
  if (!kernel) return;
  if (layer->mask) laci_native_add_fill_step(net, layer, kernel);
  step->scratch_bytes = scratch_bytes(net, kernel);
  step->kernel = laci_native_product_name(net, layer,
                                          isa != LACI_JIT_NONE ? laci_jit_isa_name(isa)
                                          : layer->int8        ? "compiled int8"
                                                               : "compiled");
}

/* ---- The algorithm's record ---- */

/** Returns the fraction of the peak rate that generated code reaches. Windows larger than one pixel
 * read the same pixels again soon. */
static double peak_share_of_code(const laci_net *net, const laci_native_layer *layer) {
  enum { MANY = 128 };
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  const bool far = laci_native_has_image_lanes(layer->n_images) &&
                   laci_native_is_1x1(&layer->window) && laci_cost_n_terms(&layer->window) > MANY;
  if (laci_native_code_isa(net, layer) == LACI_JIT_NONE) return c->compiled_share;
  return far && c->generated_far > 0 ? c->generated_far : c->generated_share;
}

/** Estimates the time of a layer. A chunk of tiles goes through all code before the next chunk;
 * each code block is read from memory while the previous one runs. */
static double generated_cost(const laci_net *net, const laci_native_layer *layer) {
  enum { CHUNK = 64 };
  const double half = 0.5;
  const laci_sparse_window *g = &layer->window;
  const laci_cost_figures *c = laci_cost_figures_of(net, layer);
  const double share_kept = layer->int8 ? (layer->kept > half ? 1 : half) : layer->kept;
  const double kept = (double)g->channels_out * laci_cost_n_terms(g) * share_kept;
  const bool together = !laci_native_is_1x1(g) && laci_native_code_can_read_unpadded(net, layer);
  const int64_t tiles = laci_cost_n_tiles(layer, together ? 0 : 1);
  const double worked = (double)(tiles * LACI_SPARSE_LANES) / peak_share_of_code(net, layer);
  const double chunks = (double)laci_ceil_div(tiles, CHUNK);
  const double waited = chunks * c->first, streamed = chunks * c->stream;
  const double around = (double)(tiles * LACI_SPARSE_LANES * g->channels_out) * c->result;
  return kept * (worked + waited > streamed ? worked + waited : streamed) + around;
}

/* Returns the bytes of code and weights, from a measured number of bytes for each kept weight
 * (bench/notes/sparse-kernels.md). */
static double estimate_code_bytes(const laci_net *net, const laci_native_layer *layer) {
  const laci_jit_isa isa = laci_native_code_isa(net, layer);
  const double avx2 = 27, others = 12.3;
  return isa == LACI_JIT_AVX2 ? avx2 : others;
}

static double bytes_of_weights(const laci_net *net, const laci_native_layer *layer) {
  return laci_cost_n_weights(layer) * layer->kept * estimate_code_bytes(net, layer);
}

/** Can generated code compute the layer? If no code can be generated, other algorithms (CSR,
 * grouped rows) compute constant floats. */
static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  const bool code = laci_native_code_isa(net, layer) != LACI_JIT_NONE;
  *why = "it is no product, has few zeros, or no code can be generated";
  return layer->kind == LACI_NATIVE_PRODUCT && !layer->is_dense &&
         (code || !laci_native_has_constant_floats(net, layer));
}

const laci_algorithm laci_algorithm_generated = {.name = "generated",
                                                 .timed_as = "sparse",
                                                 .kind = LACI_NATIVE_PRODUCT,
                                                 .generates = true,
                                                 .skips_zeros = true,
                                                 .can = can_compute_layer,
                                                 .is_unpadded = laci_native_code_can_read_unpadded,
                                                 .cost = generated_cost,
                                                 .bytes = bytes_of_weights,
                                                 .make = prepare_generated_step,
                                                 .run = run_layer};

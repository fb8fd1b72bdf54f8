/* SPDX-License-Identifier: Apache-2.0
 * What layers cost where they were not timed: tables of what a processor takes, in multiply-adds of
 * the peak of one core, and what the costs of several algorithms have in common. Each algorithm's
 * own cost is in its file. docs/sparse-kernels.md has the measurements that figures come from. */
#include "base/divide.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/* What all layers of floats have. */
#define OF_FLOATS .least_gain = 1e6, .step = 1e5, .depthwise_dense = 0.35

static const laci_cost_table of_f32 = {
    OF_FLOATS,          .generated_share = 0.8, .compiled_share = 0.22,
    .reorder = 50,      .stream = 60,           .csr = 0.22,
    .csr_window = 0.22, .depthwise = 0.1,       .depthwise_images = 0.27,
    .winograd = 0.9,    .parts = 1.5e6,         .tile = 750,
    .tile_far = 1600,   .transformed = 4,       .small = 1};
/* Code takes 27 bytes a weight, and a result has six rows' to share what is done around it. */
static const laci_cost_table of_avx2 = {OF_FLOATS,
                                        .generated_share = 0.77,
                                        .reorder = 80,
                                        .norm_of_images = 80,
                                        .first = 34,
                                        .result = 6,
                                        .generated_far = .67,
                                        .csr = 0.7,
                                        .csr_window = 0.57,
                                        .depthwise = 0.25,
                                        .depthwise_images = 0.2,
                                        .bundles = .97,
                                        .bundles_window = .87,
                                        .bundles_few = .78,
                                        .strip = .6,
                                        .bundles_weight = 26,
                                        .bundles_result = 16,
                                        .bundles_of_images = 25,
                                        .winograd = 0.92,
                                        .parts = 3e6,
                                        .by_gemm = 15,
                                        .in_blocks = 2.8,
                                        .in_groups = 2,
                                        .tile = 750,
                                        .tile_far = 750,
                                        .transformed = 6,
                                        .small = 1.18};
/* Nobody has measured it: what keeps half is dense where it is not timed, and what keeps less is
 * not. */
static const laci_cost_table of_neon = {OF_FLOATS,
                                        .generated_share = 0.5,
                                        .reorder = 50,
                                        .first = 22,
                                        .result = 6,
                                        .csr = 0.22,
                                        .csr_window = 0.22,
                                        .depthwise = 0.25,
                                        .depthwise_images = 0.2,
                                        .small = 1};
/* As many as four floats' multiply-adds take as long; what keeps less than half takes as long as
 * half, and what keeps more twice as long. Code takes 4.6 bytes a kept weight. */
static const laci_cost_table of_int8 = {
    .generated_share = 3.2, .compiled_share = 0.05, .stream = 23, .result = 1, .small = 1};
/* Twice as many multiply-adds take as long. */
static const laci_cost_table of_bf16 = {.least_gain = 2e6,
                                        .step = 4e5,
                                        .generated_share = 0.85,
                                        .compiled_share = 0.02,
                                        .reorder = 20,
                                        .stream = 80,
                                        .small = 1,
                                        .depthwise_dense = 1,
                                        .depthwise = 1,
                                        .depthwise_images = 1};

const laci_cost_table *laci_cost_table_of(const laci_net *net, const laci_sparse_layer *layer) {
  if (net->plan.bf16) return &of_bf16;
  if (layer && layer->bytes) return &of_int8;
  if (net->sparse->isa == LACI_JIT_NEON) return &of_neon;
  return net->sparse->isa == LACI_JIT_AVX2 ? &of_avx2 : &of_f32;
}

/* Of an element of a sum or a pool of floats, and of one of bytes. */
static const double of_light = 50, of_light_bytes = 15;
static const double of_pool = 150; /* of floats, by whomever: both wait for memory */

bool laci_cost_is_light(const laci_sparse_layer *layer) {
  return layer->kind == LACI_SPARSE_SUM || layer->kind == LACI_SPARSE_POOL;
}

double laci_cost_light(const laci_net *net, const laci_sparse_layer *layer) {
  (void)net;
  return laci_cost_results(layer) * (layer->bytes ? of_light_bytes : of_pool);
}

double laci_cost_light_dense(const laci_net *net, const laci_sparse_layer *layer) {
  if (!layer->bytes) return laci_cost_results(layer) * of_pool;
  return laci_cost_results(layer) * (of_light + laci_cost_table_of(net, NULL)->reorder);
}

double laci_cost_results(const laci_sparse_layer *layer) {
  return (double)layer->n_images * (double)layer->window.channels_out *
         (double)(layer->window.out_h * layer->window.out_w);
}

double laci_cost_terms(const laci_sparse_window *g) { return (double)laci_sparse_row_weights(g); }

/** Pixels walk along one long row; what is between two rows, most windows need one of. */
int64_t laci_cost_tiles(const laci_sparse_layer *layer, int64_t between) {
  const laci_sparse_window *g = &layer->window;
  if (laci_pictures_by_images(layer->n_images)) {
    return laci_ceil_div(layer->n_images, LACI_SPARSE_LANES) * g->out_h * g->out_w;
  }
  return layer->n_images *
         laci_ceil_div((g->out_h - 1) * (g->out_w + between) + g->out_w, LACI_SPARSE_LANES);
}

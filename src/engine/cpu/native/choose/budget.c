/* SPDX-License-Identifier: Apache-2.0
 * How much memory weights may take: half as many weights with their code, or a window's transformed
 * ones, are more bytes than all weights without anything. Where it becomes more than 1.7 times as
 * much, and more than dense kernels would take (oneDNN transforms windows, too), layers of
 * Winograd's algorithm are done by what takes less, those first that lose the least time for it. */
#include <math.h>

#include "engine/cpu/onednn/convolution.h"
#include "engine/cpu/lower/product.h"
#include "kernel/sparse/winograd4.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithms.h"

/* Of a kept weight. docs/sparse-kernels.md */
static double code_bytes(const laci_net *net, const laci_sparse_layer *layer) {
  const laci_jit_isa isa = laci_sparse_isa_of(net, layer);
  const double avx2 = 27, others = 12.3;
  return isa == LACI_JIT_AVX2 ? avx2 : others;
}

static double bytes_by(const laci_net *net, const laci_sparse_layer *layer, laci_sparse_way way) {
  const laci_sparse_window *g = &layer->window;
  const double n = (double)(g->channels_out * laci_sparse_row_weights(g));
  const double of_bundles = 5.4, of_lists = 8;
  switch (way) {
    case LACI_SPARSE_WAY_SPARSE: return n * layer->kept * code_bytes(net, layer);
    case LACI_SPARSE_WAY_WINOGRAD: return (double)laci_winograd4_bytes(g);
    case LACI_SPARSE_WAY_LISTS:
      return n * layer->kept * (laci_sparse_bundled_strips(layer, 1) > 0 ? of_bundles : of_lists);
    default: return n * sizeof(float);
  }
}

/* By dense kernels. Of one image with few pixels or channels oneDNN has tiles of 2 x 2 results, and
 * 16 points; else 36. */
static double dense_bytes(const laci_net *net, const laci_sparse_layer *layer) {
  enum { FEW_PIXELS = 16 * 16, FEW_CHANNELS = 127, POINTS = 16 };
  const laci_sparse_window *g = &layer->window;
  if (layer->rows || !laci_conv_gains_by_winograd(net, layer->fused)) {
    return bytes_by(net, layer, LACI_SPARSE_WAY_DENSE);
  }
  const double transformed = (double)laci_winograd4_bytes(g);
  const bool few = g->out_h * g->out_w <= FEW_PIXELS || g->channels_in <= FEW_CHANNELS;
  return layer->n_images == 1 && few ? transformed * POINTS / (double)laci_winograd4_points(g)
                                     : transformed;
}

/* Of all weights, as they are. */
static double all_bytes(const laci_net *net) {
  double n = 0;
  for (int v = 0; v < net->plan.graph->n_values; v++) {
    const laci_constant *constant = net->plan.values[v].constant;
    if (constant && !constant->i) n += (double)constant->count;
  }
  return n * sizeof(float);
}

/* What else it could be done by, for the least cost. */
static laci_sparse_way other_way(const laci_sparse_costs *costs, int at) {
  const bool lists = costs->of[LACI_SPARSE_WAY_LISTS][at] < costs->of[LACI_SPARSE_WAY_SPARSE][at];
  return lists ? LACI_SPARSE_WAY_LISTS : LACI_SPARSE_WAY_SPARSE;
}

/* What the layer's way saves of time for each byte that it takes more; infinite: none. */
static double gain(const laci_net *net, const laci_sparse_costs *costs, int at) {
  const laci_sparse_layer *layer = &net->sparse->layers[at];
  const laci_sparse_way other = other_way(costs, at);
  const double cost = costs->of[other][at],
               more = bytes_by(net, layer, LACI_SPARSE_WAY_WINOGRAD) - bytes_by(net, layer, other);
  if (layer->way != LACI_SPARSE_WAY_WINOGRAD || !isfinite(cost) || more <= 0) return INFINITY;
  return (cost - costs->chosen[at]) / more;
}

/* The layer that loses the least by another way; -1: none has one that takes less. */
static int least_gain(const laci_net *net, const laci_sparse_costs *costs) {
  int least = -1;
  double best = INFINITY;
  for (int at = 0; at < net->sparse->n_layers; at++) {
    const double of = gain(net, costs, at);
    if (of < best) {
      best = of;
      least = at;
    }
  }
  return least;
}

/* Returns by how many bytes weights become less. Dense kernels are not to take the layer instead
 * where they would save nothing. */
static double take_other_way(laci_net *net, laci_sparse_costs *costs, int at) {
  const double much = 1.5;
  laci_sparse_layer *layer = &net->sparse->layers[at];
  double *of_dense = &costs->of[LACI_SPARSE_WAY_DENSE][at];
  const double before = bytes_by(net, layer, layer->way);
  layer->way = other_way(costs, at);
  costs->chosen[at] = costs->of[layer->way][at];
  const double bytes = bytes_by(net, layer, layer->way);
  if (dense_bytes(net, layer) > much * bytes) *of_dense = fmax(*of_dense, costs->chosen[at]);
  return before - bytes;
}

/* What dense kernels cost between sparse layers, with reorders on both sides. */
static double dense_between(const laci_sparse_costs *costs, const laci_sparse_layer *layer,
                            int at) {
  const laci_sparse_window *g = &layer->window;
  const double in = (double)(g->channels_in * g->h * g->w);
  const double out = (double)(g->channels_out * g->out_h * g->out_w);
  return costs->of[LACI_SPARSE_WAY_DENSE][at] + 2 * costs->step +
         costs->reorder * (in + out) * (double)layer->n_images;
}

void laci_sparse_save_memory(laci_net *net, laci_sparse_costs *costs) {
  const laci_sparse_net *sparse = net->sparse;
  const double times = 1.7, all = all_bytes(net);
  double bytes = all - laci_product_sparse_saves(net), dense = all;
  for (int at = 0; at < sparse->n_layers; at++) {
    const laci_sparse_layer *layer = &sparse->layers[at];
    if (layer->kind != LACI_SPARSE_PRODUCT) continue; /* nothing but its weights, if it has any */
    const double by_dense = dense_bytes(net, layer);
    const bool gains = costs->chosen[at] < dense_between(costs, layer, at);
    const double raw = bytes_by(net, layer, LACI_SPARSE_WAY_DENSE);
    dense += by_dense - raw;
    bytes += (gains ? bytes_by(net, layer, layer->way) : by_dense) - raw;
  }
  const double most = fmax(dense, times * all);
  for (int at = 0; bytes > most && (at = least_gain(net, costs)) >= 0;) {
    bytes -= take_other_way(net, costs, at);
  }
}

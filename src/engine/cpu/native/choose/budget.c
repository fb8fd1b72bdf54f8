/* SPDX-License-Identifier: Apache-2.0
 * Limits the memory of weights. With generated code, half of the weights take more bytes than all
 * weights of the file, and so do transformed weights of Winograd's algorithm. The limit is 1.7
 * times the bytes of all weights, or what dense kernels would take if that is more (oneDNN
 * transforms weights, too). Beyond it, layers of Winograd's algorithm get another one that takes
 * less memory; those that lose the least time for each byte come first. */
#include <math.h>

#include "engine/cpu/onednn/convolution.h"
#include "kernel/sparse/winograd4.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static double weight_bytes_by_algorithm(const laci_net *net, const laci_native_layer *layer,
                                        laci_algorithm_id id) {
  const laci_algorithm *algorithm = laci_algorithm_by_id(id);
  return algorithm->bytes ? algorithm->bytes(net, layer) : 0;
}

/* Returns the bytes of the layer's weights in dense kernels, where oneDNN may use Winograd's
 * algorithm. For one image with few pixels or channels its tiles have 2 x 2 results and 16 points;
 * otherwise 36 points. */
static double weight_bytes_of_dense_kernel(const laci_net *net, const laci_native_layer *layer) {
  enum { FEW_PIXELS = 16 * 16, FEW_CHANNELS = 127, POINTS = 16 };
  const laci_sparse_window *g = &layer->window;
  if (layer->rows || !laci_conv_is_winograd_faster(net, layer->fused)) {
    return weight_bytes_by_algorithm(net, layer, LACI_ALGORITHM_dense);
  }
  const double transformed = (double)laci_winograd4_weight_bytes(g);
  const bool few = g->out_h * g->out_w <= FEW_PIXELS || g->channels_in <= FEW_CHANNELS;
  return layer->n_images == 1 && few ? transformed * POINTS / (double)laci_winograd4_n_points(g)
                                     : transformed;
}

/* Returns the bytes of all weights of the network, untransformed. */
static double all_weight_bytes(const laci_net *net) {
  double n = 0;
  for (int v = 0; v < net->plan.graph->n_values; v++) {
    const laci_constant *constant = net->plan.values[v].constant;
    if (constant && !constant->i) n += (double)constant->count;
  }
  return n * sizeof(float);
}

/* Returns the algorithm that costs least for the layer among those that do not transform
 * weights. */
static laci_algorithm_id cheapest_without_transform(const laci_native_layer *layer,
                                                    const laci_native_costs *costs, int at) {
  laci_algorithm_id least = laci_algorithm_default_of_kind(layer->kind);
  for (int id = LACI_ALGORITHM_dense + 1; id < LACI_N_ALGORITHMS; id++) {
    if (laci_algorithm_by_id(id)->transforms) continue;
    if (costs->of[id][at] < costs->of[least][at]) least = id;
  }
  return least;
}

/* Returns the time that the algorithm of the layer with index `at` saves for each byte that it
 * takes more than the cheapest one without transformed weights; infinite: that one takes no less
 * memory. */
static double gain_per_byte(const laci_net *net, const laci_native_costs *costs, int at) {
  const laci_native_layer *layer = &net->native->layers[at];
  const laci_algorithm_id other = cheapest_without_transform(layer, costs, at);
  if (!laci_algorithm_by_id(layer->algorithm)->transforms) return INFINITY;
  const double cost = costs->of[other][at];
  const double more = weight_bytes_by_algorithm(net, layer, layer->algorithm) -
                      weight_bytes_by_algorithm(net, layer, other);
  if (!isfinite(cost) || more <= 0) return INFINITY;
  return (cost - costs->chosen[at]) / more;
}

/* Returns the index of the layer that loses the least time for each byte that another algorithm
 * saves; -1: no layer has an algorithm that takes less memory. */
static int find_layer_of_least_gain(const laci_net *net, const laci_native_costs *costs) {
  int least = -1;
  double best = INFINITY;
  for (int at = 0; at < net->native->n_layers; at++) {
    const double of = gain_per_byte(net, costs, at);
    if (of < best) {
      best = of;
      least = at;
    }
  }
  return least;
}

/* Gives the layer the cheapest algorithm without transformed weights, and returns by how many bytes
 * that reduces its weights. If dense kernels would not save memory either, their cost is raised so
 * that they are not chosen. */
static double use_algorithm_without_transform(laci_net *net, laci_native_costs *costs, int at) {
  const double much = 1.5;
  laci_native_layer *layer = &net->native->layers[at];
  double *of_dense = &costs->of[LACI_ALGORITHM_dense][at];
  const double before = weight_bytes_by_algorithm(net, layer, layer->algorithm);
  layer->algorithm = cheapest_without_transform(layer, costs, at);
  costs->chosen[at] = costs->of[layer->algorithm][at];
  const double bytes = weight_bytes_by_algorithm(net, layer, layer->algorithm);
  if (weight_bytes_of_dense_kernel(net, layer) > much * bytes)
    *of_dense = fmax(*of_dense, costs->chosen[at]);
  return before - bytes;
}

/* Returns the cost of a layer by dense kernels between native layers, with reorders on both
 * sides. */
static double dense_cost_with_reorders(const laci_native_costs *costs,
                                       const laci_native_layer *layer, int at) {
  const laci_sparse_window *g = &layer->window;
  const double in = (double)(g->channels_in * g->h * g->w);
  const double out = (double)(g->channels_out * g->out_h * g->out_w);
  return costs->of[LACI_ALGORITHM_dense][at] + 2 * costs->step +
         costs->reorder * (in + out) * (double)layer->n_images;
}

void laci_native_reduce_weight_memory(laci_net *net, laci_native_costs *costs) {
  const laci_native_net *native = net->native;
  const double times = 1.7, all = all_weight_bytes(net);
  double bytes = all - laci_native_bytes_saved_by_sparse_products(net), dense = all;
  for (int at = 0; at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (layer->kind != LACI_NATIVE_PRODUCT) continue; /* other kinds have few or no weights */
    const double by_dense = weight_bytes_of_dense_kernel(net, layer);
    const bool gains = costs->chosen[at] < dense_cost_with_reorders(costs, layer, at);
    const double raw = weight_bytes_by_algorithm(net, layer, LACI_ALGORITHM_dense);
    dense += by_dense - raw;
    bytes += (gains ? weight_bytes_by_algorithm(net, layer, layer->algorithm) : by_dense) - raw;
  }
  const double most = fmax(dense, times * all);
  for (int at = 0; bytes > most && (at = find_layer_of_least_gain(net, costs)) >= 0;) {
    bytes -= use_algorithm_without_transform(net, costs, at);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Dense kernels: the cost of a layer if it is not chosen to be native. */
#include <math.h>

#include "cpu/cpu.h"
#include "engine/cpu/onednn/convolution.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static bool has_few_pixels(const laci_native_layer *layer) {
  enum { FEW = 8 * 8 };
  return layer->n_images * layer->window.out_h * layer->window.out_w <= FEW;
}

/** Returns the time of oneDNN's Winograd kernels divided by that of its direct kernels. */
static double winograd_time_factor(const laci_cost_figures *c, const laci_native_layer *layer) {
  enum { SMALL = 8 * 8, LARGE = 16 * 16, MANY = 128 };
  const laci_sparse_window *g = &layer->window;
  const int64_t pixels = g->out_h * g->out_w;
  const bool many = g->channels_in / g->groups >= MANY && g->channels_out / g->groups >= MANY;
  if (pixels <= SMALL) return c->onednn_small;
  if (pixels <= LARGE && layer->n_images == 1) return c->onednn_few;
  return many && layer->n_images == 1 ? c->onednn_large : c->onednn_winograd;
}

/** Returns the factor by which a grouped convolution with few channels takes longer than its
 * multiply-adds alone would. If oneDNN has no code for it, it copies the pixels of each window
 * together for small matrix products. */
static double grouped_convolution_factor(const laci_cost_figures *c, const laci_sparse_window *g) {
  enum { BLOCK = 8, WHOLE = 64 };
  const int64_t in = g->channels_in / g->groups, out = g->channels_out / g->groups;
  if (g->groups == 1 || c->by_gemm == 0 || in >= WHOLE) return 1;
  if (in % BLOCK != 0 || out % BLOCK != 0) return c->by_gemm;
  return in == BLOCK ? c->in_blocks : c->in_groups;
}

double laci_cost_few_results_factor(const laci_net *net, const laci_native_layer *layer) {
  /* BLOCK: results that an AVX2 kernel of oneDNN computes together. FEW_TAPS: with so few, a whole
   * block gains less than reorders around it take. */
  enum { BLOCK = 8, FEW_TAPS = 9 };
  const double alone = 2; /* as long as in layers of several blocks, which share what is loaded */
  const laci_sparse_window *g = &layer->window;
  const bool measured = laci_cpu_level_in_force() == LACI_CPU_AVX2 && !net->plan.bf16;
  if (!measured || layer->rows || g->groups > 1 || g->channels_out > BLOCK) return 1;
  if (g->channels_out == BLOCK && g->kernel_h * g->kernel_w <= FEW_TAPS) return 1;
  return alone * BLOCK / (double)g->channels_out;
}

/** Returns the cost of reading the weights from memory. Those of a few layers stay in a cache. */
static double weight_traffic_cost(const laci_cost_figures *c, const laci_native_layer *layer) {
  const double n = laci_cost_n_weights(layer);
  return n > c->vector_weights ? n * c->dense_weight : 0;
}

/** Returns the figures of dense kernels for a layer. In a layer of int8, they compute floats. */
static const laci_cost_figures *find_dense_figures(const laci_net *net,
                                                   const laci_native_layer *layer) {
  return layer->int8 ? &net->costs->tables[LACI_COSTS_f32]->figures[LACI_COSTS_f32]
                     : laci_cost_figures_of(net, layer);
}

/** Returns the cost of reading the matrix of a product of int8, which may have few rows. */
static double matrix_traffic_cost(const laci_cost_figures *c, const laci_native_layer *layer) {
  enum { SUM_OPERANDS = 3 };
  return layer->rows && layer->int8 ? laci_cost_n_weights(layer) * c->light / SUM_OPERANDS : 0;
}

/** Returns the share of a window's rows, or of its columns, that read pixels for some result. n:
 * their number. last: distance from what a tap reads for the first result to what it reads for the
 * last. size: number of pixels in the image. */
static double share_of_taps(int64_t n, int64_t dilation, int64_t pad, int64_t last, int64_t size) {
  int64_t read = 0;
  for (int64_t tap = 0; tap < n; tap++) {
    const int64_t first = tap * dilation - pad;
    read += first < size && first + last >= 0;
  }
  return (double)read / (double)n;
}

/** Returns the share of a window's taps that dense kernels multiply: they skip rows and columns of
 * taps that only read padding. Dilated windows of small images have such. */
static double share_of_taps_in_image(const laci_sparse_window *g) {
  return share_of_taps(g->kernel_h, g->dilation_h, g->pad_top, (g->out_h - 1) * g->stride_h, g->h) *
         share_of_taps(g->kernel_w, g->dilation_w, g->pad_left, (g->out_w - 1) * g->stride_w, g->w);
}

static double dense_cost(const laci_net *net, const laci_native_layer *layer) {
  if (laci_cost_is_memory_bound(layer)) return laci_cost_of_memory_bound_dense(net, layer);
  const double products = laci_cost_n_results(layer) * laci_cost_n_terms(&layer->window) *
                          share_of_taps_in_image(&layer->window);
  const laci_cost_figures *c = find_dense_figures(net, layer);
  if (layer->kind == LACI_NATIVE_DEPTHWISE) return products / c->depthwise_dense;
  const double groups = grouped_convolution_factor(c, &layer->window);
  if (groups > 1) return products * groups;
  const bool direct = layer->rows || net->plan.bf16;
  if (!direct && laci_conv_is_winograd_faster(net, layer->fused))
    return products * winograd_time_factor(c, layer) + weight_traffic_cost(c, layer);
  const double small =
      (has_few_pixels(layer) ? c->small : 1) * laci_cost_few_results_factor(net, layer);
  return fmax(products * small, matrix_traffic_cost(c, layer)) + weight_traffic_cost(c, layer);
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net, (void)layer, (void)why;
  return true;
}

static double bytes_of_weights(const laci_net *net, const laci_native_layer *layer) {
  (void)net;
  return laci_cost_n_weights(layer) * sizeof(float);
}

const laci_algorithm laci_algorithm_dense = {.name = "dense",
                                             .timed_as = "dense",
                                             .can = can_compute_layer,
                                             .cost = dense_cost,
                                             .bytes = bytes_of_weights};

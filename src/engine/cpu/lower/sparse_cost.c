/* SPDX-License-Identifier: Apache-2.0
 * What layers cost by dense and by sparse kernels: the seconds that they were timed at, where all
 * of them were, or else an estimate in multiply-adds of the peak, from the layer's shape, the share
 * of weights that are kept, and what code streams from memory. docs/sparse-kernels.md has the
 * measurements that the estimates come from. */
#include "base/divide.h"
#include "base/timings.h"
#include "engine/cpu/lower/conv.h"
#include "engine/cpu/lower/pictures.h"
#include "engine/cpu/lower/sparse.h"

/* ---- Estimates, in multiply-adds of the peak of one core ---- */

static const double least_gain = 1e6;      /* with less to be gained, no layer is sparse */
static const double step_cost = 1e5;       /* of a step, whatever it does */
static const double winograd_cost = 0.58;  /* of direct's, where oneDNN has it */
static const double winograd_small = 0.8;  /* that of pictures of at most 8 x 8 */
static const double generated_share = 0.8; /* of the peak that generated code reaches */
static const double compiled_share = 0.22;
static const double reorder_cost = 50; /* a float */
static const double stream_cost =
    60; /* a weight and its code, 12 bytes, while others are at work */

static double results(const laci_sparse_layer *layer) {
  return (double)layer->n_images * (double)layer->window.channels_out *
         (double)(layer->window.out_h * layer->window.out_w);
}

static double weights_each(const laci_sparse_window *g) {
  return (double)(g->channels_in / g->groups * g->kernel_h * g->kernel_w);
}

static double dense_cost(const laci_net *net, const laci_sparse_layer *layer) {
  enum { SMALL = 64 };
  const laci_sparse_window *g = &layer->window;
  const double products = results(layer) * weights_each(g);
  if (layer->rows || !laci_conv_gains_by_winograd(net, layer->fused)) return products;
  return products * (g->out_h * g->out_w <= SMALL ? winograd_small : winograd_cost);
}

/** Pixels walk along one long row, with one between two rows as most windows need. */
static int64_t tiles_of(const laci_sparse_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  if (laci_pictures_by_images(layer->n_images)) {
    return laci_ceil_div(layer->n_images, LACI_SPARSE_LANES) * g->out_h * g->out_w;
  }
  return layer->n_images *
         laci_ceil_div((g->out_h - 1) * (g->out_w + 1) + g->out_w, LACI_SPARSE_LANES);
}

/** A chunk of tiles goes through all code before the next one; code that comes from memory does so
 * while the piece before it is at work. */
static double sparse_cost(const laci_net *net, const laci_sparse_layer *layer) {
  enum { CHUNK = 64 };
  const laci_sparse_window *g = &layer->window;
  const double kept = (double)g->channels_out * weights_each(g) * layer->kept;
  const int64_t tiles = tiles_of(layer);
  const double share = net->sparse->isa == LACI_JIT_NONE ? compiled_share : generated_share;
  const double worked = (double)(tiles * LACI_SPARSE_LANES) / share;
  const double streamed = (double)laci_ceil_div(tiles, CHUNK) * stream_cost;
  return kept * (worked > streamed ? worked : streamed);
}

static void estimate(const laci_net *net, laci_sparse_costs *costs) {
  const laci_sparse_net *sparse = net->sparse;
  costs->reorder = reorder_cost;
  costs->step = step_cost;
  costs->least_gain = least_gain;
  for (int at = 0; at < sparse->n_layers; at++) {
    costs->dense[at] = dense_cost(net, &sparse->layers[at]);
    costs->sparse[at] = sparse_cost(net, &sparse->layers[at]);
  }
}

/* ---- Timings ---- */

/** Of a layer, or of reorders (NULL). */
static bool find_time(const laci_net *net, const laci_timings *timings,
                      const laci_sparse_layer *layer, laci_sparse_way way, double *seconds) {
  char name[LACI_SPARSE_NAME];
  laci_sparse_name(net, layer, way, name);
  return laci_timings_find(timings, name, seconds);
}

bool laci_sparse_find_timings(const laci_net *net, const laci_timings *timings,
                              laci_sparse_costs *costs) {
  const laci_sparse_net *sparse = net->sparse;
  bool known = timings && find_time(net, timings, NULL, LACI_SPARSE_WAY_REORDER, &costs->reorder);
  for (int at = 0; at < sparse->n_layers && known; at++) {
    const laci_sparse_layer *layer = &sparse->layers[at];
    known = find_time(net, timings, layer, LACI_SPARSE_WAY_DENSE, &costs->dense[at]) &&
            find_time(net, timings, layer, LACI_SPARSE_WAY_SPARSE, &costs->sparse[at]);
  }
  costs->step = costs->least_gain = 0; /* what is timed has it in it */
  return known;
}

bool laci_sparse_new_costs(laci_net *net, laci_sparse_costs *costs) {
  const size_t n = (size_t)net->sparse->n_layers;
  costs->dense = laci_plan_new(&net->plan, n, sizeof *costs->dense);
  costs->sparse = laci_plan_new(&net->plan, n, sizeof *costs->sparse);
  return costs->dense && costs->sparse;
}

bool laci_sparse_find_costs(laci_net *net, laci_sparse_costs *costs) {
  if (!laci_sparse_new_costs(net, costs)) return false;
  if (!laci_sparse_find_timings(net, net->timings, costs)) estimate(net, costs);
  return true;
}

/* SPDX-License-Identifier: Apache-2.0
 * What layers cost by dense and by sparse kernels, by each way: the seconds that they were timed
 * at, where all of them were, or else estimates (estimate.c). */
#include <math.h>

#include "base/timings.h"
#include "cpu/cpu.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithms.h"

enum { N_WAYS = LACI_SPARSE_WAY_REORDER };

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
    for (int way = 0; way < N_WAYS && known; way++) {
      costs->of[way][at] = INFINITY;
      if (!laci_sparse_can(net, layer, way)) continue;
      known = find_time(net, timings, layer, way, &costs->of[way][at]);
    }
  }
  costs->step = costs->least_gain = costs->norm_of_images = 0; /* what is timed has it in it */
  return known;
}

bool laci_sparse_new_costs(laci_net *net, laci_sparse_costs *costs) {
  const size_t n = (size_t)net->sparse->n_layers;
  for (int way = 0; way < N_WAYS; way++) {
    costs->of[way] = laci_plan_new(&net->plan, n, sizeof *costs->of[way]);
  }
  costs->chosen = laci_plan_new(&net->plan, n, sizeof *costs->chosen);
  return !net->plan.status;
}

/** Without generated code, lists stand for it, whatever they cost: the compiled kernel is the
 * definition. */
static void choose_way(const laci_net *net, laci_sparse_layer *layer, int at,
                       laci_sparse_costs *costs) {
  layer->way = laci_sparse_way_or(net, layer, LACI_SPARSE_WAY_SPARSE);
  for (int way = LACI_SPARSE_WAY_SPARSE; way < N_WAYS; way++) {
    if (way == LACI_SPARSE_WAY_SPARSE && layer->way == LACI_SPARSE_WAY_LISTS) continue;
    if (costs->of[way][at] < costs->of[layer->way][at]) layer->way = way;
  }
  costs->chosen[at] = costs->of[layer->way][at];
}

/* Where the constants were not measured, a sparse way must be clearly faster than the dense one: a
 * ResNet-20 that they expected to gain took 1.22 times as long on another maker's processor. */
static const double margin = 1.2;

/** Estimates but for those of dense ways, times that margin. NEON's constants have one of their
 * own.
 */
static void doubt_estimates(const laci_net *net, laci_sparse_costs *costs) {
  if (laci_cpu_is_measured() || laci_cpu() == LACI_CPU_NEON) return;
  for (int at = 0; at < net->sparse->n_layers; at++) {
    for (int way = 0; way < LACI_SPARSE_WAY_REORDER; way++) {
      if (way != LACI_SPARSE_WAY_DENSE) costs->of[way][at] *= margin;
    }
  }
}

bool laci_sparse_find_costs(laci_net *net, laci_sparse_costs *costs) {
  if (!laci_sparse_new_costs(net, costs)) return false;
  if (!laci_sparse_find_timings(net, net->timings, costs)) {
    laci_sparse_estimate(net, costs);
    doubt_estimates(net, costs);
  }
  for (int at = 0; at < net->sparse->n_layers; at++) {
    choose_way(net, &net->sparse->layers[at], at, costs);
  }
  return true;
}

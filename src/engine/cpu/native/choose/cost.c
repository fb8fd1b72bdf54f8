/* SPDX-License-Identifier: Apache-2.0
 * Finds the costs of layers by each algorithm: measured times in seconds if all were measured,
 * otherwise estimates (estimate.c). */
#include <math.h>

#include "base/timings.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/** Finds the measured time of a layer by algorithm `id`; layer NULL: that of reorders. False: it
 * was not measured. */
static bool find_measured_time(const laci_net *net, const laci_timings *timings,
                               const laci_native_layer *layer, laci_algorithm_id id,
                               double *seconds) {
  char name[LACI_NATIVE_NAME];
  laci_native_layer_name(net, layer, id, name);
  return laci_timings_find(timings, name, seconds);
}

bool laci_native_find_timings(const laci_net *net, const laci_timings *timings,
                              laci_native_costs *costs) {
  const laci_native_net *native = net->native;
  bool known =
      timings && find_measured_time(net, timings, NULL, LACI_ALGORITHM_dense, &costs->reorder);
  for (int at = 0; at < native->n_layers && known; at++) {
    const laci_native_layer *layer = &native->layers[at];
    for (int id = 0; id < LACI_N_ALGORITHMS && known; id++) {
      costs->of[id][at] = INFINITY;
      if (!laci_native_algorithm_can_compute(net, layer, id)) continue;
      known = find_measured_time(net, timings, layer, id, &costs->of[id][at]);
    }
  }
  costs->step = costs->least_gain = costs->norm_of_images = 0; /* measured times include these */
  costs->quantization = costs->reorder; /* both read and write each float once */
  return known;
}

bool laci_native_alloc_costs(laci_net *net, laci_native_costs *costs) {
  const size_t n = (size_t)net->native->n_layers;
  for (int id = 0; id < LACI_N_ALGORITHMS; id++) {
    costs->of[id] = laci_plan_alloc(&net->plan, n, sizeof *costs->of[id]);
  }
  costs->chosen = laci_plan_alloc(&net->plan, n, sizeof *costs->chosen);
  return !net->plan.status;
}

static void choose_cheapest_algorithm(const laci_net *net, laci_native_layer *layer, int at,
                                      laci_native_costs *costs) {
  layer->algorithm = laci_algorithm_or_fallback(net, layer, LACI_ALGORITHM_dense);
  for (int id = LACI_ALGORITHM_dense + 1; id < LACI_N_ALGORITHMS; id++) {
    if (costs->of[id][at] < costs->of[layer->algorithm][at]) layer->algorithm = id;
  }
  costs->chosen[at] = costs->of[layer->algorithm][at];
}

/** Multiplies the estimates of native algorithms by a margin if the cost figures are those of
 * another processor. */
static void multiply_by_margin(const laci_net *net, laci_native_costs *costs) {
  for (int at = 0; at < net->native->n_layers; at++) {
    for (int id = 0; id < LACI_N_ALGORITHMS; id++) {
      if (id != LACI_ALGORITHM_dense) costs->of[id][at] *= net->costs->margin;
    }
  }
}

bool laci_native_find_costs(laci_net *net, laci_native_costs *costs) {
  if (!laci_native_alloc_costs(net, costs)) return false;
  if (!laci_native_find_timings(net, net->timings, costs)) {
    laci_native_estimate_costs(net, costs);
    multiply_by_margin(net, costs);
  }
  for (int at = 0; at < net->native->n_layers; at++) {
    choose_cheapest_algorithm(net, &net->native->layers[at], at, costs);
  }
  return true;
}

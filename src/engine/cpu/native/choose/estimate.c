/* SPDX-License-Identifier: Apache-2.0
 * Estimates what layers cost by each algorithm, by the algorithms' formulas: from shape, the share
 * of weights that are kept, and the processor's figures (costs/costs.h). */
#include <math.h>

#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static double estimate_cost_by_algorithm(const laci_net *net, const laci_native_layer *layer,
                                         laci_algorithm_id id) {
  return laci_native_algorithm_can_compute(net, layer, id)
             ? laci_algorithm_by_id(id)->cost(net, layer)
             : INFINITY;
}

void laci_native_estimate_costs(const laci_net *net, laci_native_costs *costs) {
  const double of_sum = 2.0 / 3; /* a sum reads or writes three floats for each result, a
                                    quantization two */
  const laci_native_net *native = net->native;
  const laci_cost_figures *c = laci_cost_figures_of(net, NULL);
  costs->reorder = c->reorder;
  costs->quantization = c->light * of_sum;
  costs->norm_of_images = c->norm_of_images;
  costs->step = c->step;
  costs->least_gain = c->least_gain;
  for (int at = 0; at < native->n_layers; at++) {
    for (int id = 0; id < LACI_N_ALGORITHMS; id++) {
      costs->of[id][at] = estimate_cost_by_algorithm(net, &native->layers[at], id);
    }
  }
}

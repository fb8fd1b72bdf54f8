/* SPDX-License-Identifier: Apache-2.0
 * The list of algorithms (algorithm.def), and which of them can compute a layer. */
#include <string.h>

#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/* ---- The list ---- */

static const laci_algorithm *const algorithms[LACI_N_ALGORITHMS] = {
#define LAC_ALGORITHM(name) [LACI_ALGORITHM_##name] = &laci_algorithm_##name,
#include "engine/cpu/native/algorithms/algorithm.def"
#undef LAC_ALGORITHM
};

const laci_algorithm *laci_algorithm_by_id(laci_algorithm_id id) { return algorithms[id]; }

bool laci_algorithm_find(const char *name, laci_algorithm_id *id) {
  for (int at = 0; at < LACI_N_ALGORITHMS; at++) {
    *id = (laci_algorithm_id)at;
    if (strcmp(algorithms[at]->name, name) == 0) return true;
  }
  return false;
}

bool laci_native_algorithm_can_compute(const laci_net *net, const laci_native_layer *layer,
                                       laci_algorithm_id id) {
  const char *why;
  return algorithms[id]->can(net, layer, &why);
}

laci_algorithm_id laci_algorithm_default_of_kind(laci_native_kind kind) {
  int id = LACI_ALGORITHM_dense + 1;
  while (algorithms[id]->kind != kind) id++;
  return (laci_algorithm_id)id;
}

bool laci_native_can_gain_without_zeros(const laci_net *net, const laci_native_layer *layer) {
  for (int id = 0; id < LACI_N_ALGORITHMS; id++) {
    const laci_algorithm *algorithm = algorithms[id];
    if (algorithm->gains_without_zeros &&
        laci_native_algorithm_can_compute(net, layer, (laci_algorithm_id)id) &&
        algorithm->gains_without_zeros(net, layer)) {
      return true;
    }
  }
  return false;
}

/* ---- Which algorithm computes a layer ---- */

bool laci_native_is_short_of_memory(const laci_net *net) {
  enum { MARGIN = 2 }; /* factor for the bytes of weights, since other memory is needed, too */
  double bytes = 0;
  for (int id = 0; id < LACI_N_ALGORITHMS; id++) {
    for (int at = 0; algorithms[id]->transforms && at < net->native->n_layers; at++) {
      const laci_native_layer *layer = &net->native->layers[at];
      if (!laci_native_algorithm_can_compute(net, layer, (laci_algorithm_id)id)) continue;
      bytes += algorithms[id]->bytes(net, layer);
    }
  }
  return !laci_plan_has_budget_for(&net->plan, (uint64_t)(MARGIN * bytes));
}

laci_algorithm_id laci_algorithm_or_fallback(const laci_net *net, const laci_native_layer *layer,
                                             laci_algorithm_id wanted) {
  if (wanted != LACI_ALGORITHM_dense && laci_native_algorithm_can_compute(net, layer, wanted))
    return wanted;
  const bool codeless = wanted != LACI_ALGORITHM_dense && !algorithms[wanted]->generates;
  for (int at_once = codeless; at_once >= 0; at_once--) {
    for (int id = LACI_ALGORITHM_dense + 1; id < LACI_N_ALGORITHMS; id++) {
      if (at_once && algorithms[id]->generates) continue;
      if (laci_native_algorithm_can_compute(net, layer, (laci_algorithm_id)id))
        return (laci_algorithm_id)id;
    }
  }
  return laci_algorithm_default_of_kind(layer->kind);
}

size_t laci_native_max_code_bytes(const laci_net *net) {
  /* limits of the bytes of code: EACH for each weight, and LAYER for each layer in addition */
  enum { EACH = 48, LAYER = 1 << 20 };
  size_t bytes = 0;
  for (int at = 0; at < net->native->n_layers; at++) {
    const laci_native_layer *layer = &net->native->layers[at];
    const int value = net->plan.graph->nodes[layer->fused->node].inputs[1];
    if (!layer->chosen || !algorithms[layer->algorithm]->generates) continue;
    bytes += (size_t)laci_shape_count(laci_plan_shape(&net->plan, value)) * EACH + LAYER;
  }
  return bytes;
}

bool laci_native_find_next_refusal(const laci_net *net, int *at, laci_native_refusal *refusal) {
  const laci_algorithm *wanted = algorithms[net->use->algorithm];
  const bool named = net->native && net->use->algorithm != LACI_ALGORITHM_dense;
  for (int n = named ? net->native->n_layers : 0; *at < n;) {
    const laci_native_layer *layer = &net->native->layers[(*at)++];
    if (wanted->can(net, layer, &refusal->why)) continue;
    refusal->algorithm = wanted->name;
    refusal->node = net->plan.graph->nodes[layer->fused->node].name;
    return true;
  }
  return false;
}

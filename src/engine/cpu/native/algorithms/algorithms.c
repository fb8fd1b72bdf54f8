/* SPDX-License-Identifier: Apache-2.0
 * The list of algorithms (algorithm.def), and which of them a layer can be computed by. */
#include <string.h>

#include "kernel/sparse/winograd4.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/* ---- The list ---- */

#define LAC_ALGORITHM(name) extern const laci_algorithm laci_algorithm_##name;
#include "engine/cpu/native/algorithms/algorithm.def"
#undef LAC_ALGORITHM

static const laci_algorithm *const algorithms[LACI_N_ALGORITHMS] = {
#define LAC_ALGORITHM(name) [LACI_ALGORITHM_##name] = &laci_algorithm_##name,
#include "engine/cpu/native/algorithms/algorithm.def"
#undef LAC_ALGORITHM
};

const laci_algorithm *laci_algorithm_of(laci_algorithm_id id) { return algorithms[id]; }

bool laci_algorithm_find(const char *name, laci_algorithm_id *id) {
  for (int at = 0; at < LACI_N_ALGORITHMS; at++) {
    *id = (laci_algorithm_id)at;
    if (strcmp(algorithms[at]->name, name) == 0) return true;
  }
  return false;
}

bool laci_native_can(const laci_net *net, const laci_native_layer *layer, laci_algorithm_id id) {
  const char *why;
  return algorithms[id]->can(net, layer, &why);
}

laci_algorithm_id laci_algorithm_of_kind(laci_native_kind kind) {
  static const laci_algorithm_id of[] = {[LACI_NATIVE_PRODUCT] = LACI_ALGORITHM_generated,
                                         [LACI_NATIVE_DEPTHWISE] = LACI_ALGORITHM_depthwise,
                                         [LACI_NATIVE_SUM] = LACI_ALGORITHM_sum,
                                         [LACI_NATIVE_POOL] = LACI_ALGORITHM_pool};
  return of[kind];
}

/* ---- Which one ---- */

bool laci_native_is_tight(const laci_net *net) {
  enum { MARGIN = 2 }; /* for all else */
  uint64_t bytes = 0;
  for (int at = 0; at < net->native->n_layers; at++) {
    const laci_native_layer *layer = &net->native->layers[at];
    if (!laci_native_can(net, layer, LACI_ALGORITHM_winograd)) continue;
    bytes += laci_winograd4_bytes(&layer->window);
  }
  return !laci_plan_has_room(&net->plan, MARGIN * bytes);
}

laci_algorithm_id laci_algorithm_or(const laci_net *net, const laci_native_layer *layer,
                                    laci_algorithm_id wanted) {
  const bool rows =
      algorithms[wanted]->transforms || laci_native_isa_of(net, layer) == LACI_JIT_NONE;
  const laci_algorithm_id own = laci_algorithm_of_kind(layer->kind);
  const laci_algorithm_id ids[] = {wanted, rows ? LACI_ALGORITHM_rows : own, own};
  for (size_t at = wanted == LACI_ALGORITHM_dense; at < sizeof ids / sizeof *ids; at++) {
    if (laci_native_can(net, layer, ids[at])) return ids[at];
  }
  return LACI_ALGORITHM_winograd;
}

/* ---- Lowering ---- */

bool laci_native_has_layer(const laci_net *net, const laci_fused *fused) {
  return laci_native_chosen(net, fused) != NULL;
}

bool laci_native_fits(laci_net *net, const laci_fused *fused, const char **why) {
  *why = "dense weights, or dense kernels are faster";
  return laci_native_has_layer(net, fused);
}

void laci_native_lower(laci_net *net, const laci_fused *fused) {
  const laci_native_layer *layer = laci_native_chosen(net, fused);
  algorithms[layer->algorithm]->make(net, layer);
}

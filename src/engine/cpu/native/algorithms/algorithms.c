/* SPDX-License-Identifier: Apache-2.0
 * By which ways a layer can be done. */
#include "kernel/sparse/winograd4.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"

laci_jit_isa laci_sparse_isa_of(const laci_net *net, const laci_sparse_layer *layer) {
  return layer->bytes ? net->sparse->isa_of_bytes : net->sparse->isa;
}

static bool is_of_constant_floats(const laci_net *net, const laci_sparse_layer *layer) {
  return layer->kind == LACI_SPARSE_PRODUCT && !layer->mask && !layer->bytes && !net->plan.bf16;
}

bool laci_sparse_code_is_bare(const laci_net *net, const laci_sparse_layer *layer) {
  return is_of_constant_floats(net, layer) && laci_sparse_isa_of(net, layer) == LACI_JIT_AVX512 &&
         !laci_pictures_by_images(layer->n_images) && laci_sparse_may_be_bare(&layer->window);
}

bool laci_sparse_can(const laci_net *net, const laci_sparse_layer *layer, laci_sparse_way way) {
  switch (way) {
    case LACI_SPARSE_WAY_DENSE: return true;
    case LACI_SPARSE_WAY_SPARSE: return !layer->full;
    case LACI_SPARSE_WAY_LISTS: return !layer->full && is_of_constant_floats(net, layer);
    case LACI_SPARSE_WAY_WINOGRAD:
      return is_of_constant_floats(net, layer) && !layer->rows &&
             !(net->sparse && net->sparse->tight) && laci_winograd4_fits(&layer->window);
    case LACI_SPARSE_WAY_REORDER: break;
  }
  return false;
}

bool laci_sparse_is_tight(const laci_net *net) {
  enum { MARGIN = 2 }; /* for all else */
  uint64_t bytes = 0;
  for (int at = 0; at < net->sparse->n_layers; at++) {
    const laci_sparse_layer *layer = &net->sparse->layers[at];
    if (!laci_sparse_can(net, layer, LACI_SPARSE_WAY_WINOGRAD)) continue;
    bytes += laci_winograd4_bytes(&layer->window);
  }
  return !laci_plan_has_room(&net->plan, MARGIN * bytes);
}

laci_sparse_way laci_sparse_way_or(const laci_net *net, const laci_sparse_layer *layer,
                                   laci_sparse_way wanted) {
  const bool lists =
      wanted == LACI_SPARSE_WAY_WINOGRAD || laci_sparse_isa_of(net, layer) == LACI_JIT_NONE;
  const laci_sparse_way ways[] = {wanted, lists ? LACI_SPARSE_WAY_LISTS : LACI_SPARSE_WAY_SPARSE,
                                  LACI_SPARSE_WAY_SPARSE};
  for (size_t at = wanted == LACI_SPARSE_WAY_SPARSE; at < sizeof ways / sizeof *ways; at++) {
    if (laci_sparse_can(net, layer, ways[at])) return ways[at];
  }
  return LACI_SPARSE_WAY_WINOGRAD;
}

bool laci_sparse_has(const laci_net *net, const laci_fused *fused) {
  return laci_sparse_chosen(net, fused) != NULL;
}

bool laci_sparse_fits(laci_net *net, const laci_fused *fused, const char **why) {
  *why = "dense weights, or dense kernels are faster";
  return laci_sparse_has(net, fused);
}

void laci_sparse_lower(laci_net *net, const laci_fused *fused) {
  const laci_sparse_layer *layer = laci_sparse_chosen(net, fused);
  if (layer->way == LACI_SPARSE_WAY_WINOGRAD) {
    laci_sparse_lower_winograd(net, layer);
    return;
  }
  switch (layer->kind) {
    case LACI_SPARSE_PRODUCT: laci_sparse_lower_product(net, layer); break;
    case LACI_SPARSE_DEPTHWISE: laci_sparse_lower_depthwise(net, layer); break;
    case LACI_SPARSE_SUM: laci_sparse_lower_sum(net, layer); break;
    case LACI_SPARSE_POOL: laci_sparse_lower_pool(net, layer); break;
  }
}

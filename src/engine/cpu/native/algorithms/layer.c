/* SPDX-License-Identifier: Apache-2.0
 * What several algorithms ask of a layer. */
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/layout/layout.h"

laci_jit_isa laci_sparse_isa_of(const laci_net *net, const laci_sparse_layer *layer) {
  return layer->bytes ? net->sparse->isa_of_bytes : net->sparse->isa;
}

bool laci_sparse_is_of_constant_floats(const laci_net *net, const laci_sparse_layer *layer) {
  return layer->kind == LACI_SPARSE_PRODUCT && !layer->mask && !layer->bytes && !net->plan.bf16;
}

bool laci_sparse_code_is_bare(const laci_net *net, const laci_sparse_layer *layer) {
  return laci_sparse_is_of_constant_floats(net, layer) &&
         laci_sparse_isa_of(net, layer) == LACI_JIT_AVX512 &&
         !laci_pictures_by_images(layer->n_images) && laci_sparse_may_be_bare(&layer->window);
}

/* SPDX-License-Identifier: Apache-2.0
 * Generates code for a kernel's kept weights, and seals its pages. */
#include "base/memory.h"
#include "jit/cache.h"
#include "jit/sparse_code.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/train/train.h"

static void destroy_code(laci_native_kernel *kernel) { laci_sparse_code_destroy(kernel->code); }

static size_t max_code_cache_bytes(const laci_native_net *native) {
  return laci_code_cache_code_bytes(native->cache) + laci_code_cache_data_bytes(native->cache);
}

/** Finds, for each element that the kernel keeps, in the code's order, its index in the weight. */
static lac_status find_weight_indices(laci_net *net, const laci_native_layer *layer,
                                      laci_native_kernel *kernel, lac_error *err) {
  laci_sparse_places places = {
      laci_native_find_weight_indices(net, layer, kernel->phase, &kernel->convolution),
      kernel->convolution.n_kept};
  lac_status st = places.at ? LAC_OK : net->plan.status;
  kernel->places = places;
  kernel->of_bf16_pairs = kernel->code && kernel->convolution.product.values == LACI_SPARSE_BF16;
  if (!st && kernel->code) {
    st = laci_sparse_code_order_places(kernel->code, &places, &kernel->places, err);
    laci_free(places.at);
  }
  net->plan.weight_bytes += (size_t)kernel->places.n * sizeof *kernel->places.at;
  return st;
}

static lac_status generate_code(laci_net *net, const laci_native_layer *layer,
                                laci_native_kernel *kernel, lac_error *err) {
  laci_native_net *native = net->native;
  const laci_sparse_convolution *convolution = &kernel->convolution;
  const laci_sparse_product *p = &convolution->product;
  const int64_t n_image_blocks = laci_native_image_blocks(&convolution->in, layer->n_images);
  const laci_sparse_extent extent = {convolution->tiles, convolution->n_tiles,
                                     convolution->in.n_floats * n_image_blocks, net->n_threads};
  const bool floats_of_bytes = layer->int8 && !layer->int8->y;
  const laci_sparse_options options = {
      .isa = laci_native_code_isa(net, layer),
      .after = {.residual = layer->residual >= 0 && !layer->residual_last,
                .low = layer->has_low,
                .high = layer->has_high,
                .rest = layer->int8 && layer->int8->quantized.rest,
                .functions = layer->n_functions > 0 || layer->residual_last || floats_of_bytes},
      .pool = net->pool,
      .cut = laci_sparse_choose_cut(p, laci_native_code_isa(net, layer), &extent),
  };
  lac_status st = LAC_OK;
  if (!native->cache) st = laci_code_cache_create(native->code_limit, &native->cache, err);
  const size_t before = st ? 0 : max_code_cache_bytes(native);
  kernel->drop = destroy_code;
  if (!st) st = laci_sparse_code_create(p, &options, native->cache, &kernel->code, err);
  if (st) return st;
  if (layer->mask) st = find_weight_indices(net, layer, kernel, err);
  else laci_sparse_code_set_weights(kernel->code, convolution->kept.weight);
  if (st) return st;
  laci_sparse_convolution_free_weights(&kernel->convolution);
  net->plan.weight_bytes += max_code_cache_bytes(native) - before;
  return LAC_OK;
}

/** Generates code. If none can be generated, prepares the data that the scalar reference reads. */
lac_status laci_native_generate_code(laci_net *net, const laci_native_layer *layer,
                                     laci_native_kernel *kernel, lac_error *err) {
  if (laci_native_code_isa(net, layer) != LACI_JIT_NONE)
    return generate_code(net, layer, kernel, err);
  if (layer->mask) return find_weight_indices(net, layer, kernel, err);
  net->plan.weight_bytes += (size_t)kernel->convolution.n_kept * sizeof(float);
  return LAC_OK;
}

/* ---- The end of lowering ---- */

void laci_native_seal_code(laci_net *net) {
  lac_error why = {0};
  if (net->native) laci_native_clear_scratch(net->native);
  if (net->plan.status || !net->native || !net->native->cache) return;
  lac_status st = laci_code_cache_seal(net->native->cache, &why);
  if (st) laci_plan_fail(&net->plan, st, "%s", why.text);
}

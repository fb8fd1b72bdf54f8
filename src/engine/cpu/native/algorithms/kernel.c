/* SPDX-License-Identifier: Apache-2.0
 * The kernel of a sparse layer: its tiles, and generated code, or what the compiled kernel reads
 * where code may not be generated.
 *
 * The zeros of the constant are the pattern: no mask has to come with it. Only what is kept is
 * packed; the dense weights are read, looked at and forgotten, by all threads. */
#include "jit/cache.h"
#include "jit/sparse_code.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/train/train.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static laci_native_kernel *new_kernel(laci_net *net) {
  laci_native_net *native = net->native;
  laci_native_kernel *kernel = laci_plan_new(&net->plan, 1, sizeof *kernel);
  if (!kernel) return NULL;
  if (!laci_grow((void **)&native->kernels, native->n_kernels, &native->kernels_capacity,
                 sizeof(laci_native_kernel *))) {
    laci_plan_no_memory(&net->plan);
    return NULL;
  }
  native->kernels[native->n_kernels++] = kernel;
  return kernel;
}

/** More than the code of all chosen layers can take: so many addresses are reserved. */
static size_t most_code(const laci_net *net) {
  enum { EACH = 48, LAYER = 1 << 20 }; /* bytes, of a weight and beside them */
  size_t bytes = 0;
  for (int at = 0; at < net->native->n_layers; at++) {
    const laci_native_layer *layer = &net->native->layers[at];
    const int value = net->plan.graph->nodes[layer->fused->node].inputs[1];
    if (!layer->chosen || layer->kind != LACI_NATIVE_PRODUCT) continue;
    if (layer->algorithm == LACI_ALGORITHM_rows) continue;
    if (laci_algorithm_of(layer->algorithm)->make != laci_native_make_product) continue;
    bytes += (size_t)laci_shape_count(laci_plan_shape(&net->plan, value)) * EACH + LAYER;
  }
  return bytes;
}

static size_t cache_bytes(const laci_native_net *native) {
  return laci_code_cache_size(native->cache) + laci_code_cache_data_size(native->cache);
}

/** Where the kernel wants the weight's elements that are kept. */
static lac_status order_places(laci_net *net, const laci_native_layer *layer,
                               laci_native_kernel *kernel, lac_error *err) {
  laci_sparse_places places = {laci_native_weight_places(net, layer, kernel->phase, &kernel->form),
                               kernel->form.n_kept};
  lac_status st = places.at ? LAC_OK : net->plan.status;
  kernel->places = places;
  kernel->of_bf16_pairs = kernel->code && kernel->form.product.values == LACI_SPARSE_BF16;
  if (!st && kernel->code) {
    st = laci_sparse_code_order(kernel->code, &places, &kernel->places, err);
    laci_free(places.at);
  }
  net->plan.weight_bytes += (size_t)kernel->places.n * sizeof *kernel->places.at;
  return st;
}

static lac_status generate(laci_net *net, const laci_native_layer *layer,
                           laci_native_kernel *kernel, lac_error *err) {
  laci_native_net *native = net->native;
  const laci_sparse_form *form = &kernel->form;
  const laci_sparse_product *p = &form->product;
  const int64_t n_image_blocks = laci_native_image_blocks(&form->in, layer->n_images);
  const laci_sparse_extent extent = {form->tiles, form->n_tiles, form->in.n_floats * n_image_blocks,
                                     net->n_threads};
  const bool floats_of_bytes = layer->bytes && !layer->bytes->y;
  const laci_sparse_options options = {
      .isa = laci_native_isa_of(net, layer),
      .after = {.residual = layer->residual >= 0 && !layer->residual_last,
                .low = layer->has_low,
                .high = layer->has_high,
                .functions = layer->n_functions > 0 || layer->residual_last || floats_of_bytes},
      .pool = net->pool,
      .cut = laci_sparse_cut_rule(p, laci_native_isa_of(net, layer), &extent),
  };
  lac_status st = LAC_OK;
  if (!native->cache) st = laci_code_cache_create(most_code(net), &native->cache, err);
  const size_t before = st ? 0 : cache_bytes(native);
  if (!st) st = laci_sparse_code_create(p, &options, native->cache, &kernel->code, err);
  if (st) return st;
  if (layer->mask) st = order_places(net, layer, kernel, err);
  else laci_sparse_code_fill(kernel->code, form->kept.weight);
  if (st) return st;
  laci_sparse_form_keep_tiles(&kernel->form);
  net->plan.weight_bytes += cache_bytes(native) - before;
  return LAC_OK;
}

/** The layer as a product, with the weights that are kept, or with a mask's zeros. */
static lac_status make_form(laci_net *net, const laci_native_layer *layer,
                            const laci_sparse_window *g, const laci_sparse_layouts *layouts,
                            laci_native_kernel *kernel, lac_error *err) {
  laci_sparse_kept kept = {.row_begin = NULL};
  lac_status st = LAC_NO_MEMORY;
  if (layer->mask) {
    uint8_t *mask = laci_native_transposed_mask(net, layer, kernel->phase);
    if (mask) st = laci_sparse_form_init(g, mask, layouts, &kernel->form, err);
    laci_free(mask);
    return st;
  }
  const bool read = laci_native_read_kept(net, layer, &kept);
  if (read && (!layer->bytes || laci_native_quantize_kept(net, layer, &kept))) {
    st = laci_sparse_form_take(g, &kept, layouts, &kernel->form, err);
  }
  laci_sparse_kept_clear(&kept);
  return st;
}

/** From a corner without a border to the phase's first result. */
static void move_tiles(const laci_net *net, const laci_native_layer *layer, int phase,
                       laci_sparse_form *form) {
  const laci_sparse_layout *out = laci_native_memory_at(net, layer->output);
  if (layer->scatter <= 1) return;
  const int64_t row = out->top + phase / 2, column = out->left + phase % 2;
  const int64_t further = row * out->row_stride + column * out->pixel_stride;
  for (int64_t at = 0; at < form->n_tiles; at++) form->tiles[at].out += further;
}

static laci_native_kernel *make_kernel(laci_net *net, const laci_native_layer *layer, int phase) {
  const bool generated = laci_native_isa_of(net, layer) != LACI_JIT_NONE;
  const laci_sparse_layout in = laci_native_layer_in(net, layer);
  const laci_sparse_layouts layouts = {.in = in,
                                       .out = laci_native_layer_out(net, layer),
                                       .n_images = laci_native_image_blocks(&in, layer->n_images)};
  laci_native_kernel *kernel = new_kernel(net);
  laci_sparse_window g = layer->mask ? laci_native_phase(layer, phase) : layer->window;
  lac_error why = {0};
  lac_status st = LAC_NO_MEMORY;
  if (layer->reading == LACI_NATIVE_SUBSAMPLED) {
    g.h = g.out_h;
    g.w = g.out_w;
    g.stride_h = g.stride_w = 1;
  }
  if (kernel) {
    kernel->phase = phase;
    st = make_form(net, layer, &g, &layouts, kernel, &why);
  }
  if (!st) move_tiles(net, layer, phase, &kernel->form);
  if (!st && layer->mask && !laci_native_keep_gradient(net, layer, kernel)) st = net->plan.status;
  if (!st && layer->algorithm == LACI_ALGORITHM_rows)
    st = laci_native_make_lists(net, kernel, &why);
  else if (!st && generated) st = generate(net, layer, kernel, &why);
  else if (!st && layer->mask) st = order_places(net, layer, kernel, &why);
  else if (!st) net->plan.weight_bytes += (size_t)kernel->form.n_kept * sizeof(float);
  if (st == LAC_UNSUPPORTED) laci_net_decline(net, why.text);
  else if (st && !net->plan.status) laci_plan_fail(&net->plan, st, "%s", why.text);
  return st ? NULL : kernel;
}

/* One whose weight changes has its kernel for all turns. */
const laci_native_kernel *laci_native_make_kernel(laci_net *net, const laci_native_layer *layer) {
  laci_native_layer *own = &net->native->layers[layer - net->native->layers];
  if (layer->kernel) return layer->kernel;
  if (!layer->mask) return make_kernel(net, layer, 0);
  laci_native_kernel *first = make_kernel(net, layer, 0), *kernel = first;
  for (int phase = 1; phase < layer->n_phases && kernel; phase++) {
    kernel->next = make_kernel(net, layer, phase);
    kernel = kernel->next;
  }
  own->kernel = kernel ? first : NULL;
  return own->kernel;
}

/* ---- The end of lowering ---- */

void laci_native_seal(laci_net *net) {
  lac_error why = {0};
  if (net->native) laci_native_clear_scratch(net->native);
  if (net->plan.status || !net->native || !net->native->cache) return;
  lac_status st = laci_code_cache_seal(net->native->cache, &why);
  if (st) laci_plan_fail(&net->plan, st, "%s", why.text);
}

void laci_native_destroy(laci_net *net) {
  laci_native_net *native = net->native;
  if (!native) return;
  for (size_t at = 0; at < native->n_kernels; at++) {
    laci_sparse_code_destroy(native->kernels[at]->code);
    laci_sparse_form_clear(&native->kernels[at]->form);
    laci_free(native->kernels[at]->places.at);
    laci_native_drop_lists(native->kernels[at]);
    laci_native_drop_gradient(native->kernels[at]);
  }
  laci_free((void *)native->kernels);
  laci_native_clear_scratch(native);
  laci_code_cache_destroy(native->cache);
}

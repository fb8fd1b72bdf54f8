/* SPDX-License-Identifier: Apache-2.0
 * Makes the kernel of a layer that skips zeros: the layer as a sparse product, whichever algorithm
 * runs it.
 *
 * The zeros of the constant are the pattern, so no mask has to be given. Only kept weights are
 * packed. All threads read the dense weights, which are then released. */
#include "base/divide.h"
#include "base/memory.h"
#include "jit/cache.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/train/train.h"

static laci_native_kernel *append_kernel(laci_net *net) {
  laci_native_net *native = net->native;
  laci_native_kernel *kernel = laci_plan_alloc(&net->plan, 1, sizeof *kernel);
  if (!kernel) return NULL;
  if (!laci_grow((void **)&native->kernels, native->n_kernels, &native->kernels_capacity,
                 sizeof(laci_native_kernel *))) {
    laci_plan_fail_no_memory(&net->plan);
    return NULL;
  }
  native->kernels[native->n_kernels++] = kernel;
  return kernel;
}

/** Makes the layer's sparse product: from the nonzero weights, or from the mask if the weight
 * changes (training). */
static lac_status make_sparse_product(laci_net *net, const laci_native_layer *layer,
                                      const laci_sparse_window *g,
                                      const laci_sparse_layouts *layouts,
                                      laci_native_kernel *kernel, lac_error *err) {
  laci_sparse_kept_weights kept = {.row_begin = NULL};
  lac_status st = LAC_NO_MEMORY;
  if (layer->mask) {
    uint8_t *mask = laci_native_transpose_mask(net, layer, kernel->phase);
    if (mask) st = laci_sparse_convolution_init(g, mask, layouts, &kernel->convolution, err);
    laci_free(mask);
    return st;
  }
  const bool read = laci_native_read_kept_weights(net, layer, &kept);
  if (read && (!layer->int8 || laci_native_quantize_kept_weights(net, layer, &kept))) {
    st = laci_sparse_convolution_init_from_kept(g, &kept, layouts, &kernel->convolution, err);
  }
  laci_sparse_kept_weights_clear(&kept);
  return st;
}

/** Moves the kernel's tiles from a layout without a border to the places of the phase's results in
 * the layer's output. */
static void shift_tiles_to_output(const laci_net *net, const laci_native_layer *layer, int phase,
                                  laci_sparse_convolution *convolution) {
  const laci_sparse_layout *out = laci_native_assigned_layout(net, layer->output);
  if (layer->scatter <= 1) return;
  const int64_t row = out->top + phase / 2, column = out->left + phase % 2;
  const int64_t further = row * out->row_stride + column * out->pixel_stride;
  for (int64_t at = 0; at < convolution->n_tiles; at++) convolution->tiles[at].out += further;
}

static laci_native_kernel *make_phase_kernel(laci_net *net, const laci_native_layer *layer,
                                             int phase, laci_native_finish *finish) {
  const laci_sparse_layout in = laci_native_input_layout(net, layer);
  const laci_sparse_layouts layouts = {.in = in,
                                       .out = laci_native_output_layout(net, layer),
                                       .n_images = laci_native_image_blocks(&in, layer->n_images)};
  laci_native_kernel *kernel = append_kernel(net);
  laci_sparse_window g = layer->mask ? laci_native_phase_window(layer, phase) : layer->window;
  lac_error why = {0};
  lac_status st = LAC_NO_MEMORY;
  if (layer->reading == LACI_NATIVE_SUBSAMPLED) {
    g.h = g.out_h;
    g.w = g.out_w;
    g.stride_h = g.stride_w = 1;
  }
  if (kernel) {
    kernel->phase = phase;
    st = make_sparse_product(net, layer, &g, &layouts, kernel, &why);
  }
  if (!st) shift_tiles_to_output(net, layer, phase, &kernel->convolution);
  if (!st && layer->mask && !laci_native_prepare_gradient(net, layer, kernel))
    st = net->plan.status;
  if (!st) st = finish(net, layer, kernel, &why);
  if (st == LAC_UNSUPPORTED) laci_net_decline_node(net, why.text);
  else if (st && !net->plan.status) laci_plan_fail(&net->plan, st, "%s", why.text);
  return st ? NULL : kernel;
}

/** Returns the kernel of a layer. A layer whose weight changes keeps its kernel from an earlier
 * planning of the net; otherwise it is made. */
static const laci_native_kernel *reuse_or_make_phase_kernel(laci_net *net,
                                                            const laci_native_layer *layer,
                                                            laci_native_finish *finish) {
  laci_native_layer *own = &net->native->layers[layer - net->native->layers];
  if (layer->kernel) return layer->kernel;
  if (!layer->mask) return make_phase_kernel(net, layer, 0, finish);
  laci_native_kernel *first = make_phase_kernel(net, layer, 0, finish), *kernel = first;
  for (int phase = 1; phase < layer->n_phases && kernel; phase++) {
    kernel->next = make_phase_kernel(net, layer, phase, finish);
    kernel = kernel->next;
  }
  own->kernel = kernel ? first : NULL;
  return own->kernel;
}

void laci_native_make_layer_kernels(laci_net *net, laci_native_layer_step *step,
                                    laci_native_finish *finish) {
  step->state = (void *)(uintptr_t)reuse_or_make_phase_kernel(net, step->layer, finish);
  step->flops = laci_native_flops(net, step->layer);
}

int64_t laci_native_chunk_rows(const laci_net *net, int64_t n_rows, int64_t strips) {
  /* minimum number of rows in a chunk (LEAST), and number of work items that each thread should
   * have (EACH) */
  enum { LEAST = 16, EACH = 2 };
  const int64_t cuts = laci_ceil_div((int64_t)net->n_threads * EACH, strips);
  const int64_t rows = laci_ceil_div(n_rows, cuts);
  return rows < LEAST ? LEAST : rows;
}

/* ---- The end ---- */

void laci_native_destroy_layers(laci_net *net) {
  laci_native_net *native = net->native;
  if (!native) return;
  for (size_t at = 0; at < native->n_kernels; at++) {
    laci_sparse_convolution_clear(&native->kernels[at]->convolution);
    laci_free(native->kernels[at]->places.at);
    if (native->kernels[at]->drop) native->kernels[at]->drop(native->kernels[at]);
    laci_native_destroy_gradient(native->kernels[at]);
  }
  laci_free((void *)native->kernels);
  laci_native_clear_scratch(native);
  laci_code_cache_destroy(native->cache);
}

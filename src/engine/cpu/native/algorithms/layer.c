/* SPDX-License-Identifier: Apache-2.0
 * Questions about a layer that several algorithms ask. */
#include "kernel/sparse/grouped_rows.h"
#include <stdio.h>

#include "cpu/cpu.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/train/train.h"

laci_jit_isa laci_native_code_isa(const laci_net *net, const laci_native_layer *layer) {
  return layer->int8 ? net->native->isa_of_bytes : net->native->isa;
}

bool laci_native_has_constant_floats(const laci_net *net, const laci_native_layer *layer) {
  return layer->kind == LACI_NATIVE_PRODUCT && !layer->mask && !layer->int8 && !net->plan.bf16;
}

bool laci_native_code_can_read_unpadded(const laci_net *net, const laci_native_layer *layer) {
  return laci_native_has_constant_floats(net, layer) &&
         laci_native_code_isa(net, layer) == LACI_JIT_AVX512 &&
         !laci_native_has_image_lanes(layer->n_images) &&
         laci_sparse_may_be_unpadded(&layer->window);
}

bool laci_native_may_group_rows(const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  return laci_grouped_rows_may_be_faster(g->channels_out / g->groups, layer->kept);
}

int64_t laci_native_flops(const laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const int64_t results = laci_shape_count(laci_plan_shape(&net->plan, layer->output));
  int64_t products = 0; /* number of products of all results, for one channel of one image */
  for (int phase = 0; phase < layer->n_phases; phase++) {
    const laci_sparse_window part = laci_native_phase_window(layer, phase);
    products += part.out_h * part.out_w * part.kernel_h * part.kernel_w;
  }
  if (layer->mask) {
    return 2 * layer->n_images * g->channels_out * (g->channels_in / g->groups) * products;
  }
  return 2 * results * (g->channels_in / g->groups) * g->kernel_h * g->kernel_w;
}

const char *laci_native_compiled_kernel_name(laci_net *net, const char *what,
                                             const laci_sparse_window *g) {
  char text[64];
  (void)snprintf(text, sizeof text, "%s-%lldx%lld %s", what, (long long)g->kernel_h,
                 (long long)g->kernel_w, laci_cpu_level_name(laci_cpu_level_in_force()));
  return laci_plan_copy_text(&net->plan, text);
}

const char *laci_native_product_name(laci_net *net, const laci_native_layer *layer,
                                     const char *word) {
  const laci_sparse_window *g = &layer->window;
  const int64_t taps = layer->n_phases > 1 ? 2 : 1; /* with phases, a kernel reads every second tap
                                                       of the window */
  char text[96];
  (void)snprintf(text, sizeof text, "sparse-%lldx%lld %s",
                 (long long)(g->kernel_h * taps - taps + 1),
                 (long long)(g->kernel_w * taps - taps + 1), word);
  return laci_plan_copy_text(&net->plan, text);
}

/* SPDX-License-Identifier: Apache-2.0
 * Names of layers, for their timings. */
#include <stdio.h>
#include <string.h>

#include "kernel/pointwise/function.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static const char *const kinds[] = {
    [LACI_NATIVE_PRODUCT] = "conv", [LACI_NATIVE_DEPTHWISE] = "conv", [LACI_NATIVE_SUM] = "sum",
    [LACI_NATIVE_POOL] = "pool",    [LACI_NATIVE_TABLE] = "table",    [LACI_NATIVE_SHIFT] = "shift",
    [LACI_NATIVE_GATE] = "gate",    [LACI_NATIVE_MOVE] = "move"};

void laci_native_layer_name(const laci_net *net, const laci_native_layer *layer,
                            laci_algorithm_id id, char name[LACI_NATIVE_NAME]) {
  char shape[LACI_NATIVE_NAME / 2] = "a float";
  if (layer) {
    const laci_sparse_window *g = &layer->window;
    const long long n[] = {layer->n_images, g->channels_in, g->h,        g->w,
                           g->channels_out, g->out_h,       g->out_w,    g->kernel_h,
                           g->kernel_w,     g->stride_h,    g->stride_w, g->dilation_h,
                           g->dilation_w,   g->pad_top,     g->pad_left, g->groups};
    (void)snprintf(
        shape, sizeof shape,
        "%s %lldx%lldx%lldx%lld to %lldx%lldx%lld, window %lldx%lld by %lldx%lld "
        "dilated %lldx%lld padded %lldx%lld, groups %lld",
        layer->rows && layer->kind == LACI_NATIVE_PRODUCT ? "product" : kinds[layer->kind], n[0],
        n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14],
        n[15]);
  }
  char functions[LACI_FUSED_MAX_POSTS * 4 + 16] = "";
  for (int at = 0; layer && at < layer->n_functions; at++) {
    const size_t used = strlen(functions);
    (void)snprintf(functions + used, sizeof functions - used, "%s%d", at ? " " : ", functions ",
                   (int)layer->functions[at].kind);
  }
  const char *values = net->plan.bf16 ? ", bf16" : layer && layer->int8 ? ", int8" : "";
  const laci_jit_isa isa = layer ? laci_native_code_isa(net, layer) : net->native->isa;
  (void)snprintf(name, LACI_NATIVE_NAME, "%s%s%s%s%s, %.0f %% kept, %d thread%s, %s, %s", shape,
                 values, layer && layer->residual >= 0 ? ", sum" : "",
                 layer && (layer->has_low || layer->has_high) ? ", clip" : "", functions,
                 layer ? layer->kept * 100 : 0.0, net->n_threads, net->n_threads == 1 ? "" : "s",
                 laci_jit_isa_name(isa), layer ? laci_algorithm_by_id(id)->timed_as : "reorders");
}

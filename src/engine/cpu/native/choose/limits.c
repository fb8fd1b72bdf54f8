/* SPDX-License-Identifier: Apache-2.0
 * Conditions on the windows of native layers, whether weights are constants or change. */
#include <math.h>

#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/choose/choose.h"

/** The layout must not be much larger than the image, but pads, dilations and strides come from a
 * file and may be huge. */
bool laci_native_padding_is_small(const laci_native_layer *layer) {
  enum { MOST_TIMES = 4, FEW_PIXELS = 4096, MOST_PHASES = 16 };
  const laci_sparse_window *g = &layer->window;
  const double reach_h = (double)(g->out_h - 1) * (double)g->stride_h +
                         (double)(g->kernel_h - 1) * (double)g->dilation_h + 1;
  const double reach_w = (double)(g->out_w - 1) * (double)g->stride_w +
                         (double)(g->kernel_w - 1) * (double)g->dilation_w + 1;
  const double h = fmax((double)g->h + (double)g->pad_top, reach_h);
  const double w = fmax((double)g->w + (double)g->pad_left, reach_w);
  const double phases = (double)g->stride_h * (double)g->stride_w;
  return h * w <= MOST_TIMES * (double)g->h * (double)g->w + FEW_PIXELS &&
         (layer->reading != LACI_NATIVE_PHASES || phases <= MOST_PHASES);
}

bool laci_native_can_compute_bf16(const laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  if (net->plan.graph->values[layer->output].is_output) return false;
  return g->channels_in / g->groups % 2 == 0 && g->channels_out / g->groups % 2 == 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * Convolutions whose weights change while their zeros stay, as in fine-tuning under masks. Both the
 * forward convolution and the gradient of its input, a transposed convolution, are layers. The mask
 * is the pattern: code is generated once, and every run only fills in values. Read next:
 * native/algorithms/kernel.c, and norm.c for what is between such layers. */
#include "base/memory.h"
#include "cpu/cpu.h"
#include "engine/cpu/net.h"
#include "engine/cpu/onednn/convolution.h"
#include "graph/ops.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/train/train.h"
#include "engine/cpu/onednn/onednn.h"

enum {
  MOST_KEPT = 70 /* maximum % of nonzero weights */,
  FEW = 32 /* minimum number of input and output channels with bf16 */
};

/* ---- Finding trained layers ---- */

static double kept_share(const uint8_t *mask, int64_t n) {
  int64_t kept = 0;
  for (int64_t at = 0; at < n; at++) kept += mask[at] != 0;
  return n > 0 ? (double)kept / (double)n : 1;
}

/* Of a 3x3 window of stride 2: taps along an axis, and phases (even or odd rows and columns). */
enum { THREE = 3, PHASES = 4 };

/** Sets the window of the input's gradient for a strided 1x1 convolution, which fills every
 * stride-th row and column; the others are zeros. */
static bool set_scattered_window(const laci_sparse_window *f, laci_native_layer *layer) {
  laci_sparse_window *g = &layer->window;
  layer->scatter = f->stride_h;
  g->out_h = g->h;
  g->out_w = g->w;
  g->pad_top = g->pad_left = 0;
  return laci_native_is_1x1(f) && f->pad_top == 0 && f->pad_left == 0;
}

/** Sets the windows of the gradient of a 3x3 convolution of stride 2 and padding 1. Results of even
 * and of odd rows and columns have their own windows: along each axis, the middle tap or the other
 * two. The layer's window is the largest one. */
static bool set_phase_windows(const laci_sparse_window *f, laci_native_layer *layer) {
  if (f->kernel_h != THREE || f->kernel_w != THREE || f->stride_h != 2 || f->pad_top != 1 ||
      f->pad_left != 1 || f->dilation_h != 1 || f->dilation_w != 1 || f->h < 2 || f->w < 2) {
    return false;
  }
  layer->scatter = 2;
  layer->n_phases = PHASES;
  layer->window = laci_native_phase_window(layer, PHASES - 1);
  return true;
}

laci_sparse_window laci_native_phase_window(const laci_native_layer *layer, int phase) {
  laci_sparse_window g = layer->window;
  if (layer->n_phases == 1) return g;
  g.kernel_h = 1 + phase / 2;
  g.kernel_w = 1 + phase % 2;
  g.pad_top = g.pad_left = 0;
  g.out_h = (layer->whole_h + 1 - phase / 2) / 2;
  g.out_w = (layer->whole_w + 1 - phase % 2) / 2;
  return g;
}

/** Replaces the window of the forward convolution by that of its input's gradient, which reads the
 * gradient of the results. False: there is no kernel for its stride. */
static bool set_input_gradient_window(laci_native_layer *layer) {
  laci_sparse_window *g = &layer->window;
  const laci_sparse_window f = *g;
  g->channels_in = f.channels_out;
  g->channels_out = f.channels_in;
  g->h = f.out_h;
  g->w = f.out_w;
  g->out_h = layer->whole_h = f.h;
  g->out_w = layer->whole_w = f.w;
  g->stride_h = g->stride_w = 1;
  g->pad_top = f.dilation_h * (f.kernel_h - 1) - f.pad_top;
  g->pad_left = f.dilation_w * (f.kernel_w - 1) - f.pad_left;
  if (f.stride_h == 1 && f.stride_w == 1) return g->pad_top >= 0 && g->pad_left >= 0;
  return f.stride_h == f.stride_w &&
         (set_scattered_window(&f, layer) || set_phase_windows(&f, layer));
}

static bool set_layer_window(const laci_net *net, const laci_node *node, const int values[3],
                             laci_native_layer *layer) {
  const laci_shape *x = laci_plan_shape(&net->plan, values[0]);
  const laci_shape *weight = laci_plan_shape(&net->plan, values[1]);
  const laci_shape *y = laci_plan_shape(&net->plan, values[2]);
  laci_window w;
  if (x->rank != 4 || weight->rank != 4) return false;
  if (!laci_conv_read_window(node, x, y, weight->dims + 2, &w) || w.n_spatial != 2) return false;
  layer->n_images = x->dims[0];
  layer->window = laci_native_make_window(x, y, &w);
  layer->window.groups = laci_node_int(node, "group", 1);
  layer->window.values = laci_native_value_type(net);
  return layer->transposed ? set_input_gradient_window(layer) : true;
}

bool laci_native_find_trained_layer(laci_net *net, const laci_fused *fused,
                                    laci_native_layer *layer) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const bool transposed = node->op == &laci_op_conv_grad_input;
  if (!transposed && node->op != &laci_op_conv) return false;
  if (fused->n_posts > 0 || fused->scale) return false;
  if (!laci_plan_has_elements(&net->plan, node)) return false;
  const int weight = node->inputs[1];
  const laci_engine_weight *known = laci_net_find_weight_facts(net, weight);
  if (!known || !known->mask || laci_plan_is_constant(&net->plan, weight)) return false;
  *layer = (laci_native_layer){.fused = fused,
                               .input = node->inputs[0],
                               .output = fused->output,
                               .residual = -1,
                               .mask = known->mask,
                               .transposed = transposed,
                               .scatter = 1,
                               .n_phases = 1,
                               .reading = LACI_NATIVE_AS_STORED};
  const int values[] = {transposed ? fused->output : node->inputs[0], weight,
                        transposed ? node->inputs[0] : fused->output};
  if (!set_layer_window(net, node, values, layer)) return false;
  if (layer->n_images % LACI_SPARSE_LANES != 0 || !laci_native_padding_is_small(layer))
    return false;
  if (net->plan.bf16 && !laci_native_can_compute_bf16(net, layer)) return false;
  layer->kept = kept_share(known->mask, laci_shape_count(laci_plan_shape(&net->plan, weight)));
  return true;
}

/* ---- Choosing trained layers ---- */

/** Is the native layer faster than the dense one? In f32 with AVX-512, oneDNN's Winograd kernels
 * are as fast for 3x3 weights, and need no border. In bf16 native layers are faster, but not layers
 * of few channels, and not on processors with matrix tiles (AMX). */
static bool is_faster_than_dense(laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const bool few = g->groups == 1 && (g->channels_in < FEW || g->channels_out < FEW);
  const bool three =
      g->kernel_h == THREE && g->kernel_w == THREE && g->stride_h == 1 && g->stride_w == 1;
  if (net->native->isa == LACI_JIT_NONE || layer->kept * 100 > MOST_KEPT) return false;
  if (net->plan.bf16) return !few && !laci_cpu_has_bf16_tiles();
  return !(three && g->groups == 1 && g->dilation_h == 1 && laci_cpu_has_avx512f());
}

/** Returns the multiply-adds of the layer's dense product, for one image. */
static double count_dense_products(const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  double sum = 0;
  for (int phase = 0; phase < layer->n_phases; phase++) {
    const laci_sparse_window part = laci_native_phase_window(layer, phase);
    sum += (double)(part.out_h * part.out_w) * (double)(part.kernel_h * part.kernel_w);
  }
  return sum * (double)g->channels_out * (double)(g->channels_in / g->groups);
}

/** Chooses among layers with masks. If the layers that get faster are a small part of the network,
 * the reorders around them cost more than they save, and no layer is chosen. */
void laci_native_choose_trained_layers(laci_net *net) {
  /* minimum percentage that chosen layers must have of the multiply-adds of layers with masks */
  enum { LEAST_SHARE = 5 };
  laci_native_net *native = net->native;
  const bool any = net->use->which != LACI_NATIVE_USE_FASTER;
  double all = 0, chosen = 0;
  for (int at = 0; at < native->n_layers; at++) {
    laci_native_layer *layer = &native->layers[at];
    if (!layer->mask) continue;
    layer->chosen = any || is_faster_than_dense(net, layer);
    all += count_dense_products(layer);
    chosen += layer->chosen ? count_dense_products(layer) : 0;
  }
  if (any || chosen * 100 >= all * LEAST_SHARE) return;
  for (int at = 0; at < native->n_layers; at++) native->layers[at].chosen = false;
}

/* ---- The mask as the product's pattern ---- */

/** Returns the tap of the weight that a tap of the window uses. */
static int64_t weight_tap_of_window_tap(const laci_native_layer *layer, int phase, int64_t tap) {
  const laci_sparse_window *g = &layer->window;
  if (!layer->transposed) return tap;
  if (layer->n_phases == 1) return g->kernel_h * g->kernel_w - 1 - tap;
  const int64_t wide = 1 + phase % 2, row = tap / wide, column = tap % wide;
  return (phase / 2 ? 2 - 2 * row : 1) * THREE + (phase % 2 ? 2 - 2 * column : 1);
}

/** Returns the index, in the weight tensor, of the element for a row, an input channel of its group
 * and a tap. */
static int64_t weight_index_of_tap(const laci_native_layer *layer, int phase, int64_t row,
                                   int64_t channel, int64_t tap) {
  const laci_sparse_window *g = &layer->window;
  const int64_t taps = layer->n_phases > 1 ? THREE * THREE : g->kernel_h * g->kernel_w;
  const int64_t in = g->channels_in / g->groups, out = g->channels_out / g->groups;
  const int64_t at = weight_tap_of_window_tap(layer, phase, tap);
  if (!layer->transposed) return (row * in + channel) * taps + at;
  return ((row / out * in + channel) * out + row % out) * taps + at;
}

uint8_t *laci_native_transpose_mask(laci_net *net, const laci_native_layer *layer, int phase) {
  const laci_sparse_window g = laci_native_phase_window(layer, phase);
  const int64_t taps = g.kernel_h * g.kernel_w, in = g.channels_in / g.groups;
  uint8_t *mask = laci_alloc((size_t)(g.channels_out * in * taps), 1), *to = mask;
  if (!mask) {
    laci_plan_fail_no_memory(&net->plan);
    return NULL;
  }
  for (int64_t row = 0; row < g.channels_out; row++) {
    for (int64_t channel = 0; channel < in; channel++) {
      for (int64_t tap = 0; tap < taps; tap++) {
        *to++ = layer->mask[weight_index_of_tap(layer, phase, row, channel, tap)];
      }
    }
  }
  return mask;
}

int32_t *laci_native_find_weight_indices(laci_net *net, const laci_native_layer *layer, int phase,
                                         const laci_sparse_convolution *convolution) {
  const laci_sparse_product *p = &convolution->product;
  const laci_sparse_window g = laci_native_phase_window(layer, phase);
  const int64_t taps = g.kernel_h * g.kernel_w;
  int32_t *places = laci_alloc((size_t)convolution->n_kept, sizeof *places);
  if (!places) laci_plan_fail_no_memory(&net->plan);
  for (int64_t row = 0; places && row < p->n_rows; row++) {
    const int64_t first = row / p->rows_together * convolution->row_length;
    for (int64_t k = p->row_begin[row]; k < p->row_begin[row + 1]; k++) {
      const int32_t at = convolution->dense_at[p->column[k] - first];
      places[k] = (int32_t)weight_index_of_tap(layer, phase, row, at / taps, at % taps);
    }
  }
  return places;
}

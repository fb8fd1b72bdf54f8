/* SPDX-License-Identifier: Apache-2.0
 * Converts a layer's weight to int8 and its bias to int32.
 *
 * A channel's scale is its largest magnitude over 127, so that 0 is the integer 0. Batch
 * normalization multiplies and shifts a channel: w' = w * f, b' = (b - mean) * f + shift with f =
 * gain / sqrt(variance + epsilon). If the integer of a bias were beyond 2^30, adding the sums of
 * products could overflow. The channel's scale is then made larger. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/to_int.h"
#include "graph/copies.h"
#include "graph/op.h"
#include "quantize/quantize_in.h"

static const double most_weight = 127, most_bias = 1 << 30;

/** The state of quantizing one layer's weight and bias. */
typedef struct weight_quantizer {
  const laci_quantizing *q;
  const laci_quantize_layer *layer;
  const float *weight;
  int64_t n, inner, n_channels, n_bias;
  double *factor, *bias; /* [n_bias] factor and bias of each output channel */
  double *largest;       /* [n_channels] largest magnitude of each channel */
} weight_quantizer;

static const float *find_current_floats(const laci_quantizing *q, int value) {
  int stored = q->graph->values[laci_graph_skip_copies(q->graph, value)].stored;
  const uint8_t *bytes = q->weights ? q->weights[stored] : NULL;
  return (const float *)(const void *)(bytes ? bytes : q->graph->stored[stored].bytes);
}

static float read_float(const float *from, int64_t at) {
  float x;
  memcpy(&x, (const char *)from + at * (int64_t)sizeof x, sizeof x);
  return x;
}

static int64_t channel_of_element(const weight_quantizer *w, int64_t at) {
  return at / w->inner % w->n_channels;
}

static double read_weight_with_norm(const weight_quantizer *w, int64_t at) {
  double x = (double)read_float(w->weight, at);
  return w->layer->norm >= 0 ? x * w->factor[channel_of_element(w, at)] : x;
}

/* Computes for each output channel its factor, its bias and its largest magnitude, before
 * rounding. */
static void compute_channel_factors(weight_quantizer *w) {
  const laci_quantizing *q = w->q;
  const laci_node *norm = w->layer->norm >= 0 ? &q->graph->nodes[w->layer->norm] : NULL;
  double epsilon = norm ? (double)laci_node_float(norm, "epsilon", 1e-5f) : 0;
  for (int64_t k = 0; k < w->n_bias; k++) {
    w->factor[k] = 1;
    w->bias[k] =
        w->layer->bias >= 0 ? (double)read_float(find_current_floats(q, w->layer->bias), k) : 0;
    if (!norm) continue;
    double gain = (double)read_float(find_current_floats(q, norm->inputs[1]), k);
    double shift = (double)read_float(find_current_floats(q, norm->inputs[2]), k);
    double mean = (double)read_float(find_current_floats(q, norm->inputs[3]), k);
    double variance = (double)read_float(find_current_floats(q, norm->inputs[4]), k);
    w->factor[k] = gain / sqrt(variance + epsilon);
    w->bias[k] = (w->bias[k] - mean) * w->factor[k] + shift;
  }
}

static lac_status measure_largest_weights(weight_quantizer *w, lac_error *err) {
  const laci_node *node = &w->q->graph->nodes[w->layer->node];
  for (int64_t at = 0; at < w->n; at++) {
    double x = fabs(read_weight_with_norm(w, at));
    if (!(x <= (double)FLT_MAX))
      return laci_fail(err, LAC_BAD_VALUE, "%s: its weight is not finite at element %lld",
                       node->name, (long long)at);
    double *largest = &w->largest[channel_of_element(w, at)];
    if (x > *largest) *largest = x;
  }
  for (int64_t k = 0; k < w->n_bias; k++) {
    if (fabs(w->bias[k]) <= (double)FLT_MAX) continue;
    return laci_fail(err, LAC_BAD_VALUE, "%s: its bias is not finite at element %lld", node->name,
                     (long long)k);
  }
  return LAC_OK;
}

/* Chooses the scale of each channel. A channel of zeros gets the largest scale of the other
 * channels, so that its bias has one. */
static void choose_scales(const weight_quantizer *w, float data_scale, float *scales) {
  double usual = 0;
  for (int64_t k = 0; k < w->n_channels; k++) usual = fmax(usual, w->largest[k] / most_weight);
  if (!(usual >= (double)FLT_MIN)) usual = 1;
  for (int64_t k = 0; k < w->n_channels; k++) {
    double scale = w->largest[k] / most_weight;
    if (!(scale >= (double)FLT_MIN)) scale = usual;
    for (int64_t b = k; b < w->n_bias; b += w->n_channels) {
      double least = fabs(w->bias[b]) / ((double)data_scale * most_bias);
      if (scale < least) scale = least;
      /* the product of both scales must be a float that is not subnormal */
      if (scale * (double)data_scale < 4 * (double)FLT_MIN)
        scale = 4 * (double)FLT_MIN / (double)data_scale;
    }
    scales[k] = (float)scale;
  }
}

/* Rounds the weights; fitted: integers that are taken in place of the nearest ones; NULL: there are
 * none. Returns the relative error of the weights. */
static double round_weights(const weight_quantizer *w, const float *scales, const int8_t *fitted,
                            int8_t *to) {
  double wrong = 0, energy = 0;
  for (int64_t at = 0; at < w->n; at++) {
    double x = read_weight_with_norm(w, at), scale = (double)scales[channel_of_element(w, at)];
    double q = rint(x / scale);
    to[at] = fitted ? fitted[at] : (int8_t)laci_clamp_to_range(q, -INT8_MAX, INT8_MAX);
    q = to[at];
    wrong += (x - q * scale) * (x - q * scale);
    energy += x * x;
  }
  return energy > 0 ? wrong / energy : 0;
}

static void round_bias(const weight_quantizer *w, float data_scale,
                       const laci_quantize_correction *corrected, laci_quantized_weight *out) {
  for (int64_t k = 0; k < w->n_bias; k++) {
    out->bias_scales[k] = data_scale * out->scales[k % w->n_channels];
    double q = rint(w->bias[k] / (double)out->bias_scales[k]);
    out->bias[k] = corrected && corrected->bias
                       ? corrected->bias[k]
                       : (int32_t)laci_clamp_to_range(q, INT32_MIN, INT32_MAX);
  }
}

static void weight_quantizer_init(const laci_quantizing *q, const laci_quantize_layer *layer,
                                  weight_quantizer *w) {
  const laci_node *node = &q->graph->nodes[layer->node];
  int value = node->inputs[layer->port];
  const laci_shape *shape = &q->graph->values[value].type.shape;
  int64_t groups = laci_node_is(node, "ConvTranspose") ? laci_node_int(node, "group", 1) : 1;
  *w = (weight_quantizer){.q = q, .layer = layer, .weight = find_current_floats(q, value)};
  w->n = laci_shape_count(shape);
  w->inner = laci_shape_count_range(shape, layer->k_axis + 1, shape->rank);
  w->n_channels = shape->dims[layer->k_axis];
  w->n_bias = w->n_channels * groups;
}

lac_status laci_quantize_scale_weight(const laci_quantizing *q, const laci_quantize_layer *layer,
                                      const float *scales, double **scaled, lac_error *err) {
  weight_quantizer w;
  weight_quantizer_init(q, layer, &w);
  w.factor = laci_alloc((size_t)w.n_bias, sizeof *w.factor);
  w.bias = laci_alloc((size_t)w.n_bias, sizeof *w.bias);
  double *to = laci_alloc((size_t)w.n, sizeof *to);
  const bool ok = w.factor && w.bias && to;
  if (ok) compute_channel_factors(&w);
  for (int64_t at = 0; at < w.n && ok; at++)
    to[at] = read_weight_with_norm(&w, at) / (double)scales[channel_of_element(&w, at)];
  laci_free(w.factor);
  laci_free(w.bias);
  *scaled = ok ? to : NULL;
  if (!ok) laci_free(to);
  return ok ? LAC_OK : laci_fail_memory(err, "the rounded weights of a layer");
}

lac_status laci_quantize_weight(const laci_quantizing *q, const laci_quantize_layer *layer,
                                laci_quantized_layer *report, laci_quantized_weight *out,
                                lac_error *err) {
  weight_quantizer w;
  const laci_node *node = &q->graph->nodes[layer->node];
  int data = laci_quantize_find_scale_owner(q, node->inputs[layer->other]);
  float data_scale = q->quantizers[data].scale;
  weight_quantizer_init(q, layer, &w);
  const laci_quantize_correction *corrected =
      q->trial->use ? &q->trial->use->layers[layer - q->layers] : NULL;
  bool has_bias = layer->bias >= 0 || layer->norm >= 0 || (corrected && corrected->bias) ||
                  (q->trial->find && laci_quantize_may_add_bias(q, layer));
  *out = (laci_quantized_weight){.n_channels = w.n_channels, .n_bias = has_bias ? w.n_bias : 0};
  w.factor = laci_alloc((size_t)w.n_bias, sizeof *w.factor);
  w.bias = laci_alloc((size_t)w.n_bias, sizeof *w.bias);
  w.largest = laci_alloc((size_t)w.n_channels, sizeof *w.largest);
  out->weight = laci_alloc((size_t)w.n, 1);
  out->scales = laci_alloc((size_t)w.n_channels, sizeof *out->scales);
  out->bias = has_bias ? laci_alloc((size_t)w.n_bias, sizeof *out->bias) : NULL;
  out->bias_scales = laci_alloc((size_t)w.n_bias, sizeof *out->bias_scales);
  bool ok = w.factor && w.bias && w.largest && out->weight && out->scales && out->bias_scales &&
            (out->bias || !has_bias);
  lac_status st = ok ? LAC_OK : laci_fail_memory(err, node->name);
  if (!st) compute_channel_factors(&w);
  if (!st) st = measure_largest_weights(&w, err);
  if (!st) choose_scales(&w, data_scale, out->scales);
  if (!st)
    report->weight_error =
        round_weights(&w, out->scales, corrected ? corrected->weight : NULL, out->weight);
  if (!st && has_bias) round_bias(&w, data_scale, corrected, out);
  for (int64_t k = 0; k < w.n_channels && !st; k++) {
    double scale = (double)out->scales[k];
    if (k == 0 || scale < report->scale_low) report->scale_low = scale;
    if (k == 0 || scale > report->scale_high) report->scale_high = scale;
  }
  report->bias = has_bias;
  report->weight_fitted = corrected && corrected->weight;
  report->bias_corrected = corrected && (corrected->bias || corrected->added);
  report->output_error_before = corrected ? corrected->error_before : 0;
  report->output_error = corrected ? corrected->error_after : 0;
  report->norm_folded = layer->norm >= 0;
  laci_free(w.factor);
  laci_free(w.bias);
  laci_free(w.largest);
  return st;
}

void laci_quantized_weight_clear(laci_quantized_weight *weight) {
  laci_free(weight->weight);
  laci_free(weight->scales);
  laci_free(weight->bias);
  laci_free(weight->bias_scales);
  *weight = (laci_quantized_weight){0};
}

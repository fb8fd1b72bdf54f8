/* SPDX-License-Identifier: Apache-2.0
 * Leaves the layers in floats that lose most, so that the quantized network keeps to a limit.
 *
 * Each layer is quantized alone, and the error of the network's outputs is its effect. The layers
 * of largest effect stay in floats, as few as the limit allows; their number is found by bisection.
 * Effects are measured on a few samples of those held back; the limit has samples of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "quantize/quantize_in.h"

enum { SAMPLES = 16 };                   /* number of samples on which effects are measured */
static const uint64_t cached = 64 << 20; /* limit of the bytes of outputs that are kept */

typedef struct layer_effect {
  int layer;
  double effect;
} layer_effect;

typedef struct mixed_work {
  const laci_weighted_graph *from;
  laci_onnx *file;
  const laci_quantize_options *how;
  int n_layers;
  laci_affine *scales;   /* [n_values] the scales of the network with all layers quantized */
  bool *in_floats;       /* [n_layers] layers that stay in floats in a trial */
  layer_effect *effects; /* [n_effects] layers that can be quantized */
  int n_effects;
} mixed_work;

static lac_status measure_loss(const mixed_work *w, laci_quantization *q, lac_error *err) {
  const uint8_t **weights = laci_quantize_match_weights(w->from, q->graph);
  if (!weights) return laci_fail_memory(err, "the quantized network");
  const laci_weighted_graph to = {q->graph, weights};
  lac_status st = w->how->limit->measure(w->how->limit->context, &to, &q->loss, err);
  laci_free(weights);
  return st;
}

/* Lists the layers that were quantized. */
static lac_status list_layers(mixed_work *w, const laci_quantization *all, lac_error *err) {
  w->n_layers = all->n_layers;
  w->in_floats = laci_alloc((size_t)w->n_layers + 1, sizeof *w->in_floats);
  w->effects = laci_alloc((size_t)w->n_layers + 1, sizeof *w->effects);
  if (!w->in_floats || !w->effects) return laci_fail_memory(err, "the effects of layers");
  for (int l = 0; l < w->n_layers; l++) {
    if (!all->layers[l].reason) w->effects[w->n_effects++] = (layer_effect){l, 0};
  }
  return LAC_OK;
}

static int compare_effects(const void *a, const void *b) {
  const layer_effect *p = a, *q = b;
  if (p->effect != q->effect) return p->effect > q->effect ? -1 : 1;
  return p->layer - q->layer;
}

/* Measures the effect of each layer, and sorts the layers: the largest effect first. */
static lac_status measure_effects(mixed_work *w, lac_error *err) {
  laci_output_cache *cache = laci_output_cache_create(cached);
  const laci_quantize_trial trial = {
      .quantizers = w->scales, .in_floats = w->in_floats, .cache = cache, .most_compared = SAMPLES};
  lac_status st = LAC_OK;
  for (int at = 0; at < w->n_effects && !st; at++) {
    laci_quantization *one = NULL;
    for (int l = 0; l < w->n_layers; l++) w->in_floats[l] = l != w->effects[at].layer;
    st = laci_quantize_once(w->from, w->file, w->how, &trial, &one, err);
    if (!st) w->effects[at].effect = laci_worst_part_error(&one->outputs);
    laci_quantization_destroy(one);
  }
  laci_output_cache_destroy(cache);
  if (!st) qsort(w->effects, (size_t)w->n_effects, sizeof *w->effects, compare_effects);
  return st;
}

/* Returns why a layer stays in floats; NULL: there is no memory. */
static const char *explain_float_layer(laci_quantization *made, double effect) {
  char text[128];
  (void)snprintf(text, sizeof text,
                 "quantized alone it changes the outputs by %.3g %%, and the loss is limited",
                 100 * effect);
  return laci_arena_text(&made->arena, text);
}

/* Quantizes all layers but the n of largest effect. */
static lac_status quantize_but_worst(mixed_work *w, int n, int64_t most_compared,
                                     laci_quantization **made, lac_error *err) {
  const laci_quantize_trial trial = {
      .quantizers = w->scales, .in_floats = w->in_floats, .most_compared = most_compared};
  memset(w->in_floats, 0, (size_t)w->n_layers * sizeof *w->in_floats);
  for (int at = 0; at < n; at++) w->in_floats[w->effects[at].layer] = true;
  lac_status st = laci_quantize_corrected(w->from, w->file, w->how, &trial, made, err);
  for (int at = 0; at < w->n_effects && !st; at++) {
    laci_quantized_layer *layer = &(*made)->layers[w->effects[at].layer];
    layer->effect = w->effects[at].effect;
    if (at < n && !(layer->reason = explain_float_layer(*made, layer->effect)))
      return laci_fail_memory(err, "the effects of layers");
  }
  return st;
}

/* Finds the least number of layers that have to stay in floats for the limit to hold, at least one,
 * and the loss with it. A trial is undone before the next one, since both change the file. */
static lac_status find_fewest_in_floats(mixed_work *w, int *fewest, double *loss, lac_error *err) {
  int least = 1, most = w->n_effects;
  while (least < most) {
    const int n = least + (most - least) / 2;
    laci_quantization *tried = NULL;
    lac_status st = quantize_but_worst(w, n, 0, &tried, err);
    if (!st) st = measure_loss(w, tried, err);
    const double found = st ? 0 : tried->loss;
    laci_quantization_destroy(tried);
    if (st) return st;
    if (found <= w->how->limit->most) {
      most = n;
      *loss = found;
    } else {
      least = n + 1;
    }
  }
  *fewest = most;
  if (most < w->n_effects) return LAC_OK;
  return laci_fail(err, LAC_BAD_VALUE,
                   "no layer can be quantized without a loss above %g: wanted a higher limit, or a "
                   "network in floats",
                   w->how->limit->most);
}

static lac_status leave_worst_in_floats(mixed_work *w, laci_quantization **made, lac_error *err) {
  int n = 0;
  double loss = 0;
  lac_status st = measure_effects(w, err);
  if (!st) st = find_fewest_in_floats(w, &n, &loss, err);
  if (!st) st = quantize_but_worst(w, n, LACI_QUANTIZE_COMPARE_ALL, made, err);
  if (st) return st;
  (*made)->loss = loss;
  laci_log(LAC_LOG_INFO, "%d of %d layers stay in floats; quantized, the others lose at most %.3g",
           n, w->n_effects, loss);
  return LAC_OK;
}

lac_status laci_quantize_within_limit(const laci_weighted_graph *from, laci_onnx *file,
                                      const laci_quantize_options *options,
                                      laci_quantization **quantization, lac_error *err) {
  mixed_work w = {.from = from, .file = file, .how = options};
  laci_quantization *all = NULL;
  w.scales = laci_alloc((size_t)from->graph->n_values + 1, sizeof *w.scales);
  const laci_quantize_trial trial = {.found = w.scales, .most_compared = LACI_QUANTIZE_COMPARE_ALL};
  lac_status st = w.scales ? LAC_OK : laci_fail_memory(err, "the scales of values");
  if (!st) st = laci_quantize_corrected(from, file, options, &trial, &all, err);
  if (!st) st = measure_loss(&w, all, err);
  if (!st && all->loss > options->limit->most) {
    laci_log(LAC_LOG_INFO,
             "quantized, all layers together lose at most %.3g, above the limit of %g", all->loss,
             options->limit->most);
    st = list_layers(&w, all, err);
    laci_quantization_destroy(all);
    all = NULL;
    if (!st) st = leave_worst_in_floats(&w, &all, err);
  }
  laci_free(w.effects);
  laci_free(w.in_floats);
  laci_free(w.scales);
  if (st) laci_quantization_destroy(all);
  else *quantization = all;
  return st;
}

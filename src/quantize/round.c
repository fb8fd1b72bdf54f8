/* SPDX-License-Identifier: Apache-2.0
 * Rounds a layer's weights such that its outputs change least on the samples, by the inputs that it
 * has in the quantized network (calibrate/rounding.h). */
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "calibrate/rounding.h"
#include "quantize/correct_in.h"

/** Sums over the inputs of a layer. */
typedef struct input_sums {
  const laci_correcting *c;
  const laci_correct_site *at;
  int site; /* index of the site */
  const laci_shape *output;
  laci_rounding *rounding; /* NULL before the first batch */
  const char *reason;      /* why the weights are not fitted; NULL: they are */
  float *buffer;           /* memory for a batch of the inputs in floats */
} input_sums;

static lac_status open_sums(input_sums *s, const laci_shape *input, lac_error *err) {
  const laci_quantizing *q = s->c->q;
  const laci_quantize_layer *layer = &q->layers[s->at->layer];
  const laci_rounding_options how = {.graph = q->graph,
                                     .node = &q->graph->nodes[layer->node],
                                     .port = layer->port,
                                     .input = input,
                                     .output = s->output,
                                     .n_batches = s->c->n_fitted,
                                     .centered = s->at->bias >= 0,
                                     .from_floats = true,
                                     .pool = q->how->pool,
                                     .budget = q->how->budget};
  s->buffer = laci_alloc((size_t)laci_shape_count(input) + 1, sizeof *s->buffer);
  if (!s->buffer) return laci_fail_memory(err, "the rounded weights of a layer");
  return laci_rounding_create(&how, &s->rounding, &s->reason, err);
}

static lac_status add_inputs(void *context, const laci_sequence_value *seen, lac_error *err) {
  input_sums *s = context;
  if (seen->batch >= s->c->n_fitted || s->reason) return LAC_OK;
  lac_status st = s->rounding ? LAC_OK : open_sums(s, seen->shape, err);
  if (st || !s->rounding) return st;
  const float *floats = NULL;
  st = laci_sequence_read_stop(s->c->floats, laci_correct_input_stop(s->site), seen->batch,
                               s->buffer, &floats, err);
  if (!st) laci_rounding_add(s->rounding, seen->elements, floats);
  return st;
}

static lac_status round_by_sums(const input_sums *s, int8_t **fitted, lac_error *err) {
  const laci_quantizing *q = s->c->q;
  const laci_quantize_layer *layer = &q->layers[s->at->layer];
  double *scaled = NULL;
  lac_status st = laci_quantize_scale_weight(q, layer, s->at->weight_scales, &scaled, err);
  if (!st) *fitted = laci_alloc(s->c->graph->stored[s->at->weight].size_bytes, 1);
  if (!st && !*fitted) st = laci_fail_memory(err, "the rounded weights of a layer");
  if (!st) st = laci_rounding_finish(s->rounding, scaled, INT8_MAX, *fitted, err);
  laci_free(scaled);
  return st;
}

lac_status laci_correct_round_weight(const laci_correcting *c, int site, const laci_shape *output,
                                     int8_t **fitted, lac_error *err) {
  const laci_correct_site *at = &c->sites[site];
  input_sums s = {.c = c, .at = at, .site = site, .output = output};
  lac_status st = LAC_OK;
  *fitted = NULL;
  if (laci_calibration_count_shape_sets(c->q->how->samples) > 1)
    s.reason = "the samples have several sizes";
  else st = laci_sequence_visit(c->integers, add_inputs, &s, err);
  if (!st && s.rounding) st = round_by_sums(&s, fitted, err);
  if (!st && s.reason)
    laci_log(LAC_LOG_DEBUG, "%s: weights are rounded to the nearest integers: %s",
             c->q->graph->nodes[c->q->layers[at->layer].node].name, s.reason);
  laci_rounding_destroy(s.rounding);
  laci_free(s.buffer);
  return st;
}

/* SPDX-License-Identifier: Apache-2.0
 * Measures the layers' weights, and how much of their score an N:M mask would keep. sparse/score.h
 * defines the score of an element. */
#include <inttypes.h>
#include <stdio.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/acquire.h"
#include "base/memory.h"
#include "prune/prune_in.h"
#include "sparse/measure.h"
#include "sparse/mask.h"
#include "sparse/score.h"
#include "tensor/buf.h"

lac_status laci_pruning_set_rule(laci_pruning *p, const laci_prune_options *options,
                                 lac_error *err) {
  p->rule = (laci_mask_rule){options->pattern, options->form, options->v};
  p->scores = options->scores;
  return laci_mask_rule_check(&p->rule, err);
}

/* Can elements of this type be measured? Types such as those of four bits cannot. */
static bool is_measurable(lac_dtype dtype) {
  return lac_dtype_size(dtype) > 0 && laci_dtype_is_numeric(dtype);
}

/* Measures the weight of layer l, which is in memory. A layer that will not be pruned may have a
 * shape that the mask rule cannot handle; whether it holds the pattern is still measured. */
static lac_status measure_layer(laci_pruning *p, int l, const laci_weight_view *weight,
                                laci_pool *pool, lac_error *err) {
  const laci_layer *layer = &p->analysis->layers[l];
  laci_pruned_layer *out = &p->layers[l];
  laci_mask_rule rule = p->rule;
  laci_weight_view view = *weight;
  laci_mask_stats stats;
  laci_mask_scores scores;
  if (layer->eligible && p->scores) view.score = p->scores[layer->stored];
  if (!layer->eligible && rule.form != LACI_MASK_SHARED) rule.form = LACI_MASK_1D;
  lac_status st = laci_mask_measure_by_rule(&view, &rule, pool, &stats, &scores, err);
  if (st) return st;
  out->kept_identity = out->kept = stats.kept;
  out->total = stats.total;
  out->score_kept = out->score_kept_identity = scores.kept;
  out->score_total = scores.total;
  out->n_zeros = stats.n_zeros;
  out->n_elements = stats.n_elements;
  out->holds_pattern = stats.holds_pattern;
  out->measured = true;
  out->was_pruned = laci_mask_stats_are_pruned(&stats, layer->channels_in, p->pattern.n);
  if (!out->was_pruned) return LAC_OK;
  return laci_weight_has_pattern_along_rows(&view, p->pattern, pool, &out->holds_rows, err);
}

lac_status laci_pruning_set_reason_few_nonzeros(laci_pruning *p, int l, lac_error *err) {
  enum { SHARE = 16 };
  laci_pruned_layer *layer = &p->layers[l];
  const int64_t left = layer->n_elements - layer->n_zeros;
  const int64_t most = layer->n_elements / p->pattern.m * p->pattern.n;
  char text[160];
  if (!p->analysis->layers[l].eligible || left <= 0 || left * SHARE >= most) return LAC_OK;
  (void)snprintf(text, sizeof text,
                 "only %" PRId64 " of %" PRId64 " weights %s not zero: %d:%d would leave %" PRId64,
                 left, layer->n_elements, left == 1 ? "is" : "are", p->pattern.n, p->pattern.m,
                 most);
  layer->reason = laci_arena_text(&p->arena, text);
  return layer->reason ? LAC_OK : laci_fail_memory(err, "the pruning");
}

lac_status laci_pruning_measure_layers(laci_pruning *p, laci_pool *pool, lac_error *err) {
  for (int l = 0; l < p->analysis->n_layers; l++) {
    const laci_layer *layer = &p->analysis->layers[l];
    laci_pruned_layer *out = &p->layers[l];
    if (!layer->view.bytes || !is_measurable(layer->view.dtype)) continue;
    laci_weight_view view;
    laci_acquired_bytes held;
    lac_status st = laci_weight_acquire(&layer->view, &view, &held, err);
    if (st) return st;
    lac_error own = {0};
    st = measure_layer(p, l, &view, pool, &own);
    laci_bytes_release(&held);
    const bool matters = layer->eligible || laci_status_is_not_about_data(st);
    /* a NaN or an infinity in a layer that stays unchanged is no failure */
    if (st && !matters) continue;
    if (st) {
      if (err) *err = own;
      return st;
    }
    if (layer->eligible && laci_pruned_layer_is_zero(out)) {
      out->reason = "all zero: no magnitude tells which weights to keep";
    }
    if (out->was_pruned) st = laci_pruning_set_reason_few_nonzeros(p, l, err);
    if (st) return st;
  }
  return LAC_OK;
}

lac_status laci_pruning_measure_kept(laci_pruning *p, laci_pool *pool, lac_error *err) {
  const laci_analysis *a = p->analysis;
  for (int l = 0; l < a->n_layers; l++) {
    const laci_layer *layer = &a->layers[l];
    uint8_t *bytes;
    if (!layer->eligible) continue;
    p->layers[l].kept = p->layers[l].kept_identity;
    p->layers[l].score_kept = p->layers[l].score_kept_identity;
    lac_status st = laci_copy_reordered_bytes(p->plan, layer->stored, &bytes, err);
    if (st) return st;
    if (!bytes) continue;
    laci_mask_stats stats;
    laci_weight_view view = layer->view;
    view.bytes = bytes;
    view.bytes_from = NULL;
    laci_mask_scores by_score;
    float *scores = NULL;
    double *scales = NULL;
    if (!laci_reorder_scales(p->plan, layer, &view, &scales))
      st = laci_fail_memory(err, "scales of a weight");
    if (!st) st = laci_reorder_scores(p, layer->stored, &view, &scores, err);
    if (!st) st = laci_mask_measure_by_rule(&view, &p->rule, pool, &stats, &by_score, err);
    laci_free(scores);
    laci_free(scales);
    laci_free(bytes);
    if (st) return st;
    p->layers[l].kept = stats.kept;
    p->layers[l].score_kept = by_score.kept;
  }
  return LAC_OK;
}

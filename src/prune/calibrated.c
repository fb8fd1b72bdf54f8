/* SPDX-License-Identifier: Apache-2.0
 * Chooses masks and weights by samples of the network's inputs. The network, in its new order, is
 * calibrated (calibrate/walk.h). The resulting masks and weights replace those by magnitude. Layers
 * that keep their masks stay unchanged. So do layers that stay dense to limit the loss
 * (dense.c). */
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "calibrate/fit.h"
#include "calibrate/walk.h"
#include "graph/graph.h"
#include "prune/prune_in.h"

static int find_first_layer_of_weight(const laci_analysis *a, const bool *wanted, int stored) {
  for (int l = 0; l < a->n_layers; l++) {
    if (wanted[l] && a->layers[l].stored == stored) return l;
  }
  return -1;
}

/* Moves the mask and the weight that the calibration found for layer l into the result. */
static lac_status take_calibrated_weight(laci_pruning *p, int l, laci_calibrated *c,
                                         laci_pool *pool, lac_error *err) {
  const int s = p->analysis->layers[l].stored;
  const laci_stored *stored = &p->analysis->graph->stored[s];
  uint8_t *bytes = c->weights[s];
  c->weights[s] = NULL;
  if (!bytes) { /* the calibration left the weight unchanged, since it already had these zeros */
    bytes = laci_alloc(stored->size_bytes, 1);
    if (!bytes) return laci_fail_memory(err, stored->name);
    memcpy(bytes, p->weights[s] ? p->weights[s] : stored->bytes, stored->size_bytes);
  }
  lac_status st = laci_pruning_set_masked_weight(p, l, c->masks[s], bytes, pool, err);
  if (st) laci_free(bytes);
  return st;
}

static lac_status record_calibrated_layer(laci_pruning *p, int l, const laci_calibrated_layer *from,
                                          lac_error *err) {
  laci_pruned_layer *to = &p->layers[l];
  to->calibrated = from->calibrated;
  to->solved = from->solved;
  to->error_before = from->error_before;
  to->error_after = from->error_after;
  if (!from->reason) return LAC_OK;
  char text[512];
  (void)snprintf(text, sizeof text, "pruned by magnitude: %.400s", from->reason);
  to->reason = laci_arena_text(&p->arena, text);
  return to->reason ? LAC_OK : laci_fail_memory(err, "the pruning");
}

static lac_status take_all_calibrated_weights(laci_pruning *p, const bool *wanted,
                                              laci_calibrated *c, laci_pool *pool, lac_error *err) {
  const laci_analysis *a = p->analysis;
  lac_status st = LAC_OK;
  for (int s = 0; s < a->graph->n_stored && !st; s++) {
    int l = c->masks[s] ? find_first_layer_of_weight(a, wanted, s) : -1;
    if (l >= 0) st = take_calibrated_weight(p, l, c, pool, err);
  }
  for (int l = 0; l < a->n_layers && !st; l++) {
    if (c->layers[l].pruned) st = record_calibrated_layer(p, l, &c->layers[l], err);
  }
  return st;
}

/* Stores figures of the calibration in the result: the numbers of samples, the difference of the
 * outputs, and the memory. */
static lac_status record_calibration(laci_pruning *p, const laci_prune_options *options,
                                     const laci_calibrated *c, lac_error *err) {
  laci_pruning_calibration *to = &p->calibration;
  const laci_calibration_cut *cut = &c->cut;
  to->done = true;
  to->score = laci_score_name(options->calibration->score);
  to->n_fitted = cut->n_fitted * cut->batch;
  to->n_held_back = (cut->n_batches - cut->n_fitted) * cut->batch;
  to->outputs = c->outputs;
  to->values_bytes = c->values_bytes;
  to->file_bytes = c->file_bytes;
  if (!c->outputs_reason) return LAC_OK;
  to->outputs_reason = laci_arena_text(&p->arena, c->outputs_reason);
  return to->outputs_reason ? LAC_OK : laci_fail_memory(err, "the pruning");
}

static void log_result(const laci_pruning *p) {
  const laci_pruning_calibration *c = &p->calibration;
  char text[64];
  laci_log(LAC_LOG_DEBUG,
           "calibration: %.1f s, %.1f s of it for masks and weights; values between layers took %s",
           c->seconds, c->fit_seconds, laci_size_text(c->values_bytes, text, sizeof text));
  if (c->outputs_reason) {
    laci_log(LAC_LOG_WARNING, "the outputs of the pruned network were not compared: %s",
             c->outputs_reason);
  }
  for (int l = 0; l < p->analysis->n_layers; l++) {
    const laci_pruned_layer *layer = &p->layers[l];
    if (!layer->calibrated) continue;
    laci_log(LAC_LOG_DEBUG, "%s: error %.4g %% masked, %.4g %% as written%s",
             p->analysis->graph->nodes[p->analysis->layers[l].node].name, 100 * layer->error_before,
             100 * layer->error_after, layer->solved ? "" : " (not solved)");
  }
}

lac_status laci_pruning_calibrate(laci_pruning *p, const laci_prune_options *options,
                                  laci_pool *pool, lac_error *err) {
  lac_status st = LAC_OK;
  p->wanted = laci_alloc((size_t)p->analysis->n_layers, sizeof *p->wanted);
  if (!p->wanted) return laci_fail_memory(err, "the pruning");
  if (laci_pruning_select_layers_to_fit(p, options, p->wanted) == 0) return LAC_OK;
  if (!p->fitted) /* if p->fitted is set already, it is the fit in the orders that were chosen */
    st = laci_pruning_fit_layers(p, options, p->wanted, pool, &p->fitted, err);
  if (!st && options->calibration->must_gain)
    st = laci_pruning_compare_with_magnitude(p, options, pool, err);
  return st ? st : laci_pruning_choose_dense_layers(p, options, pool, p->wanted, &p->fitted, err);
}

lac_status laci_pruning_use_fitted_weights(laci_pruning *p, const laci_prune_options *options,
                                           laci_pool *pool, lac_error *err) {
  lac_status st = take_all_calibrated_weights(p, p->wanted, p->fitted, pool, err);
  if (!st) st = record_calibration(p, options, p->fitted, err);
  if (!st) log_result(p);
  laci_calibrated_destroy(p->fitted);
  p->fitted = NULL;
  return st;
}

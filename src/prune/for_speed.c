/* SPDX-License-Identifier: Apache-2.0
 * Without samples: lets layers stay dense that need not be pruned to reach a wanted speed. The harm
 * of pruning a layer is the share of its weights' squares, or of their scores, that its mask
 * removes. */
#include <math.h>
#include <stdio.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "prune/prune_in.h"
#include "prune/speed.h"

static double compute_fraction_of_lost_score(const laci_pruned_layer *layer) {
  return layer->score_total > 0 ? fmax(0, 1 - layer->score_kept / layer->score_total) : 0;
}

static bool is_weight_listed(const laci_analysis *a, const laci_speed_layer *layers, int n, int l) {
  for (int k = 0; k < n; k++)
    if (a->layers[layers[k].layer].stored == a->layers[l].stored) return true;
  return false;
}

/* Lists the layers that would be pruned, one for each weight. always[l] is set for layers that are
 * pruned in any case. */
static int list_layers_to_prune(const laci_pruning *p, const laci_prune_options *options,
                                laci_speed_layer *layers, bool *always) {
  const laci_analysis *a = p->analysis;
  int n = 0;
  for (int l = 0; l < a->n_layers; l++) {
    if (!a->layers[l].eligible || laci_pruned_layer_is_zero(&p->layers[l])) continue;
    always[l] = laci_pruning_keeps_mask_of_layer(p, options, l);
    if (always[l] || is_weight_listed(a, layers, n, l)) continue;
    layers[n++] =
        (laci_speed_layer){.layer = l, .error = compute_fraction_of_lost_score(&p->layers[l])};
  }
  return n;
}

static lac_status exclude_layer_for_speed(laci_pruning *p, const laci_speed_layer *layer,
                                          lac_error *err) {
  const laci_analysis *a = p->analysis;
  char text[160];
  (void)snprintf(text, sizeof text,
                 "left dense: pruned it loses %.3g %% of its magnitude's squares, and is "
                 "predicted to save %.3g us",
                 100 * layer->error, 1e6 * layer->saved);
  for (int l = 0; l < a->n_layers; l++) {
    if (a->layers[l].stored != a->layers[layer->layer].stored || !a->layers[l].eligible) continue;
    p->left_dense[l] = true;
    p->layers[l].kept = p->layers[l].total;
    p->layers[l].score_kept = p->layers[l].score_total;
    p->layers[l].reason = laci_arena_text(&p->arena, text);
    if (!p->layers[l].reason) return laci_fail_memory(err, "the pruning");
  }
  return LAC_OK;
}

lac_status laci_pruning_exclude_for_speed(laci_pruning *p, const laci_prune_options *options,
                                          lac_error *err) {
  const size_t n_layers = (size_t)p->analysis->n_layers + 1;
  if (!options->mask || !options->timing || !(options->timing->speed > 0)) return LAC_OK;
  laci_speed_layer *layers = laci_alloc(n_layers, sizeof *layers);
  bool *always = laci_alloc(n_layers, sizeof *always);
  p->left_dense = laci_alloc(n_layers, sizeof *p->left_dense);
  lac_status st =
      layers && always && p->left_dense ? LAC_OK : laci_fail_memory(err, "the predicted times");
  const int n = st ? 0 : list_layers_to_prune(p, options, layers, always);
  laci_speed_choice choice = {p->analysis, options->timing, always, layers, n, 0};
  if (!st) st = laci_speed_choose_for_target(&choice, err);
  int n_pruned = 0;
  for (int k = 0; k < n && !st && !options->calibration; k++) {
    n_pruned += layers[k].pruned;
    if (!layers[k].pruned) st = exclude_layer_for_speed(p, &layers[k], err);
  }
  if (!st && !options->calibration)
    laci_log(LAC_LOG_INFO, "%d of %d layer%s pruned for %g times the speed: %.3g predicted",
             n_pruned, n, laci_plural(n), options->timing->speed, choice.reached);
  laci_free(layers);
  laci_free(always);
  return st;
}

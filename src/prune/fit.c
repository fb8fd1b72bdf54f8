/* SPDX-License-Identifier: Apache-2.0
 * Calibrates the wanted layers in one walk through the network, in its new order
 * (calibrate/walk.h). */
#include "analyze/analyze.h"
#include "base/budget.h"
#include "calibrate/walk.h"
#include "graph/graph.h"
#include "prune/prune_in.h"

int laci_pruning_select_layers_to_fit(const laci_pruning *p, const laci_prune_options *options,
                                      bool *wanted) {
  int n = 0;
  for (int l = 0; l < p->analysis->n_layers; l++) {
    const laci_pruned_layer *layer = &p->layers[l];
    wanted[l] = p->analysis->layers[l].eligible && !laci_pruned_layer_is_zero(layer) &&
                !laci_pruning_keeps_mask_of_layer(p, options, l);
    n += wanted[l];
  }
  return n;
}

/* Returns the memory budget during the calibration: `base`, and the weights in their new order. */
static laci_budget budget_with_new_weights(const laci_pruning *p, const laci_budget *base) {
  const laci_graph *graph = p->analysis->graph;
  laci_budget budget = *base;
  for (int s = 0; s < graph->n_stored; s++) {
    if (p->weights[s])
      laci_budget_add(&budget, graph->stored[s].size_bytes, "%.200s (made anew)",
                      graph->stored[s].name);
  }
  return budget;
}

/* Returns the number of calibration walks whose time is forecast when this one begins; 0 after the
 * first. If orders are judged, there is a fit in the file's orders, one in the new orders, and
 * mostly one in a mixture of both. */
static int count_walks_to_forecast(const laci_pruning *p) {
  enum { OF_ORDERS = 3 };
  if (p->calibration.seconds > 0) return 0;
  return p->orders ? OF_ORDERS : 1;
}

lac_status laci_pruning_fit_layers(laci_pruning *p, const laci_prune_options *options,
                                   const bool *wanted, laci_pool *pool, laci_calibrated **fitted,
                                   lac_error *err) {
  const laci_budget budget = budget_with_new_weights(p, options->budget);
  const laci_calibrate_options how = {.pattern = p->pattern,
                                      .form = p->rule.form,
                                      .v = p->rule.v,
                                      .seed = options->search.seed,
                                      .score = options->calibration->score,
                                      .solve = options->calibration->solve,
                                      .wanted = wanted,
                                      .n_walks = count_walks_to_forecast(p),
                                      .weights = (const uint8_t *const *)p->weights,
                                      .budget = &budget,
                                      .pool = pool};
  lac_status st = laci_calibrate(p->analysis, options->calibration->samples, &how, fitted, err);
  if (st) return st;
  p->calibration.seconds += (*fitted)->seconds;
  p->calibration.fit_seconds += (*fitted)->fit_seconds;
  p->calibration.forecast_seconds += (*fitted)->forecast_seconds;
  if ((*fitted)->forecast_bytes > p->calibration.forecast_bytes)
    p->calibration.forecast_bytes = (*fitted)->forecast_bytes;
  return LAC_OK;
}

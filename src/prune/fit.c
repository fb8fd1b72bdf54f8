/* SPDX-License-Identifier: Apache-2.0
 * Calibrates the wanted layers in one walk through the network, in its new order
 * (calibrate/walk.h). */
#include "analyze/analyze.h"
#include "base/budget.h"
#include "base/error.h"
#include "calibrate/walk.h"
#include "graph/graph.h"
#include "prune/prune_in.h"
#include "prune/speed.h"

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
 * mostly one in a mixture of both. If layers stay dense, there is a fit that ranks them and one
 * without them; how many more a limited loss takes is not known. */
static int count_walks_to_forecast(const laci_pruning *p, const laci_prune_options *options) {
  enum { OF_ORDERS = 3, OF_RANKING = 1, OF_REST = 1 };
  const laci_prune_calibration *how = options->calibration;
  const bool fast = options->timing && options->timing->speed > 0,
             fewer = how->keep_dense > 0 || fast;
  if (p->calibration.seconds > 0) return 0;
  return (p->orders ? OF_ORDERS : 1) + (fewer || how->curve ? OF_RANKING : 0) +
         (fewer ? OF_REST : 0);
}

/* Compares the outputs of the networks as they are deployed, with the statistics that the file
 * stores. */
static lac_status compare_deployed_outputs(const laci_pruning *p, const laci_prune_options *options,
                                           laci_pool *pool, laci_calibrated *fitted,
                                           lac_error *err) {
  const laci_graph *graph = p->analysis->graph;
  const laci_calibration_cut *cut = &fitted->cut;
  const int64_t n_held = cut->n_batches - cut->n_fitted;
  const laci_compare_options how = {.first = (n_held > 0 ? cut->n_fitted : 0) * cut->batch,
                                    .n = (n_held > 0 ? n_held : cut->n_batches) * cut->batch,
                                    .batch = cut->batch,
                                    .pool = pool,
                                    .budget = options->budget};
  if (fitted->outputs_reason) return LAC_OK;
  const uint8_t **weights =
      (const uint8_t **)laci_alloc((size_t)graph->n_stored + 1, sizeof *weights);
  if (!weights) return laci_fail_memory(err, "the outputs");
  for (int s = 0; s < graph->n_stored; s++)
    weights[s] = fitted->weights[s] ? fitted->weights[s] : p->weights[s];
  const laci_weighted_graph dense = {graph, (const uint8_t *const *)p->weights};
  const laci_weighted_graph pruned = {graph, weights};
  lac_status st = laci_compare_outputs(&dense, &pruned, options->calibration->samples, &how,
                                       &fitted->outputs, err);
  laci_free((void *)weights);
  return st;
}

static void add_to_totals(laci_pruning *p, const laci_calibrated *fitted) {
  laci_pruning_calibration *to = &p->calibration;
  to->seconds += fitted->seconds;
  to->fit_seconds += fitted->fit_seconds;
  to->forecast_seconds += fitted->forecast_seconds;
  if (fitted->forecast_bytes > to->forecast_bytes) to->forecast_bytes = fitted->forecast_bytes;
}

typedef struct request {
  laci_pruning *p;
  const laci_prune_options *options;
  const bool *wanted;
  bool each_alone;
  laci_pool *pool;
} request;

static lac_status fit_as_requested(const request *r, laci_calibrated **fitted, lac_error *err) {
  laci_pruning *p = r->p;
  const laci_prune_options *options = r->options;
  const laci_budget budget = budget_with_new_weights(p, options->budget);
  laci_adapted adapted;
  *fitted = NULL;
  lac_status st = laci_pruning_adapt_to_samples(p, options, r->pool, &adapted, err);
  const laci_calibrate_options how = {.pattern = p->pattern,
                                      .form = p->rule.form,
                                      .v = p->rule.v,
                                      .seed = options->search.seed,
                                      .score = options->calibration->score,
                                      .solve = options->calibration->solve,
                                      .each_alone = r->each_alone,
                                      .wanted = r->wanted,
                                      .n_walks = count_walks_to_forecast(p, options),
                                      .weights = adapted.weights,
                                      .budget = &budget,
                                      .pool = r->pool};
  if (!st) st = laci_calibrate(p->analysis, options->calibration->samples, &how, fitted, err);
  if (!st && adapted.done && !r->each_alone)
    st = compare_deployed_outputs(p, options, r->pool, *fitted, err);
  laci_adapted_clear(&adapted);
  if (!st) {
    add_to_totals(p, *fitted);
    return LAC_OK;
  }
  laci_calibrated_destroy(*fitted);
  *fitted = NULL;
  return st;
}

lac_status laci_pruning_fit_layers(laci_pruning *p, const laci_prune_options *options,
                                   const bool *wanted, laci_pool *pool, laci_calibrated **fitted,
                                   lac_error *err) {
  return fit_as_requested(&(request){p, options, wanted, false, pool}, fitted, err);
}

lac_status laci_pruning_fit_each_alone(laci_pruning *p, const laci_prune_options *options,
                                       const bool *wanted, laci_pool *pool,
                                       laci_calibrated **fitted, lac_error *err) {
  return fit_as_requested(&(request){p, options, wanted, true, pool}, fitted, err);
}

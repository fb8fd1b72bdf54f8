/* SPDX-License-Identifier: Apache-2.0
 * Compares a fit with masks by magnitude: are its outputs nearer to those of the dense network?
 * This is checked if the user did not choose the samples, which may be unlike the network's
 * data. */
#include "analyze/analyze.h"
#include "base/error.h"
#include "base/log.h"
#include "calibrate/walk.h"
#include "graph/graph.h"
#include "prune/prune_in.h"

/* Fills weights, [n_stored]. A wanted layer gets a copy of its weight, masked by magnitude, which
 * is also listed in `masked`. The others get the result's weights. */
static lac_status mask_wanted_layers(const laci_pruning *p, laci_pool *pool,
                                     const uint8_t **weights, uint8_t **masked, lac_error *err) {
  const laci_analysis *a = p->analysis;
  lac_status st = LAC_OK;
  for (int s = 0; s < a->graph->n_stored; s++) weights[s] = p->weights[s];
  for (int l = 0; l < a->n_layers && !st; l++) {
    const int s = a->layers[l].stored;
    if (!p->wanted[l] || masked[s]) continue;
    st = laci_pruning_copy_masked(p, l, pool, &masked[s], err);
    weights[s] = masked[s];
  }
  return st;
}

/* Compares the outputs of the dense network with those of the network with `weights`, on the
 * samples by which the fit was judged. */
static lac_status compare_with_masked_weights(const laci_pruning *p,
                                              const laci_prune_options *options, laci_pool *pool,
                                              const uint8_t **weights,
                                              laci_output_difference *difference, lac_error *err) {
  const laci_calibration_cut *cut = &p->fitted->cut;
  const int64_t n_held = cut->n_batches - cut->n_fitted;
  const laci_compare_options how = {.first = (n_held > 0 ? cut->n_fitted : 0) * cut->batch,
                                    .n = (n_held > 0 ? n_held : cut->n_batches) * cut->batch,
                                    .batch = cut->batch,
                                    .pool = pool,
                                    .budget = options->budget};
  const laci_graph *graph = p->analysis->graph;
  const laci_weighted_graph dense = {graph, (const uint8_t *const *)p->weights};
  const laci_weighted_graph plain = {graph, weights};
  return laci_compare_outputs(&dense, &plain, options->calibration->samples, &how, difference, err);
}

lac_status laci_pruning_compare_with_magnitude(laci_pruning *p, const laci_prune_options *options,
                                               laci_pool *pool, lac_error *err) {
  const int n = p->analysis->graph->n_stored;
  const double fitted = p->fitted->outputs.relative;
  laci_output_difference plain = {.n_samples = 0};
  if (p->fitted->outputs_reason) return LAC_OK;
  const uint8_t **weights = laci_alloc((size_t)n + 1, sizeof *weights);
  uint8_t **masked = laci_alloc((size_t)n + 1, sizeof *masked);
  lac_status st = weights && masked ? mask_wanted_layers(p, pool, weights, masked, err)
                                    : laci_fail_memory(err, "masks by magnitude");
  if (!st) st = compare_with_masked_weights(p, options, pool, weights, &plain, err);
  for (int s = 0; masked && s < n; s++) laci_free(masked[s]);
  laci_free(masked);
  laci_free(weights);
  if (st) return st;
  p->calibration.error_magnitude = plain.relative;
  laci_log(LAC_LOG_DEBUG, "masks by magnitude: outputs differ by %.4g %%, fitted ones by %.4g %%",
           100 * plain.relative, 100 * fitted);
  if (!(fitted > plain.relative)) return LAC_OK;
  return laci_fail(
      err, LAC_UNSUPPORTED,
      "fitted weights change the outputs by %.3g %%, and masks by magnitude by %.3g %%",
      100 * fitted, 100 * plain.relative);
}

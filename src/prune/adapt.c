/* SPDX-License-Identifier: Apache-2.0
 * Adapts the dense network to drawn samples before layers are fitted on them. Its batch
 * normalizations get the means and variances of these samples, so that each channel has the mean
 * and variance after every normalization that it has on real data. Fits then see inputs of the
 * right sizes, from the first layer to the last. The statistics are used during a fit only. (Li and
 * others, "Revisiting Batch Normalization for Practical Domain Adaptation", 2016.) */
#include "analyze/analyze.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "calibrate/recalibrate.h"
#include "graph/graph.h"
#include "graph/view.h"
#include "prune/prune_in.h"

enum { MOST_BATCH = 128, LEAST_BATCH = 16 };

/* Estimates the statistics of the view's normalizations on all samples that are fitted to, in the
 * largest batch that memory allows. */
static lac_status estimate_statistics(const laci_prune_options *options, laci_pool *pool,
                                      laci_graph *view, laci_recalibrated *done, lac_error *err) {
  const laci_calibration_samples *samples = options->calibration->samples;
  laci_recalibrate_options how = {.batch = MOST_BATCH,
                                  .n = samples->count - samples->held_back,
                                  .pool = pool,
                                  .budget = options->budget};
  for (;; how.batch /= 2) {
    lac_status st = laci_recalibrate_batch_norms(view, samples, &how, done, err);
    if (st != LAC_MEMORY_LIMIT || how.batch <= LEAST_BATCH) return st;
  }
}

lac_status laci_pruning_adapt_to_samples(const laci_pruning *p, const laci_prune_options *options,
                                         laci_pool *pool, laci_adapted *to, lac_error *err) {
  const laci_graph *graph = p->analysis->graph;
  laci_recalibrated done;
  lac_error why = {0};
  *to = (laci_adapted){.view = NULL};
  to->weights = (const uint8_t **)laci_alloc((size_t)graph->n_stored + 1, sizeof *to->weights);
  if (!to->weights) return laci_fail_memory(err, "statistics of samples");
  for (int s = 0; s < graph->n_stored; s++) to->weights[s] = p->weights[s];
  if (!options->calibration->drawn) return LAC_OK;
  lac_status st = laci_graph_view_create(graph, (const uint8_t *const *)p->weights, &to->view, err);
  if (st) return st;
  st = estimate_statistics(options, pool, to->view, &done, &why);
  if (st == LAC_NO_MEMORY || st == LAC_INTERRUPTED) {
    if (err) *err = why;
    return st;
  }
  if (st) {
    laci_log(LAC_LOG_DEBUG, "the fits see the statistics as stored: %s", why.text);
    return LAC_OK;
  }
  for (int s = 0; s < graph->n_stored; s++)
    if (to->view->stored[s].owned) to->weights[s] = to->view->stored[s].owned;
  to->done = true;
  laci_log(LAC_LOG_DEBUG, "%d batch normalization%s got the samples' statistics for the fits",
           done.n_norms, laci_plural(done.n_norms));
  return LAC_OK;
}

void laci_adapted_clear(laci_adapted *adapted) {
  laci_graph_view_destroy(adapted->view);
  laci_free((void *)adapted->weights);
  *adapted = (laci_adapted){.view = NULL};
}

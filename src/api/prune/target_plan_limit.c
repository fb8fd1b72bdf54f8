/* SPDX-License-Identifier: Apache-2.0
 * Prunes, for the library's own engine, only the layers that its plan of the pruned network runs by
 * sparse kernels. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "api/prune/job_in.h"
#include "api/prune/predict_in.h"
#include "api/prune/target_plan_in.h"
#include "api/prune/timing_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/plural.h"
#include "graph/graph.h"
#include "lacuna/prune.h"
#include "target/target.h"

enum { MOST_ROUNDS = 4 };

/* Makes layers ineligible that the plan runs as dense; *n_left: the number of these layers. */
static lac_status exclude_layers_planned_dense(const laci_job *job, const laci_predict_source *from,
                                               const char *target, int *n_left, lac_error *err) {
  laci_analysis *a = job->analysis;
  laci_prediction plan;
  *n_left = 0;
  lac_status st = laci_predict_times(from, &a->arena, &plan, err);
  for (int l = 0; l < a->n_layers && !st; l++) {
    if (!a->layers[l].eligible || plan.layers[l].sparse) continue;
    char text[500];
    (void)snprintf(text, sizeof text, "%.60s: %.400s", target, plan.layers[l].reason);
    a->layers[l].eligible = false;
    a->layers[l].reason = laci_arena_text(&a->arena, text);
    if (!a->layers[l].reason) st = laci_fail_memory(err, "the plan");
    ++*n_left;
  }
  return st;
}

static int count_eligible(const laci_analysis *a) {
  int n = 0;
  for (int l = 0; l < a->n_layers; l++) n += a->layers[l].eligible;
  return n;
}

/* If some layers stay dense, a new plan may run further layers as dense. So plans are made until
 * one leaves out no further layer. */
static lac_status exclude_until_plan_is_stable(const laci_job *job, const lac_options *options,
                                               int target, lac_error *err) {
  const laci_analysis *a = job->analysis;
  const int n_eligible = count_eligible(a), n_stored = a->graph->n_stored;
  lac_status st = LAC_OK;
  int n_left = 1;
  for (int round = 0; round < MOST_ROUNDS && n_left > 0 && !st; round++) {
    uint8_t **weights = (uint8_t **)laci_alloc((size_t)n_stored + 1, sizeof *weights);
    if (!weights) return laci_fail_memory(err, "the plan");
    for (int l = 0; l < a->n_layers && !st; l++)
      if (a->layers[l].eligible) st = laci_timing_mask_layer(job, options, l, weights, err);
    const laci_predict_source from = {a, (const uint8_t *const *)weights, options->threads,
                                      job->targets[target].as == LAC_DTYPE_BF16};
    if (!st) st = exclude_layers_planned_dense(job, &from, options->targets[target], &n_left, err);
    for (int s = 0; s < n_stored; s++) laci_free(weights[s]);
    laci_free((void *)weights);
  }
  if (!st && n_eligible > 0)
    laci_log(LAC_LOG_INFO, "%s: its plan runs %d of %d layer%s as sparse", options->targets[target],
             count_eligible(a), n_eligible, laci_plural(n_eligible));
  return st;
}

lac_status laci_target_exclude_planned_dense(const laci_job *job, const lac_options *options,
                                             lac_error *err) {
  lac_status st = LAC_OK;
  for (int t = 0; t < options->n_targets && !st && !job->streamed; t++)
    if (laci_target_is_own_engine(&job->targets[t]))
      st = exclude_until_plan_is_stable(job, options, t, err);
  return st;
}

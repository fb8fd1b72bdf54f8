/* SPDX-License-Identifier: Apache-2.0
 * The network before and after the reordering (verify/verify.h), and what is logged of it. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "permute/plan.h"
#include "prune/prune_in.h"

static bool moves(const laci_plan *plan) {
  for (int g = 0; g < plan->analysis->n_groups; g++) {
    if (laci_plan_moves(plan, g)) return true;
  }
  return false;
}

static void log_verification(const laci_verification *found) {
  char outputs[128] = "";
  if (found->n_outputs_compared > 0) {
    (void)snprintf(outputs, sizeof outputs, "outputs differ by %.3g at most (scale %.3g), ",
                   found->max_abs_error, found->max_abs_output);
  }
  laci_log(LAC_LOG_INFO, "verification (%s engine): %sall %d values by %.3g of their scale",
           found->engine, outputs, found->n_compared, found->worst_ratio);
}

/* What the verification says nothing about. */
static void warn_of_skipped(const laci_verification *found) {
  int n_missing = found->n_outputs - found->n_outputs_compared;
  char outputs[64] = "";
  if (n_missing == found->n_outputs)
    (void)snprintf(outputs, sizeof outputs, "outputs not reached: ");
  else if (n_missing > 0) {
    (void)snprintf(outputs, sizeof outputs, "%d of %d outputs not reached: ", n_missing,
                   found->n_outputs);
  }
  laci_log(LAC_LOG_WARNING, "verification: %s%s; %d of %d values compared", outputs, found->reason,
           found->n_compared, found->n_compared + found->n_skipped);
}

lac_status laci_pruning_verify(laci_pruning *p, const laci_prune_options *options, laci_pool *pool,
                               lac_error *err) {
  laci_pruning_verification *v = &p->verification;
  if (!moves(p->plan)) {
    v->verified = true;
    return LAC_OK;
  }
  double start = laci_clock_seconds();
  laci_verify_options how = {
      .seed = options->search.seed, .tolerance = 1e-9, .budget = options->budget};
  lac_status st = laci_verify(p->analysis->graph, &p->plan->orders, &how, pool, &v->found, err);
  v->seconds = laci_clock_seconds() - start;
  v->verified = !st;
  if (st) return st;
  log_verification(&v->found);
  if (v->found.n_skipped) warn_of_skipped(&v->found);
  return LAC_OK;
}

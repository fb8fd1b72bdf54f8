/* SPDX-License-Identifier: Apache-2.0
 * The network before and after the reordering (prove/prove.h), and what is logged of it. */
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "prune/prune_in.h"

static bool moves(const laci_plan *plan) {
  for (int g = 0; g < plan->analysis->n_groups; g++) {
    if (laci_plan_moves(plan, g)) return true;
  }
  return false;
}

static void log_proof(const laci_proof *proof) {
  char outputs[128] = "";
  if (proof->n_outputs_compared > 0) {
    (void)snprintf(outputs, sizeof outputs, "outputs differ by %.3g at most (scale %.3g), ",
                   proof->max_abs_error, proof->max_abs_output);
  }
  laci_log(LAC_LOG_INFO, "proof (%s engine): %sall %d values by %.3g of their scale", proof->engine,
           outputs, proof->n_compared, proof->worst_ratio);
}

/* What the verification says nothing about. */
static void warn_of_skipped(const laci_proof *proof) {
  int n_missing = proof->n_outputs - proof->n_outputs_compared;
  char outputs[64] = "";
  if (n_missing == proof->n_outputs)
    (void)snprintf(outputs, sizeof outputs, "outputs not reached: ");
  else if (n_missing > 0) {
    (void)snprintf(outputs, sizeof outputs, "%d of %d outputs not reached: ", n_missing,
                   proof->n_outputs);
  }
  laci_log(LAC_LOG_WARNING, "proof: %s%s; %d of %d values compared", outputs, proof->reason,
           proof->n_compared, proof->n_compared + proof->n_skipped);
}

lac_status laci_pruning_verify(laci_pruning *p, const laci_prune_options *options, laci_pool *pool,
                               lac_error *err) {
  laci_verification *v = &p->verification;
  if (!moves(p->plan)) {
    v->verified = true;
    return LAC_OK;
  }
  double start = laci_clock_seconds();
  laci_proof_options how = {
      .seed = options->search.seed, .tolerance = 1e-9, .budget = options->budget};
  lac_status st = laci_prove(p->analysis->graph, &p->plan->orders, &how, pool, &v->proof, err);
  v->seconds = laci_clock_seconds() - start;
  v->verified = !st;
  if (st) return st;
  log_proof(&v->proof);
  if (v->proof.n_skipped) warn_of_skipped(&v->proof);
  return LAC_OK;
}

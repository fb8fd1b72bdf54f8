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

static void log_all(const laci_verification *found) {
  laci_log(LAC_LOG_INFO,
           "verified: all outputs (%d) differ by at most %.3g of %.3g, all %d values by %.3g of "
           "their scale (%s engine)",
           found->n_outputs, found->max_abs_error, found->max_abs_output, found->n_compared,
           found->worst_ratio, found->engine);
}

static void warn_of_part(const laci_verification *found) {
  if (found->n_outputs_compared == 0) {
    laci_log(LAC_LOG_WARNING,
             "verified in part: no output could be compared (%s), %d of %d values up to %s were; "
             "the order itself was checked channel by channel",
             found->reason, found->n_compared, found->n_compared + found->n_skipped,
             found->first_skipped ? found->first_skipped : "the end");
    return;
  }
  laci_log(LAC_LOG_WARNING,
           "verified in part: %d of %d outputs, up to %s: %s; %d of %d values compared; the order "
           "itself was checked channel by channel",
           found->n_outputs_compared, found->n_outputs,
           found->first_skipped ? found->first_skipped : "the end", found->reason,
           found->n_compared, found->n_compared + found->n_skipped);
}

static lac_status fail_unverified(const laci_verification *found, lac_error *err) {
  laci_log(LAC_LOG_ERROR, "not verified: %s", found->reason);
  return laci_hint(err, LAC_HINT_UNVERIFIED,
                   laci_fail(err, LAC_UNSUPPORTED,
                             "not verified: no value of the network could be compared: %s; only "
                             "the order was checked, channel by channel",
                             found->reason));
}

/* Failures of the verification that say nothing of the reordering. */
static lac_status explain_failure(lac_status st, laci_verification *found, lac_error *err) {
  if (st == LAC_MEMORY_LIMIT) return laci_hint(err, LAC_HINT_VERIFY, st);
  if (laci_ends_the_run(st) || st == LAC_PROOF_FAILED || st == LAC_INTERNAL) return st;
  found->state = LACI_VERIFY_NOTHING;
  return laci_hint(err, LAC_HINT_UNVERIFIED, laci_fail_in(err, st, "not verified"));
}

lac_status laci_pruning_verify(laci_pruning *p, const laci_prune_options *options, laci_pool *pool,
                               lac_error *err) {
  laci_pruning_verification *v = &p->verification;
  v->verified = !moves(p->plan);
  if (v->verified) return LAC_OK;
  if (!options->verify) {
    v->found.state = LACI_VERIFY_NOTHING;
    (void)snprintf(v->found.reason, sizeof v->found.reason, "the verification was left out");
    laci_log(LAC_LOG_INFO, "not verified: %s", v->found.reason);
    return LAC_OK;
  }
  double start = laci_clock_seconds();
  laci_verify_options how = {
      .seed = options->search.seed, .tolerance = 1e-9, .budget = options->budget};
  lac_status st = laci_verify(p->analysis->graph, &p->plan->orders, &how, pool, &v->found, err);
  v->seconds = laci_clock_seconds() - start;
  if (st) return explain_failure(st, &v->found, err);
  v->verified = v->found.state == LACI_VERIFY_ALL;
  if (v->verified) log_all(&v->found);
  else if (v->found.state == LACI_VERIFY_PART) warn_of_part(&v->found);
  else return fail_unverified(&v->found, err);
  return LAC_OK;
}

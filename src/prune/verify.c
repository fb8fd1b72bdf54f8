/* SPDX-License-Identifier: Apache-2.0
 * Verifies the reordering of a network (verify/verify.h): compares the network before and after it,
 * and logs the findings. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "permute/plan.h"
#include "prune/prune_in.h"

static bool has_moved_channel(const laci_plan *plan) {
  for (int g = 0; g < plan->analysis->n_groups; g++) {
    if (laci_plan_moves_channels(plan, g)) return true;
  }
  return false;
}

static const char order_checked[] = "the order itself was checked channel by channel";

/* Writes a text on what was compared, such as "12 of 47 values compared, outputs differ by at most
 * 1e-12 of 4.4". */
static void write_compared_text(const laci_verification *found, char *text, size_t size) {
  char of[32] = "", differ[96] = "";
  const int n_all = found->n_compared + found->n_skipped;
  if (found->n_skipped) (void)snprintf(of, sizeof of, " of %d", n_all);
  if (found->n_outputs_compared > 0)
    (void)snprintf(differ, sizeof differ, ", outputs differ by at most %.3g of %.3g",
                   found->max_abs_error, found->max_abs_output);
  (void)snprintf(text, size, "%d%s value%s compared%s", found->n_compared, of, laci_plural(n_all),
                 differ);
}

static void write_partial_text(const laci_verification *found, const char *compared, char *text) {
  const char *end = found->first_skipped ? found->first_skipped : "the end";
  if (found->n_outputs_compared == 0)
    (void)snprintf(text, LACI_VERIFICATION_TEXT_SIZE,
                   "verified in part: no output could be compared (%s), %s up to %.300s; %s",
                   found->reason, compared, end, order_checked);
  else
    (void)snprintf(text, LACI_VERIFICATION_TEXT_SIZE,
                   "verified in part: %d of %d outputs, up to %.300s: %s; %s; %s",
                   found->n_outputs_compared, found->n_outputs, end, found->reason, compared,
                   order_checked);
}

void laci_verification_text(const laci_pruning_verification *v,
                            char text[LACI_VERIFICATION_TEXT_SIZE]) {
  const laci_verification *found = &v->found;
  char compared[192];
  text[0] = 0;
  write_compared_text(found, compared, sizeof compared);
  switch (found->state) {
    case LACI_VERIFY_ALL:
      (void)snprintf(text, LACI_VERIFICATION_TEXT_SIZE, "verified: all outputs, %s", compared);
      break;
    case LACI_VERIFY_PART: write_partial_text(found, compared, text); break;
    case LACI_VERIFY_NOTHING:
      (void)snprintf(text, LACI_VERIFICATION_TEXT_SIZE, "not verified: %s%s%s", found->reason,
                     v->order_unknown ? "" : "; ", v->order_unknown ? "" : order_checked);
      break;
    default:
      if (v->verified)
        (void)snprintf(text, LACI_VERIFICATION_TEXT_SIZE,
                       "nothing moved, so nothing had to be verified");
  }
}

static void log_findings(const laci_pruning_verification *v) {
  char text[LACI_VERIFICATION_TEXT_SIZE];
  laci_verification_text(v, text);
  laci_log(v->found.state == LACI_VERIFY_PART ? LAC_LOG_WARNING : LAC_LOG_INFO, "%s", text);
}

static lac_status fail_nothing_compared(const laci_verification *found, lac_error *err) {
  return laci_hint(err, LAC_HINT_UNVERIFIED,
                   laci_fail(err, LAC_UNSUPPORTED,
                             "not verified: no value of the network could be compared: %s; only "
                             "the order was checked, channel by channel",
                             found->reason));
}

/* The verification failed with st, which is returned. If the failure says nothing about the
 * reordering, the error's text becomes "not verified: ...", and found->state
 * LACI_VERIFY_NOTHING. */
static lac_status set_unverified_reason(lac_status st, laci_verification *found, lac_error *err) {
  if (st == LAC_MEMORY_LIMIT) return laci_hint(err, LAC_HINT_VERIFY, st);
  if (laci_status_is_not_about_data(st) || st == LAC_PROOF_FAILED || st == LAC_INTERNAL) return st;
  found->state = LACI_VERIFY_NOTHING;
  return laci_hint(err, LAC_HINT_UNVERIFIED, laci_fail_with_prefix(err, st, "not verified"));
}

lac_status laci_pruning_verify(laci_pruning *p, const laci_prune_options *options, laci_pool *pool,
                               lac_error *err) {
  laci_pruning_verification *v = &p->verification;
  v->verified = !has_moved_channel(p->plan);
  if (v->verified) return LAC_OK;
  if (!options->verify) {
    v->found.state = LACI_VERIFY_NOTHING;
    (void)snprintf(v->found.reason, sizeof v->found.reason, "the verification was left out");
    log_findings(v);
    return LAC_OK;
  }
  double start = laci_clock_seconds();
  laci_verify_options how = {.seed = options->search.seed,
                             .tolerance = 1e-9,
                             .engine = laci_verify_engine_by_name(options->engine),
                             .budget = options->budget};
  lac_status st = laci_verify(p->analysis->graph, &p->plan->orders, &how, pool, &v->found, err);
  v->seconds = laci_clock_seconds() - start;
  if (st) return set_unverified_reason(st, &v->found, err);
  v->verified = v->found.state == LACI_VERIFY_ALL;
  if (v->found.state == LACI_VERIFY_NOTHING) return fail_nothing_compared(&v->found, err);
  log_findings(v);
  return LAC_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * The road: analyse, search, prove, apply. */
#include "lacuna/prune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/apply.h"
#include "api/prune_in.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "prove/prove.h"

const char *lac_version(void) { return LAC_VERSION; }

static lac_status search(laci_plan *plan, const lac_options *options, laci_pool *pool,
                         laci_report *report, lac_error *err) {
  laci_search_options how = {.effort = (laci_effort)options->effort,
                             .seed = options->seed,
                             .strategy = options->strategy,
                             .seconds = options->time_limit};
  double start = laci_clock_seconds();
  if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted before the search");
  lac_status st = laci_plan_search(plan, (laci_pattern){options->n, options->m}, &how, pool, err);
  report->pub.summary.search_seconds = laci_clock_seconds() - start;
  if (!st && laci_interrupted()) { /* that ended the search, not the rest of the way */
    laci_log(LAC_LOG_WARNING, "search interrupted: going on with the best orders found so far");
    report->pub.summary.interrupted = true;
    lac_interrupt(false);
  }
  return st;
}

static int compare_bytes(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x < y) - (x > y); /* the largest first */
}

/* What a group's search holds: its magnitudes as 16-bit numbers, and prices of its channels against
 * each other. */
static uint64_t search_bytes(const laci_analysis *a, const laci_group *group) {
  uint64_t bytes = laci_bytes_of((int64_t)group->n_channels * group->n_channels, sizeof(float));
  for (int l = 0; l < group->n_layers; l++) {
    const laci_stored *stored = &a->graph->stored[a->layers[group->layers[l]].stored];
    bytes += laci_bytes_of(laci_shape_count(&stored->shape), sizeof(uint16_t));
  }
  return bytes;
}

/* As many searches as there are threads go on at a time: the largest, at worst. */
static lac_status plan_search_memory(const laci_job *job, laci_budget *budget, lac_error *err) {
  const laci_analysis *a = job->analysis;
  int n = a->n_searchable, n_threads = laci_pool_threads(job->pool);
  uint64_t *bytes = laci_alloc((size_t)n, sizeof *bytes);
  if (!bytes) return laci_fail_memory(err, "the search");
  for (int g = 0; g < n; g++) bytes[g] = search_bytes(a, &a->groups[g]);
  qsort(bytes, (size_t)n, sizeof *bytes, compare_bytes);
  for (int g = 0; g < n && g < n_threads; g++) {
    laci_budget_add(budget, bytes[g], "the search of one group of layers");
  }
  laci_free(bytes);
  return laci_budget_check(budget, "the search", err);
}

/* All tensors that move, and the weights that are pruned, are made anew beside the old ones. */
static lac_status plan_new_weights(const laci_job *job, bool permute, bool prune,
                                   laci_budget *budget, lac_error *err) {
  const laci_analysis *a = job->analysis;
  for (int s = 0; s < a->graph->n_stored && permute; s++) {
    const laci_stored *stored = &a->graph->stored[s];
    laci_budget_add(budget, stored->size_bytes, "%.200s (made anew)", stored->name);
  }
  for (int l = 0; l < a->n_layers && prune; l++) {
    const laci_stored *stored = &a->graph->stored[a->layers[l].stored];
    if (!a->layers[l].eligible) continue;
    laci_budget_add_sum(budget, laci_bytes_of(laci_shape_count(&stored->shape), 1) / 8);
    if (permute) continue;
    laci_budget_add(budget, stored->size_bytes, "%.200s (made anew)", stored->name);
  }
  return laci_budget_check(budget, "making the new weights", err);
}

/* Everything before anything: nobody wants to wait for a search whose proof does not fit. */
static lac_status plan_memory(const laci_job *job, const lac_options *options, bool permute,
                              bool prune, lac_error *err) {
  laci_budget base = job->budget, most = base, proof = base, phase = base;
  char text[32];
  bool proves = permute && options->verify && job->analysis->n_searchable > 0;
  lac_status st = permute ? plan_search_memory(job, &phase, err) : LAC_OK;
  if (st) return st;
  laci_budget_keep_most(&most, &phase);
  phase = base;
  st = plan_new_weights(job, permute, prune, &phase, err);
  if (st) return st;
  laci_budget_keep_most(&most, &phase);
  laci_proof_options how = {.budget = &base};
  if (proves) st = laci_prove_plan_memory(job->analysis->graph, &how, &proof, err);
  if (st == LAC_MEMORY_LIMIT) {
    return laci_fail_in(err, st, LACI_PROOF_DOES_NOT_FIT " (all else takes %s)",
                        laci_size_text(most.needed, text, sizeof text));
  }
  if (st) return st;
  laci_budget_keep_most(&most, &proof);
  laci_log(LAC_LOG_DEBUG, "memory: %s planned at most, %s of it for the model",
           laci_size_text(most.needed, text, sizeof text),
           laci_size_text(base.needed, (char[32]){0}, 32));
  return LAC_OK;
}

static bool moves(const laci_plan *plan) {
  for (int g = 0; g < plan->analysis->n_groups; g++) {
    if (laci_plan_moves(plan, g)) return true;
  }
  return false;
}

static void tell_proof(const laci_proof *proof) {
  char outputs[128] = "";
  if (proof->n_outputs_compared > 0) {
    (void)snprintf(outputs, sizeof outputs, "outputs differ by %.3g at most (scale %.3g), ",
                   proof->max_abs_error, proof->max_abs_output);
  }
  laci_log(LAC_LOG_INFO, "proof (%s engine): %sall %d values by %.3g of their scale", proof->engine,
           outputs, proof->n_compared, proof->worst_ratio);
}

/* What the proof says nothing about. */
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

lac_status laci_prove_plan(const laci_plan *plan, const lac_options *options, const laci_job *job,
                           laci_report *report, lac_error *err) {
  lac_summary *summary = &report->pub.summary;
  if (!moves(plan)) {
    summary->verified = true;
    return LAC_OK;
  }
  double start = laci_clock_seconds();
  laci_proof proof = {0};
  laci_proof_options how = {.seed = options->seed, .tolerance = 1e-9, .budget = &job->budget};
  lac_status st = laci_prove(plan->analysis->graph, &plan->orders, &how, job->pool, &proof, err);
  summary->proof_seconds = laci_clock_seconds() - start;
  summary->max_abs_error = proof.max_abs_error;
  summary->max_abs_output = proof.max_abs_output;
  summary->worst_ratio = proof.worst_ratio;
  summary->values_compared = proof.n_compared;
  summary->values_skipped = proof.n_skipped;
  summary->proof_engine = proof.engine;
  summary->outputs = proof.n_outputs;
  summary->outputs_compared = proof.n_outputs_compared;
  summary->verified = !st;
  if (!st && proof.n_skipped) {
    summary->skipped_reason = laci_arena_text(&report->arena, proof.reason);
    if (!summary->skipped_reason) st = laci_fail_memory(err, "the report");
  }
  if (!st) tell_proof(&proof);
  if (!st && proof.n_skipped) warn_of_skipped(&proof);
  return st;
}

/* Its layers are in the report, which is the result: they are not told twice. */
static void tell(const laci_report *report) {
  for (int g = 0; g < report->pub.n_groups; g++) {
    const lac_group *group = &report->pub.groups[g];
    if (group->frozen || !group->strategy) continue;
    laci_log(LAC_LOG_DEBUG,
             "group %d: %d channels, %d layer%s, kept %.6g -> %.6g, efficacy %.2f %% (%s)",
             group->id, group->channels, group->n_consumers, laci_plural(group->n_consumers),
             group->kept_identity, group->kept, group->efficacy, group->strategy);
  }
}

/* Never worse than before: what counts is what the layers keep, whatever the search was able to
 * score. */
static lac_status settle(laci_plan *plan, laci_report *report, const lac_options *options,
                         laci_pool *pool, lac_error *err) {
  laci_pattern pattern = {options->n, options->m};
  const laci_analysis *a = plan->analysis;
  lac_status st = laci_measure_kept(report, a, plan, pattern, pool, err);
  bool changed = false;
  for (int g = 0; g < a->n_searchable && !st; g++) {
    double before = 0, after = 0;
    for (int i = 0; i < a->groups[g].n_layers; i++) {
      before += report->layers[a->groups[g].layers[i]].kept_identity;
      after += report->layers[a->groups[g].layers[i]].kept;
    }
    if (!(after < before) || !laci_plan_moves(plan, g)) continue;
    for (int c = 0; c < a->groups[g].n_channels; c++) plan->found[g].order[c] = c;
    plan->found[g].kept = plan->found[g].kept_identity;
    changed = true;
  }
  if (!st && changed) {
    st = laci_plan_complete(plan, err);
    if (!st) st = laci_measure_kept(report, a, plan, pattern, pool, err);
  }
  return st;
}

/* How many layers have the reason of layer l. */
static int share_reason(const laci_report *report, int l) {
  const char *wanted = report->layers[l].reason;
  int n = 0;
  for (int k = 0; wanted && k < report->pub.n_layers; k++) {
    const char *reason = report->layers[k].reason;
    n += reason && strcmp(reason, wanted) == 0;
  }
  return n;
}

/* Why no layer at all was pruned: what most of them say. */
static void tell_unpruned(const laci_report *report, const laci_analysis *a,
                          const lac_options *options) {
  int n_odd = 0, most = 0;
  for (int l = 0; l < a->n_layers; l++) {
    n_odd += a->layers[l].odd_size;
    if (share_reason(report, l) > share_reason(report, most)) most = l;
  }
  char why[512];
  if (a->n_layers == 0) {
    (void)snprintf(why, sizeof why,
                   "the network has no Conv, Gemm, MatMul or ConvTranspose with a stored weight");
  } else if (n_odd > 0) {
    (void)snprintf(why, sizeof why, "--all-sizes prunes what Tensor Cores do not take, too");
  } else {
    (void)snprintf(why, sizeof why, "%d of %d: %s", share_reason(report, most), a->n_layers,
                   report->layers[most].reason);
  }
  laci_log(LAC_LOG_WARNING, "no layer takes %d:%d; %s", options->n, options->m, why);
}

static lac_status run(lac_model *model, const lac_options *options, bool permute, bool prune,
                      laci_report **out, lac_error *err) {
  double start = laci_clock_seconds();
  laci_job job;
  laci_plan *plan = NULL;
  laci_report *report = NULL;
  laci_pattern pattern = {options->n, options->m};
  lac_status st = laci_job_open(model, options, &job, err);
  if (st) return st;
  const laci_analysis *a = job.analysis;
  st = plan_memory(&job, options, permute, prune, err);
  if (!st) st = laci_plan_create(a, &plan, err);
  if (!st) st = laci_report_create(model, prune ? "prune" : "permute", options, a, &report, err);
  /* Before the long work: a NaN shows here. */
  if (!st) st = laci_measure_layers(report, a, pattern, job.pool, err);
  if (!st && options->keep_pruned) st = laci_keep_pruned(report, a, plan, err);
  if (!st && permute) st = search(plan, options, job.pool, report, err);
  if (!st) st = settle(plan, report, options, job.pool, err);
  if (!st) st = laci_report_add_plan(report, a, plan, err);
  if (!st && options->verify) st = laci_prove_plan(plan, options, &job, report, err);
  if (!st) st = laci_report_keep_orders(report, a, plan, options, err);
  if (!st) st = laci_apply(model->graph, a, plan, prune, pattern, job.pool, report, err);
  if (st) goto out;
  laci_report_sum(report);
  if (!permute) report->pub.summary.permuted = report->pub.summary.groups = 0;
  if (prune && report->pub.summary.pruned == 0) tell_unpruned(report, a, options);
  report->pub.summary.total_seconds = laci_clock_seconds() - start;
  tell(report);
  *out = report;
  report = NULL;
out:
  if (report) lac_report_destroy(&report->pub);
  laci_plan_destroy(plan);
  laci_job_close(&job);
  return st;
}

lac_status lac_prune(lac_model *model, const lac_options *options, lac_report **report,
                     lac_error *err) {
  if (report) *report = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"report", report});
  return st ? st : run(model, options, options->permute, true, (laci_report **)report, err);
}

lac_status lac_permute(lac_model *model, const lac_options *options, lac_report **report,
                       lac_error *err) {
  if (report) *report = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"report", report});
  return st ? st : run(model, options, true, false, (laci_report **)report, err);
}

lac_status lac_inspect(const lac_model *model, const lac_options *options, lac_report **out,
                       lac_error *err) {
  if (out) *out = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"report", out});
  if (st) return st;
  laci_job job;
  laci_report *report = NULL;
  st = laci_job_open((lac_model *)model, options, &job, err); /* only what is derived is written */
  if (st) return st;
  const laci_analysis *a = job.analysis;
  st = laci_report_create(model, "inspect", options, a, &report, err);
  if (!st)
    st = laci_measure_layers(report, a, (laci_pattern){options->n, options->m}, job.pool, err);
  for (int l = 0; l < a->n_layers && !st; l++) {
    lac_layer *layer = &report->layers[l];
    layer->pruned = laci_layer_is_pruned(layer, options->n);
  }
  if (!st) {
    laci_report_sum(report);
    *out = &report->pub;
  } else if (report) {
    lac_report_destroy(&report->pub);
  }
  laci_job_close(&job);
  return st;
}

lac_status lac_inspect_why(const lac_model *model, const lac_options *options, const char *node,
                           char **text, lac_error *err) {
  if (text) *text = NULL;
  lac_status st =
      LACI_CHECK_GIVEN(err, {"model", model}, {"options", options}, {"node", node}, {"text", text});
  if (st) return st;
  laci_job job;
  st = laci_job_open((lac_model *)model, options, &job, err);
  if (st) return st;
  st = laci_analysis_why(job.analysis, node, text, err);
  laci_job_close(&job);
  return st;
}

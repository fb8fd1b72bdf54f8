/* SPDX-License-Identifier: Apache-2.0
 * Handles permutation files: saves a report's orders, applies or inverts saved ones. */
#include <string.h>

#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "api/prune/prune_in.h"
#include "analyze/analyze.h"
#include "api/prune/report_in.h"
#include "api/prune/rule_in.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/writer.h"
#include "lacuna/prune.h"

enum { MAX_FILE_BYTES = 1 << 30 };

lac_status lac_permutation_save(const lac_report *pub, const char *path, bool force,
                                lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"report", pub}, {"path", path});
  if (st) return st;
  const laci_report *report = (const laci_report *)pub;
  if (!report->permutation) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: a report of %s holds no permutation", path,
                     pub->verb);
  }
  return laci_file_write(path, report->permutation, strlen(report->permutation), force, err);
}

/* Sets *held [n_rows], from laci_alloc: which computed weights hold the pattern before the
 * reordering. */
static lac_status find_layers_with_pattern(const laci_job *job, const lac_options *options,
                                           bool **held, lac_error *err) {
  const laci_analysis *a = job->analysis;
  const laci_mask_rule rule = laci_mask_rule_of(options);
  const laci_computed_options how = {&rule, &job->budget, job->pool};
  lac_status st = LAC_OK;
  *held = laci_alloc((size_t)a->n_rows + 1, sizeof **held);
  if (!*held) return laci_fail_memory(err, "the layers");
  for (int l = a->n_layers; l < a->n_rows && !st; l++)
    st = laci_computed_is_pruned(a, l, &how, &(*held)[l], err);
  return st;
}

/* Warns about weights that were N:M sparse before the reordering and are not any more. This can
 * happen because a stored order is applied without a search. */
static void warn_of_lost_patterns(const laci_report *report, const laci_job *job,
                                  const bool *held) {
  for (int l = 0; l < job->analysis->n_rows; l++) {
    const lac_layer *layer = &report->layers[l];
    const bool was = l < job->analysis->n_layers ? layer->was_pruned : held[l];
    if (layer->eligible || !was || layer->pruned) continue;
    laci_log(LAC_LOG_WARNING,
             "%s held %s, and does not in this order: its mask is along the "
             "channels that it moves",
             layer->name, report->pub.pattern);
  }
}

static lac_status apply_saved_orders(lac_model *model, const laci_job *job,
                                     const laci_saved_orders *orders, const lac_options *options,
                                     laci_report **out, lac_error *err) {
  const laci_prune_options how = laci_prune_options_of(options, job);
  laci_pruning *pruning = NULL;
  laci_report *report = NULL;
  bool *held = NULL;
  lac_status st = find_layers_with_pattern(job, options, &held, err);
  if (!st) st = laci_prune_with_saved_orders(job->analysis, orders, &how, job->pool, &pruning, err);
  if (!st) st = laci_report_create(model, "permute", options, job->analysis, &report, err);
  if (!st) st = laci_report_add_pruning(report, pruning, err);
  if (!st) {
    laci_pruning_commit(pruning, model->graph);
    laci_report_remeasure_computed_weights(report, job, options);
    warn_of_lost_patterns(report, job, held);
    *out = report;
  } else if (report) {
    lac_report_destroy(&report->pub);
  }
  laci_free(held);
  laci_pruning_destroy(pruning);
  return st;
}

lac_status laci_apply_permutation(lac_model *model, const char *path, bool invert,
                                  const lac_options *options, lac_report **report, lac_error *err) {
  double start = laci_clock_seconds();
  laci_job job;
  laci_report *made = NULL;
  lac_status st = laci_job_open(model, options, &job, err);
  if (st) return st;
  char *text = NULL;
  st = laci_check_engine_of_plugin(options, false, err);
  if (!st) st = laci_file_read_text(path, MAX_FILE_BYTES, &text, err);
  const laci_saved_orders orders = {.name = path, .text = text, .invert = invert};
  if (!st) st = apply_saved_orders(model, &job, &orders, options, &made, err);
  laci_free(text);
  laci_job_close(&job);
  if (st) return st;
  made->pub.summary.total_seconds = laci_clock_seconds() - start;
  *report = &made->pub;
  return LAC_OK;
}

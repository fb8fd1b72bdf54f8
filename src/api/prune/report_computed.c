/* SPDX-License-Identifier: Apache-2.0
 * Measures weights that are computed from stored tensors: the product with a mask may hold N:M
 * although no tensor of the file does. Each such weight is evaluated as for lac_model_fold and
 * measured like a stored weight; the model is not changed. */
#include <stdio.h>

#include "analyze/analyze.h"
#include "api/prune/job_in.h"
#include "api/prune/report_in.h"
#include "api/prune/rule_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "prune/prune.h"
#include "sparse/measure.h"

static void fill_layer(lac_layer *to, const laci_weight_measurement *look) {
  to->measured = true;
  to->n_zeros = look->stats.n_zeros;
  to->zero_ratio = (double)look->stats.n_zeros / (double)look->stats.n_elements;
  to->holds_pattern = look->stats.holds_pattern;
  to->pruned = to->was_pruned = look->is_pruned;
  to->holds_pattern_both = look->is_pruned && look->holds_rows;
}

static lac_status measure_computed_weight(laci_report *report, const laci_job *job, int l,
                                          const laci_weight_view *view, const laci_mask_rule *rule,
                                          lac_error *err) {
  laci_weight_measurement look;
  lac_status st = laci_weight_measure(view, rule, job->pool, &look, err);
  if (!st) fill_layer(&report->layers[l], &look);
  if (!st && look.is_pruned) st = laci_report_add_computed_target(report, job, l, view, err);
  return st;
}

/* Records in the report why a weight could not be measured, for example because it has NaN or
 * infinities. Such a weight can be neither folded nor pruned. */
static lac_status set_unmeasured_reason(laci_report *report, int l, const char *why,
                                        lac_error *err) {
  lac_layer *layer = &report->layers[l];
  char text[700];
  laci_log(LAC_LOG_INFO, "%s: its content is not known: %s", layer->weight, why);
  (void)snprintf(text, sizeof text, "%.400s%s%.290s", layer->reason ? layer->reason : "",
                 layer->reason ? "; " : "", why);
  layer->reason = laci_arena_text(&report->arena, text);
  return layer->reason ? LAC_OK : laci_fail_memory(err, "the report");
}

lac_status laci_report_measure_computed_weights(laci_report *report, const laci_job *job,
                                                const lac_options *options, lac_error *err) {
  const laci_analysis *a = job->analysis;
  const laci_mask_rule rule = laci_mask_rule_of(options);
  lac_status st = LAC_OK;
  for (int l = a->n_layers; l < a->n_rows && !st; l++) {
    laci_weight_view view;
    lac_error why = {0};
    uint8_t *bytes;
    if (report->layers[l].n_elements <= 0) continue;
    st = laci_evaluate_computed_weight(a, l, &job->budget, &view, &bytes, err);
    if (st || !bytes) continue;
    st = measure_computed_weight(report, job, l, &view, &rule, &why);
    laci_free(bytes);
    if (laci_status_is_not_about_data(st)) {
      if (err) *err = why;
    } else if (st) {
      st = set_unmeasured_reason(report, l, why.text, err);
    }
  }
  laci_report_compute_sums(report);
  return st;
}

void laci_report_remeasure_computed_weights(laci_report *report, const laci_job *job,
                                            const lac_options *options) {
  lac_error why = {0};
  if (laci_report_measure_computed_weights(report, job, options, &why))
    laci_log(LAC_LOG_WARNING, "computed weights were not looked at: %s", why.text);
}

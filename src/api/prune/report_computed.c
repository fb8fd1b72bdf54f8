/* SPDX-License-Identifier: Apache-2.0
 * What is in weights that are computed from stored tensors: a mask's product holds N:M although no
 * tensor of the file does. Each product is evaluated as lac_model_fold would store it, and measured
 * as a stored weight is; nothing is changed. */
#include "analyze/analyze.h"
#include "api/prune/job_in.h"
#include "api/prune/report_in.h"
#include "api/prune/rule_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "graph/constants.h"
#include "graph/graph.h"
#include "sparse/look.h"
#include "tensor/buf.h"

static uint64_t memory_left(const laci_job *job) {
  return job->budget.needed < job->budget.limit ? job->budget.limit - job->budget.needed : 0;
}

static void fill(lac_layer *to, const laci_weight_look *look) {
  to->measured = true;
  to->n_zeros = look->stats.n_zeros;
  to->zero_ratio = (double)look->stats.n_zeros / (double)look->stats.n_elements;
  to->holds_pattern = look->stats.holds_pattern;
  to->pruned = to->was_pruned = look->is_pruned;
  to->holds_pattern_both = look->is_pruned && look->holds_rows;
}

static lac_status measure(laci_report *report, const laci_job *job, int l, const laci_buf *buf,
                          const laci_mask_rule *rule, lac_error *err) {
  const laci_analysis *a = job->analysis;
  laci_weight_view view;
  laci_weight_look look;
  if (!buf->f) return LAC_OK;
  uint8_t *bytes = laci_alloc((size_t)buf->count * lac_dtype_size(buf->dtype), 1);
  if (!bytes) return laci_fail_memory(err, report->layers[l].weight);
  laci_write_f(buf->dtype, buf->f, buf->count, bytes);
  lac_status st = LAC_OK;
  if (laci_layer_view_computed(a, &a->layers[l], buf->dtype, bytes, &view)) {
    st = laci_weight_look_at(&view, rule, job->pool, &look, err);
    if (!st) fill(&report->layers[l], &look);
    if (!st && look.is_pruned) st = laci_report_add_computed_target(report, job, l, &view, err);
  }
  laci_free(bytes);
  return st;
}

lac_status laci_report_look_at_computed(laci_report *report, const laci_job *job,
                                        const lac_options *options, lac_error *err) {
  const laci_analysis *a = job->analysis;
  const laci_mask_rule rule = laci_rule_of(options);
  lac_status st = LAC_OK;
  for (int l = a->n_layers; l < a->n_rows && !st; l++) {
    lac_error why = {0};
    laci_buf *buf = NULL;
    if (!a->layers[l].constant || report->layers[l].n_elements <= 0) continue;
    st = laci_graph_evaluate(a->graph, a->layers[l].weight, memory_left(job), &buf, &why);
    if (!st) st = measure(report, job, l, buf, &rule, &why);
    laci_buf_destroy(buf);
    if (st == LAC_NO_MEMORY || st == LAC_IO || st == LAC_INTERRUPTED) {
      if (err) *err = why;
    } else if (st) {
      laci_log(LAC_LOG_INFO, "%s: its content is not known: %s", report->layers[l].weight,
               why.text);
      st = LAC_OK;
    }
  }
  laci_report_sum(report);
  return st;
}

void laci_report_look_again(laci_report *report, const laci_job *job, const lac_options *options) {
  lac_error why = {0};
  if (laci_report_look_at_computed(report, job, options, &why))
    laci_log(LAC_LOG_WARNING, "computed weights were not looked at: %s", why.text);
}

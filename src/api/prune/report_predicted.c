/* SPDX-License-Identifier: Apache-2.0
 * Adds to a report how long a run is predicted to take, dense and pruned. If the file is pruned
 * already, its dense network is the file with other numbers in place of the zeros. Any numbers will
 * do, since a plan depends only on where the zeros are. */
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "api/prune/job_in.h"
#include "api/prune/predict_in.h"
#include "api/prune/report_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "lacuna/prune.h"
#include "prune/prune.h"

/* ---- The dense network ---- */

static bool is_zero_element(const uint8_t *element, size_t size) {
  for (size_t b = 0; b < size; b++)
    if (element[b]) return false;
  return true;
}

/* Copies a stored tensor, and replaces its zeros by its first element that is not zero. */
static lac_status copy_without_zeros(const laci_stored *stored, uint8_t **out, lac_error *err) {
  const size_t size = lac_dtype_size(stored->dtype);
  const size_t n = size ? stored->size_bytes / size : 0;
  size_t first = 0;
  *out = NULL;
  while (first < n && is_zero_element(stored->bytes + first * size, size)) first++;
  if (first == n) return LAC_OK;
  uint8_t *bytes = laci_alloc(stored->size_bytes + 1, 1);
  if (!bytes) return laci_fail_memory(err, stored->name);
  memcpy(bytes, stored->bytes, stored->size_bytes);
  for (size_t e = 0; e < n; e++)
    if (is_zero_element(bytes + e * size, size))
      memcpy(bytes + e * size, stored->bytes + first * size, size);
  *out = bytes;
  return LAC_OK;
}

static lac_status predict_dense_run(const laci_report *report, laci_predict_source from, bool fills,
                                    laci_arena *arena, laci_prediction *dense, lac_error *err) {
  const laci_analysis *a = from.analysis;
  const int n_stored = a->graph->n_stored;
  from.weights = NULL;
  if (!fills) return laci_predict_times(&from, arena, dense, err);
  uint8_t **filled = (uint8_t **)laci_alloc((size_t)n_stored + 1, sizeof *filled);
  lac_status st = filled ? LAC_OK : laci_fail_memory(err, "the dense network");
  for (int l = 0; l < a->n_layers && !st; l++) {
    const int s = a->layers[l].stored;
    if (report->layers[l].pruned && s >= 0 && !filled[s])
      st = copy_without_zeros(&a->graph->stored[s], &filled[s], err);
  }
  from.weights = (const uint8_t *const *)filled;
  if (!st) st = laci_predict_times(&from, arena, dense, err);
  for (int s = 0; filled && s < n_stored; s++) laci_free(filled[s]);
  laci_free((void *)filled);
  return st;
}

/* ---- The report ---- */

static int compare_by_layer_count(const void *a, const void *b) {
  const lac_predicted_reason *x = a, *y = b;
  if (x->n_layers != y->n_layers) return y->n_layers - x->n_layers;
  return strcmp(x->reason, y->reason);
}

static void count_layer_of_reason(lac_prediction *to, lac_predicted_reason *reasons,
                                  const char *reason) {
  int at = 0;
  while (at < to->n_reasons && strcmp(reasons[at].reason, reason) != 0) at++;
  if (at == to->n_reasons) reasons[to->n_reasons++] = (lac_predicted_reason){.reason = reason};
  reasons[at].n_layers++;
}

static int64_t multiplications_of_flops(int64_t flops) { return flops / 2; }

/* Layers in bodies come after those of the analysis, and no plan knows them. */
static void fill_layers(const laci_report *report, const laci_prediction *dense,
                        const laci_prediction *pruned, lac_prediction *to,
                        lac_predicted_layer *layers, lac_predicted_reason *reasons) {
  for (int l = 0; l < pruned->n_layers; l++) {
    const lac_layer *layer = &report->layers[l];
    const laci_predicted_layer *now = &pruned->layers[l];
    layers[l] =
        (lac_predicted_layer){.dense_seconds = dense->layers[l].seconds,
                              .pruned_seconds = now->seconds,
                              .multiplications = multiplications_of_flops(dense->layers[l].flops),
                              .sparse = now->sparse,
                              .reason = now->reason};
    if (!layer->pruned) continue;
    to->multiplications_pruned +=
        (int64_t)((double)layers[l].multiplications * layer->zero_ratio + 0.5);
    to->n_sparse += now->sparse;
    to->n_dense += !now->sparse;
    if (now->reason) count_layer_of_reason(to, reasons, now->reason);
  }
  if (to->n_reasons > 1)
    qsort(reasons, (size_t)to->n_reasons, sizeof *reasons, compare_by_layer_count);
}

static lac_status add_prediction_to_report(laci_report *report, const laci_job *job,
                                           const laci_prediction *dense,
                                           const laci_prediction *pruned, lac_error *err) {
  const size_t n = (size_t)report->pub.n_layers + 1;
  lac_prediction *to = laci_arena_alloc(&report->arena, 1, sizeof *to);
  lac_predicted_layer *layers = laci_arena_alloc(&report->arena, n, sizeof *layers);
  lac_predicted_reason *reasons = laci_arena_alloc(&report->arena, n, sizeof *reasons);
  if (!to || !layers || !reasons) return laci_fail_memory(err, "the report");
  *to = (lac_prediction){.refusal = pruned->refusal ? pruned->refusal : dense->refusal,
                         .assumed_sizes = pruned->assumed,
                         .costs_known = laci_engine_has_cost_table(NULL),
                         .threads = laci_pool_threads(job->pool),
                         .multiplications = multiplications_of_flops(dense->flops),
                         .reasons = reasons,
                         .layers = layers};
  fill_layers(report, dense, pruned, to, layers, reasons);
  if (!to->refusal) {
    to->dense_seconds = dense->seconds;
    to->pruned_seconds = pruned->seconds;
  }
  report->pub.prediction = to;
  return LAC_OK;
}

lac_status laci_report_add_prediction(laci_report *report, const laci_job *job,
                                      const lac_options *options, const laci_pruning *pruning,
                                      lac_error *err) {
  const laci_analysis *a = job->analysis;
  const laci_predict_source from = {
      .analysis = a,
      .weights = pruning ? (const uint8_t *const *)pruning->weights : NULL,
      .threads = options->threads};
  laci_prediction dense, pruned;
  bool any = false;
  for (int l = 0; l < a->n_layers; l++) any = any || report->layers[l].pruned;
  if (!any || job->streamed || report->pub.n_layers < a->n_layers) return LAC_OK;
  lac_status st = laci_predict_times(&from, &report->arena, &pruned, err);
  if (!st) st = predict_dense_run(report, from, !pruning, &report->arena, &dense, err);
  return st ? st : add_prediction_to_report(report, job, &dense, &pruned, err);
}

/* SPDX-License-Identifier: Apache-2.0
 * Predicts runs of a network with any of its layers pruned, for choices that depend on time. It is
 * not known yet where the zeros will be, but only how many. So each layer's zeros are chosen once,
 * by magnitude. */
#include "api/prune/timing_in.h"

#include <string.h>

#include "analyze/analyze.h"
#include "api/prune/job_in.h"
#include "api/prune/predict_in.h"
#include "api/prune/rule_in.h"
#include "api/prune/target_plan_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "lacuna/calibration.h"
#include "lacuna/prune.h"
#include "prune/speed.h"
#include "sparse/mask.h"
#include "target/target.h"

enum { MOST_SPEED = 64 };

struct laci_timing {
  const laci_job *job;
  const lac_options *options;
  bool bf16;
  uint8_t **masked; /* [n_stored] weights with zeros, made when they are needed */
  laci_prune_timing of;
};

lac_status laci_timing_mask_layer(const laci_job *job, const lac_options *options, int l,
                                  uint8_t **weights, lac_error *err) {
  const laci_layer *layer = &job->analysis->layers[l];
  const laci_stored *stored = &job->analysis->graph->stored[layer->stored];
  const laci_mask_rule rule = laci_mask_rule_of(options);
  laci_weight_view view = layer->view;
  if (weights[layer->stored]) return LAC_OK;
  uint8_t *mask = laci_alloc((size_t)laci_shape_count(&stored->shape) + 1, 1);
  uint8_t *bytes = laci_alloc(stored->size_bytes + 1, 1);
  lac_status st = mask && bytes ? LAC_OK : laci_fail_memory(err, stored->name);
  view.bytes = stored->bytes;
  if (!st) st = laci_mask_choose_by_rule(&view, &rule, job->pool, mask, err);
  if (!st) {
    memcpy(bytes, stored->bytes, stored->size_bytes);
    laci_mask_apply(&view, mask, bytes);
    weights[layer->stored] = bytes;
    bytes = NULL;
  }
  laci_free(mask);
  laci_free(bytes);
  return st;
}

static lac_status predict_run(void *context, const bool *pruned, double *layers, double *seconds,
                              lac_error *err) {
  laci_timing *t = context;
  const laci_analysis *a = t->job->analysis;
  const size_t n_stored = (size_t)a->graph->n_stored;
  laci_arena arena = {0};
  laci_prediction p = {.refusal = NULL};
  const uint8_t **weights = laci_alloc(n_stored + 1, sizeof *weights);
  lac_status st = weights ? LAC_OK : laci_fail_memory(err, "the predicted times");
  for (int l = 0; l < a->n_layers && !st; l++) {
    if (!pruned[l] || !a->layers[l].eligible) continue;
    st = laci_timing_mask_layer(t->job, t->options, l, t->masked, err);
    if (!st) weights[a->layers[l].stored] = t->masked[a->layers[l].stored];
  }
  const laci_predict_source from = {a, weights, t->options->threads, t->bf16};
  if (!st) st = laci_predict_times(&from, &arena, &p, err);
  if (!st && p.refusal)
    st = laci_fail(err, LAC_UNSUPPORTED, "no time can be predicted: %.300s", p.refusal);
  for (int l = 0; l < a->n_layers && !st; l++) layers[l] = p.layers[l].seconds;
  *seconds = p.seconds;
  laci_arena_clear(&arena);
  laci_free(weights);
  return st;
}

/* Does a choice depend on time? It does if a speed is wanted. For the library's own engine it also
 * does if a limit of the loss leaves some layers dense. */
static bool needs_timing(const laci_job *job, const lac_options *options) {
  if (options->speed > 0) return true;
  const lac_calibration *c = options->calibration;
  return c && c->max_drop >= 0 && !job->streamed && laci_targets_include_own_engine(job, options);
}

static lac_status check_speed_option(const laci_job *job, const lac_options *options,
                                     lac_error *err) {
  const lac_calibration *c = options->calibration;
  if (options->speed != 0 && !(options->speed > 1 && options->speed <= MOST_SPEED)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "speed %g: wanted more than 1, at most %d",
                     options->speed, MOST_SPEED);
  }
  if (options->speed > 0 && c && c->keep_dense > 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "a speed of %g and %d layers that stay dense: wanted one of them",
                     options->speed, c->keep_dense);
  }
  if (options->speed > 0 && job->streamed)
    return laci_fail(err, LAC_UNSUPPORTED,
                     "a speed is wanted of a network whose weights do not fit into memory");
  return LAC_OK;
}

lac_status laci_timing_open(const laci_job *job, const lac_options *options, laci_timing **timing,
                            lac_error *err) {
  const size_t n_stored = (size_t)job->analysis->graph->n_stored;
  *timing = NULL;
  lac_status st = check_speed_option(job, options, err);
  if (st || !needs_timing(job, options)) return st;
  laci_timing *t = laci_alloc(1, sizeof *t);
  if (!t) return laci_fail_memory(err, "the predicted times");
  *t = (laci_timing){.job = job, .options = options, .of = {predict_run, t, options->speed}};
  for (int at = 0; at < options->n_targets; at++)
    if (laci_target_is_own_engine(&job->targets[at]))
      t->bf16 = job->targets[at].as == LAC_DTYPE_BF16;
  t->masked = (uint8_t **)laci_alloc(n_stored + 1, sizeof *t->masked);
  if (!t->masked) st = laci_fail_memory(err, "the predicted times");
  if (st) laci_timing_close(t);
  else *timing = t;
  return st;
}

void laci_timing_close(laci_timing *t) {
  if (!t) return;
  for (int s = 0; t->masked && s < t->job->analysis->graph->n_stored; s++) laci_free(t->masked[s]);
  laci_free((void *)t->masked);
  laci_free(t);
}

const laci_prune_timing *laci_timing_get_interface(const laci_timing *timing) {
  return timing ? &timing->of : NULL;
}

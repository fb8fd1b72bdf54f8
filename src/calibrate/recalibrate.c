/* SPDX-License-Identifier: Apache-2.0
 * Runs the forward part of the training graph, in which a batch is normalized by its own
 * statistics. Several batches are run at the same time. Sums are in double, in the order of the
 * batches. */
#include "calibrate/recalibrate.h"

#include <math.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/training_graph.h"
#include "tensor/buf.h"

static const char what[] = "statistics again";

enum { MOST_WORKERS = 16 };

/** A worker runs one batch at a time on an engine of one thread. So a batch's statistics do not
 * depend on the number of workers. */
typedef struct worker {
  laci_engine *engine;
  void *images;
  const void **inputs; /* [number of graph inputs] addresses of the engine's inputs */
  void **outputs;      /* [number of graph outputs] addresses of the engine's outputs */
  float *now;          /* [size] statistics of the worker's batch */
  lac_status status;
  lac_error err;
} worker;

typedef struct job {
  const laci_calibration_samples *samples;
  const laci_recalibrate_options *options;
  laci_training_graph *graph;
  int64_t batch, n_batches;
  worker workers[MOST_WORKERS];
  int n_workers;
  float *before;    /* [size] statistics that the model has before the re-estimation */
  double *sums;     /* [size] sums of the statistics of all batches */
  int64_t *offsets; /* [n_stats] offset of each statistic in the arrays [size] */
  int64_t size;
} job;

static lac_status create_forward_graph(job *j, const laci_graph *model, lac_error *err) {
  laci_training_options how = {.batch = j->batch, .batch_statistics = true, .loss = LACI_LOSS_NONE};
  if (model->n_inputs == 1) {
    const laci_shape *shape = &j->samples->shapes[0];
    how.image.rank = shape->rank > 0 ? shape->rank - 1 : 0;
    for (int axis = 0; axis < how.image.rank; axis++) how.image.dims[axis] = shape->dims[axis + 1];
  }
  lac_status st = laci_training_graph_create(model, &how, &j->graph, err);
  if (st || j->graph->n_stats > 0) return st;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "the network has no BatchNormalization with running statistics of its own; "
                   "those that were folded into weights cannot be estimated again");
}

static lac_status read_statistics(job *j, const laci_graph *model, lac_error *err) {
  const laci_training_graph *g = j->graph;
  j->offsets = laci_alloc((size_t)g->n_stats, sizeof *j->offsets);
  if (!j->offsets) return laci_fail_memory(err, what);
  for (int s = 0; s < g->n_stats; j->size += g->stats[s++].count) j->offsets[s] = j->size;
  j->before = laci_alloc((size_t)j->size, sizeof *j->before);
  j->sums = laci_alloc((size_t)j->size, sizeof *j->sums);
  if (!j->before || !j->sums) return laci_fail_memory(err, what);
  for (int s = 0; s < g->n_stats; s++) {
    const laci_stored *stored = &model->stored[g->stats[s].stored];
    laci_read_f32(stored->dtype, stored->bytes, 0, g->stats[s].count, j->before + j->offsets[s]);
  }
  return LAC_OK;
}

/* ---- Workers ---- */

static void clear_worker(worker *l) {
  laci_engine_destroy(l->engine);
  laci_free(l->images);
  laci_free(l->inputs);
  laci_free(l->outputs);
  laci_free(l->now);
  *l = (worker){.engine = NULL};
}

static void bind_worker_buffers(const job *j, worker *l) {
  const laci_training_graph *g = j->graph;
  for (int i = 0; i < g->graph->n_inputs; i++)
    if (g->graph->inputs[i] == g->images) l->inputs[i] = l->images;
  for (int s = 0; s < g->n_stats; s++) {
    for (int i = 0; i < g->graph->n_inputs; i++)
      if (g->graph->inputs[i] == g->stats[s].input) l->inputs[i] = j->before + j->offsets[s];
    for (int i = 0; i < g->graph->n_outputs; i++)
      if (g->graph->outputs[i] == g->stats[s].update) l->outputs[i] = l->now + j->offsets[s];
  }
}

static lac_status create_worker_engine(job *j, worker *l, laci_budget *budget, lac_error *err) {
  const laci_training_graph *g = j->graph;
  const laci_engine_options how = {.engine = j->samples->engine,
                                   .threads = 1,
                                   .finite = LACI_FINITE_ASSUMED,
                                   .early_outputs = true,
                                   .budget = budget};
  const laci_engine_port *ports;
  lac_status st = laci_engine_create(g->graph, &how, &l->engine, err);
  if (st) return st;
  int n_inputs = laci_engine_inputs(l->engine, &ports);
  for (int i = 0; i < n_inputs; i++)
    if (g->graph->inputs[i] == g->images) l->images = laci_alloc(ports[i].size_bytes, 1);
  l->inputs = laci_alloc((size_t)g->graph->n_inputs, sizeof *l->inputs);
  l->outputs = laci_alloc((size_t)g->graph->n_outputs, sizeof *l->outputs);
  l->now = laci_alloc((size_t)j->size, sizeof *l->now);
  if (!l->images || !l->inputs || !l->outputs || !l->now) return laci_fail_memory(err, what);
  bind_worker_buffers(j, l);
  return LAC_OK;
}

/** Creates as many workers (engines) as there are threads and batches, and as memory allows. */
static lac_status create_workers(job *j, lac_error *err) {
  laci_budget budget =
      j->options->budget ? *j->options->budget : (laci_budget){.limit = UINT64_MAX};
  int64_t most = laci_pool_threads(j->options->pool);
  if (most > MOST_WORKERS) most = MOST_WORKERS;
  if (most > j->n_batches) most = j->n_batches;
  lac_status st = create_worker_engine(j, &j->workers[0], &budget, err);
  if (!st) j->n_workers = 1;
  while (!st && j->n_workers < most) {
    worker *next = &j->workers[j->n_workers];
    if (create_worker_engine(j, next, &budget, NULL)) {
      clear_worker(next);
      break;
    }
    j->n_workers++;
  }
  return st;
}

/* ---- Batches ---- */

static void run_batches_of_workers(int64_t begin, int64_t end, void *context) {
  job *j = context;
  for (int64_t at = begin; at < end; at++) {
    worker *l = &j->workers[at];
    l->status = laci_engine_run(l->engine, l->inputs, l->outputs, &l->err);
  }
}

/** Runs n batches at the same time, from batch number k on. */
static lac_status run_batches_from(job *j, int64_t k, int64_t n, lac_error *err) {
  lac_status st = LAC_OK;
  for (int64_t at = 0; at < n && !st; at++) {
    st = j->samples->fetch(j->samples->context, j->options->first + (k + at) * j->batch, j->batch,
                           &j->workers[at].images, err);
  }
  if (st) return st;
  laci_pool_for(j->options->pool, n, 1, run_batches_of_workers, j);
  for (int64_t at = 0; at < n; at++) {
    const worker *l = &j->workers[at];
    if (l->status && err) *err = l->err;
    if (l->status) return l->status;
    for (int64_t i = 0; i < j->size; i++) j->sums[i] += (double)l->now[i];
  }
  return LAC_OK;
}

static lac_status run_all_batches(job *j, lac_error *err) {
  lac_status st = LAC_OK;
  for (int64_t k = 0; k < j->n_batches && !st; k += j->n_workers) {
    if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
    int64_t left = j->n_batches - k, n = left < j->n_workers ? left : j->n_workers;
    st = run_batches_from(j, k, n, err);
    laci_progress(what, k + n, j->n_batches);
  }
  return st;
}

static lac_status store_statistics(job *j, laci_graph *model, lac_error *err) {
  const laci_training_graph *g = j->graph;
  float *mean = j->before; /* reuses the memory of the old statistics, which are not needed any
                              more */
  for (int64_t i = 0; i < j->size; i++) mean[i] = (float)(j->sums[i] / (double)j->n_batches);
  for (int s = 0; s < g->n_stats; s++) {
    for (int64_t i = 0; i < g->stats[s].count; i++) {
      float x = mean[j->offsets[s] + i];
      if (isfinite(x)) continue;
      return laci_fail(err, LAC_BAD_VALUE, "%s: element %lld would become %g, wanted a number",
                       g->stats[s].name, (long long)i, (double)x);
    }
    if (!laci_stored_writable_bytes(&model->stored[g->stats[s].stored]))
      return laci_fail_memory(err, g->stats[s].name);
  }
  for (int s = 0; s < g->n_stats; s++) {
    laci_stored *stored = &model->stored[g->stats[s].stored];
    laci_write_f32(stored->dtype, mean + j->offsets[s], g->stats[s].count, stored->owned);
  }
  return LAC_OK;
}

lac_status laci_recalibrate_batch_norms(laci_graph *model, const laci_calibration_samples *samples,
                                        const laci_recalibrate_options *options,
                                        laci_recalibrated *result, lac_error *err) {
  job j = {.samples = samples, .options = options};
  *result = (laci_recalibrated){.n_norms = 0};
  j.batch = options->n < options->batch ? options->n : options->batch;
  if (j.batch < 1)
    return laci_fail(err, LAC_BAD_ARGUMENT, "statistics of %lld samples in batches of %lld",
                     (long long)options->n, (long long)options->batch);
  j.n_batches = options->n / j.batch;
  lac_status st = create_forward_graph(&j, model, err);
  if (!st) st = read_statistics(&j, model, err);
  if (!st) st = create_workers(&j, err);
  if (!st) st = run_all_batches(&j, err);
  if (!st) st = store_statistics(&j, model, err);
  if (!st) *result = (laci_recalibrated){.n_norms = j.graph->n_stats / 2, .n_batches = j.n_batches};
  for (int at = 0; at < j.n_workers + (j.n_workers == 0); at++) clear_worker(&j.workers[at]);
  laci_training_graph_destroy(j.graph);
  laci_free(j.before);
  laci_free(j.sums);
  laci_free(j.offsets);
  return st;
}

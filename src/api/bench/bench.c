/* SPDX-License-Identifier: Apache-2.0
 * lac_bench: plans a network, runs it often, and keeps the time of every step of every run.
 *
 * If the plan uses sparse kernels, a plan of dense kernels alone is run, too. The two alternate
 * after a few runs each, so that a slow moment of the machine affects both. The result has the
 * fastest and the median run, and for each step its fastest time over all runs, since other work on
 * the machine can only add time. The processor's peak rates are sampled between the runs, and the
 * best samples are used for the same reason. Next: plan.c, layers.c, peak.c, batch.c, report.c. */
#include "lacuna/bench.h"

#include <math.h>
#include <string.h>

#include "api/bench/bench_in.h"
#include "api/model/model_in.h"
#include "api/run/request.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "graph/infer.h"
#include "lacuna/prune.h"
#include "onnx/onnx.h"
#include "tensor/shape.h"

enum { LEAST_RUNS = 3, PROGRESS = 1000 };
static const double peak_every_s = 0.05, long_run_s = 0.02;
/* long_run_s: a run of at least this length needs no untimed run before it that wakes threads and
 * fills caches. */

/* The state of one benchmark; bench_clear frees it. */
typedef struct bench {
  const lac_bench_options *options;
  lac_dtype dtype; /* type of the computation */
  laci_graph *graph;
  laci_rebatch batch;
  laci_bench_plan plans[2]; /* [0]: the engine's plan; [1]: if that has sparse steps, a plan of
                               dense kernels */
  int n_plans;
  laci_bench_ports ports;
  laci_pool *pool; /* threads that measure the processor's peak rates */
  laci_peak_kernel kernel;
  double peak; /* peak operations per second: the best sample so far */
  bool searched_layers;
  lac_report *check; /* report on which layers are N:M sparse; NULL: not known */
  laci_bench_result *result;
} bench;

/* ---- Planning ---- */

/* Finds which layers hold the pattern, if possible: a failure, such as a weight with NaNs, does not
 * end the benchmark. Infers the graph's shapes; called once. */
static lac_status find_layers_with_pattern(bench *b, const lac_model *model, lac_error *err) {
  lac_error why = {0};
  if (b->searched_layers) return LAC_OK;
  b->searched_layers = true;
  lac_options options = lac_options_default();
  options.n = b->options->n;
  options.m = b->options->m;
  options.threads = b->options->run.threads;
  options.max_memory = b->options->run.max_memory;
  lac_status st = lac_check(model, NULL, &options, &b->check, &why);
  if (st == LAC_NO_MEMORY || st == LAC_INTERRUPTED || st == LAC_BAD_ARGUMENT) {
    return laci_fail(err, st, "%s", why.text);
  }
  if (st) laci_log(LAC_LOG_DEBUG, "layers that hold the pattern are not known: %s", why.text);
  return LAC_OK;
}

static lac_status explain_batch_failure(const bench *b, lac_status st, lac_error *err) {
  if (!b->batch.from || (st != LAC_BAD_SHAPE && st != LAC_UNSUPPORTED)) return st;
  return laci_fail_with_prefix(
      err, st,
      "the file fixes a batch of %lld, and %lld does not go through (keep that, or "
      "export with an open batch)",
      (long long)b->batch.from, (long long)b->batch.to);
}

static lac_status create_plans(bench *b, laci_engine_options *o, lac_error *err) {
  lac_status st = laci_bench_plan_create(b->graph, b->options, o, &b->plans[b->n_plans++], err);
  if (!st) st = laci_rebatch_check_outputs(&b->batch, b->plans[0].engine, err);
  if (st) return explain_batch_failure(b, st, err);
  if (laci_engine_sparse_step_count(b->plans[0].engine) == 0) return LAC_OK;
  o->dense_only = true;
  st = laci_bench_plan_create(b->graph, b->options, o, &b->plans[b->n_plans++], err);
  return st ? laci_fail_with_prefix(err, st, "the dense plan next to the sparse one") : LAC_OK;
}

static lac_status plan_sparse_and_dense(bench *b, const lac_model *model, lac_error *err) {
  laci_engine_weight *weights = NULL;
  int n_weights = 0;
  lac_status st = laci_rebatch_begin(b->graph, b->options, &b->batch, err);
  if (!st) st = laci_model_list_unchanged_weights(model, &weights, &n_weights, err);
  if (st) return st;
  laci_budget budget = laci_budget_with_limit(b->options->run.max_memory);
  laci_budget_add(&budget, LACI_BENCH_READ, "what reading memory is measured with");
  laci_engine_options o = laci_engine_options_of_run(&b->options->run, b->dtype);
  o.engine = laci_bench_engine_name(b->options);
  o.shapes = b->batch.shapes;
  o.n_shapes = b->batch.n_shapes;
  o.weights = weights;
  o.n_weights = n_weights;
  o.fetch = model->file ? laci_onnx_copy_stored_bytes : NULL;
  o.fetch_context = model->file;
  o.budget = &budget;
  st = create_plans(b, &o, err);
  b->result->pub.planned_bytes = budget.needed;
  laci_free(weights);
  return st;
}

static void log_plan(const laci_engine *engine) {
  const char *at = laci_engine_plan_text(engine);
  while (at && *at && laci_log_is_enabled(LAC_LOG_DEBUG)) {
    size_t n = strcspn(at, "\n");
    laci_log(LAC_LOG_DEBUG, "%.*s", (int)n, at);
    at += n + (at[n] == '\n');
  }
}

/* Fills an input: floats in [-1, 1), integers 0 and 1, which are valid indices almost everywhere.
 */
static void fill_input(const laci_engine_port *port, uint64_t seed, int stream, void *bytes) {
  int64_t n = laci_shape_count(&port->type.shape);
  for (int64_t at = 0; at < n; at++) {
    double x = laci_rng_unit_interval(seed, (uint64_t)stream, (uint64_t)at);
    if (port->type.dtype == LAC_DTYPE_F32) ((float *)bytes)[at] = (float)(2 * x - 1);
    else ((int64_t *)bytes)[at] = x < 0.5;
  }
}

static lac_status alloc_buffers(bench *b, lac_error *err) {
  const laci_engine_port *in, *out;
  laci_bench_ports *p = &b->ports;
  p->n_inputs = laci_engine_inputs(b->plans[0].engine, &in);
  p->n_outputs = laci_engine_outputs(b->plans[0].engine, &out);
  p->inputs = laci_alloc((size_t)p->n_inputs, sizeof *p->inputs);
  p->outputs = laci_alloc((size_t)p->n_outputs, sizeof *p->outputs);
  bool whole = p->inputs && p->outputs;
  for (int at = 0; whole && at < p->n_inputs; at++) {
    p->inputs[at] = laci_alloc(in[at].size_bytes, 1);
    whole = p->inputs[at] != NULL;
    if (whole) fill_input(&in[at], b->options->seed, at, p->inputs[at]);
  }
  for (int at = 0; whole && at < p->n_outputs; at++) {
    p->outputs[at] = laci_alloc(out[at].size_bytes, 1);
    whole = p->outputs[at] != NULL;
  }
  return whole ? LAC_OK : laci_fail_memory(err, "inputs and outputs");
}

/* ---- Running ---- */

static void report_progress(const bench *b, double spent) {
  double by_runs = (double)b->plans[0].runs.n / b->options->runs;
  double by_time = b->options->seconds > 0 ? spent / b->options->seconds : 0;
  double share = by_runs > by_time ? by_runs : by_time;
  laci_progress("bench", share < 1 ? (int64_t)(share * PROGRESS) : PROGRESS - 1, PROGRESS);
}

static bool has_run_enough(const bench *b, double spent) {
  size_t n = b->plans[0].runs.n;
  if (n >= (size_t)b->options->runs) return true;
  return n >= LEAST_RUNS && b->options->seconds > 0 && spent >= b->options->seconds;
}

/* Returns the number of runs of each plan per round. It is one if there is one plan. With two
 * plans, a round's runs of a plan take as long as a long run. */
static int runs_per_round(const bench *b) {
  size_t left = (size_t)b->options->runs - b->plans[0].runs.n;
  double slower = fmax(b->plans[0].last_seconds, b->plans[1].last_seconds);
  if (b->n_plans == 1 || slower >= long_run_s) return 1;
  double n = fmax(floor(long_run_s / slower), 1);
  return n < (double)left ? (int)n : (int)left;
}

/* Runs and times each plan once or several times. rested: before this round, threads slept and
 * other work used the caches. */
static lac_status run_round(bench *b, bool rested, lac_error *err) {
  lac_status st = LAC_OK;
  int n = runs_per_round(b);
  rested = rested || b->n_plans > 1;
  for (int at = 0; at < b->n_plans && !st; at++) {
    laci_bench_plan *plan = &b->plans[at];
    st = laci_bench_plan_run_timed(plan, &b->ports, n, rested && plan->last_seconds < long_run_s,
                                   err);
  }
  return st;
}

static lac_status run_rounds(bench *b, lac_error *err) {
  double begin = laci_clock_seconds(), now = begin, peak_at = 0;
  lac_status st = LAC_OK;
  while (!st && !has_run_enough(b, now - begin)) {
    bool is_due = b->peak <= 0 || now - peak_at >= peak_every_s;
    if (is_due) {
      b->peak = fmax(b->peak, laci_bench_measure_peak_rate(b->pool, b->kernel));
      peak_at = laci_clock_seconds();
    }
    st = run_round(b, is_due, err);
    now = laci_clock_seconds();
    report_progress(b, now - begin);
  }
  laci_progress("bench", PROGRESS, PROGRESS);
  return st;
}

static lac_status run_and_measure_plans(bench *b, lac_error *err) {
  bool bf16 = b->dtype == LAC_DTYPE_BF16;
  b->kernel = bf16 ? laci_peak_bf16_variant() : laci_peak_f32_variant();
  if (!b->kernel.run) b->kernel = laci_peak_f32_variant();
  lac_status st = laci_pool_create(laci_engine_threads(b->plans[0].engine), &b->pool, err);
  for (int at = 0; at < b->n_plans && !st; at++) {
    st = laci_bench_plan_warm_up(&b->plans[at], &b->ports, err);
  }
  if (!st) st = laci_bench_measure_read_rate(b->pool, &b->result->pub.read_bytes, err);
  return st ? st : run_rounds(b, err);
}

/* ---- The result ---- */

/* Fills the fields of the result that describe the engine's plan. */
static void fill_plan_facts(bench *b) {
  lac_bench_result *r = &b->result->pub;
  const laci_bench_plan *plan = &b->plans[0];
  const laci_engine_memory planned = laci_engine_planned_memory(plan->engine);
  r->threads = laci_engine_threads(plan->engine);
  r->runs = (int)plan->runs.n;
  r->plan_seconds = plan->plan_seconds;
  r->first_seconds = plan->first_seconds;
  r->weight_bytes = planned.weight_bytes;
  r->arena_bytes = planned.arena_bytes;
}

static void fill_result_times(bench *b) {
  lac_bench_result *r = &b->result->pub;
  r->dense = laci_bench_plan_run_times(&b->plans[b->n_plans - 1]);
  r->has_sparse = b->n_plans > 1;
  if (r->has_sparse) {
    const laci_engine_memory planned = laci_engine_planned_memory(b->plans[1].engine);
    r->sparse = laci_bench_plan_run_times(&b->plans[0]);
    r->dense_plan_seconds = b->plans[1].plan_seconds;
    r->dense_weight_bytes = planned.weight_bytes;
    r->dense_arena_bytes = planned.arena_bytes;
  }
  double median = r->has_sparse ? r->sparse.median : r->dense.median;
  if (median > 0) r->items_per_second = (double)r->batch / median;
}

static lac_status fill_result(bench *b, const lac_model *model, lac_error *err) {
  lac_bench_result *r = &b->result->pub;
  r->model = laci_arena_text(&b->result->arena, model->path);
  r->dtype = b->dtype;
  r->peak_kernel = b->kernel.name;
  r->peak_flops = b->peak;
  r->batch = 1;
  if (b->batch.n_shapes > 0 && b->batch.shapes[0].shape.rank > 0) {
    r->batch = b->batch.shapes[0].shape.dims[0];
  }
  r->fixed_batch = b->batch.from;
  r->load_seconds = b->options->load_seconds;
  r->pattern_n = b->options->n;
  r->pattern_m = b->options->m;
  for (int at = 0; b->check && at < b->check->n_layers; at++) {
    const lac_layer *layer = &b->check->layers[at];
    r->n_holding += layer->eligible && layer->pruned;
  }
  fill_plan_facts(b);
  fill_result_times(b);
  lac_status st = r->model ? LAC_OK : laci_fail_memory(err, "the result");
  const laci_bench_plan *dense = b->n_plans > 1 ? &b->plans[1] : NULL;
  if (!st) st = laci_bench_copy_plan_facts(b->result, &b->plans[0], b->graph, err);
  if (!st) st = laci_bench_make_layer_rows(b->result, &b->plans[0], dense, b->check, err);
  return st ? st : laci_bench_sum_layers(b->result, err);
}

static void free_blocks(void **blocks, int n) {
  for (int at = 0; blocks && at < n; at++) laci_free(blocks[at]);
  laci_free(blocks);
}

static void bench_clear(bench *b) {
  free_blocks(b->ports.inputs, b->ports.n_inputs);
  free_blocks(b->ports.outputs, b->ports.n_outputs);
  laci_pool_destroy(b->pool);
  for (int at = 0; at < b->n_plans; at++) laci_bench_plan_clear(&b->plans[at]);
  laci_rebatch_undo(&b->batch); /* the engines, which point into the graph, are destroyed before it
                                   is restored */
  if (b->check) lac_report_destroy(b->check);
  lac_bench_result_destroy(b->result ? &b->result->pub : NULL);
}

lac_status laci_bench_run(lac_model *model, const lac_bench_options *options,
                          lac_bench_result **result, lac_error *err) {
  lac_status st = LAC_OK;
  bench b = {.options = options};
  b.result = laci_alloc(1, sizeof *b.result);
  if (!b.result) return laci_fail_memory(err, "the result");
  b.graph = model->graph;
  b.dtype = laci_bench_supported_dtype(b.options);
  /* Searching for the pattern takes time. It is done after the measurement, to give the first
   * result early; only a changed batch size needs its inferred shapes before. */
  if (laci_rebatch_is_needed(b.graph, b.options)) {
    st = laci_model_materialise(model, err);
    if (!st) st = find_layers_with_pattern(&b, model, err);
  }
  if (!st) st = plan_sparse_and_dense(&b, model, err);
  for (int at = 0; at < b.n_plans && !st; at++) log_plan(b.plans[at].engine);
  if (!st) laci_bench_log_plan(&b.plans[0], b.graph);
  if (!st) st = alloc_buffers(&b, err);
  if (!st) st = run_and_measure_plans(&b, err);
  if (!st) st = find_layers_with_pattern(&b, model, err);
  if (!st) st = fill_result(&b, model, err);
  if (!st) {
    *result = &b.result->pub;
    b.result = NULL;
  }
  bench_clear(&b);
  return st;
}

void lac_bench_result_destroy(lac_bench_result *result) {
  if (!result) return;
  laci_arena_clear(&((laci_bench_result *)result)->arena);
  laci_free(result);
}

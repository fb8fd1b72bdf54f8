/* SPDX-License-Identifier: Apache-2.0
 * lac_bench: plans a network, runs it often, and keeps the time of every step of every run.
 *
 * Reported are the fastest and the middle run, and for each step its fastest time over all runs:
 * what else the machine does only ever adds to a time. The baseline (what the processor can do at
 * best) is sampled between the runs and its best sample taken, for the same reason. Next:
 * bench_peak.c, bench_batch.c, bench_report.c. */
#include "lacuna/bench.h"

#include <stdlib.h>
#include <string.h>

#include "api/bench_in.h"
#include "api/model_in.h"
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
#include "sparse/score.h"
#include "tensor/shape.h"

enum { MOST_BATCH = 65536, MOST_RUNS = 10000, LEAST_RUNS = 3, WARM_RUNS = 10, PROGRESS = 1000 };
static const double warm_s = 0.2, peak_every_s = 0.05, long_run_s = 0.02, most_seconds = 1e9;

/* Samples of one quantity, or of one row of quantities, a run. */
typedef struct samples {
  double *values; /* [n, width] */
  size_t n, capacity, width;
} samples;

/* Everything that one bench holds; cleared by bench_clear. */
typedef struct bench {
  const lac_bench_options *options;
  laci_graph *graph;
  laci_rebatch batch;
  laci_engine *engine;
  laci_pool *pool; /* of the baselines */
  laci_peak_kernel kernel;
  void **inputs, **outputs;
  int n_inputs, n_outputs;
  size_t n_steps;
  samples runs, steps;
  double peak; /* operations a second, the best sample */
  bool looked;
  lac_report *check; /* which layers hold the pattern; NULL: it is not known */
  laci_bench_result *result;
} bench;

lac_bench_options lac_bench_options_default(void) {
  return (lac_bench_options){.dtype = LAC_DTYPE_F32, .runs = 1000, .seconds = 5, .n = 2, .m = 4};
}

static lac_status check_options(const lac_bench_options *options, lac_error *err) {
  if (options->dtype != LAC_DTYPE_F32 && options->dtype != LAC_DTYPE_BF16) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a bench in %s, wanted f32 or bf16",
                     lac_dtype_name(options->dtype));
  }
  if (options->batch < 0 || options->batch > MOST_BATCH) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a batch of %d, wanted 1 to %d", options->batch,
                     MOST_BATCH);
  }
  if (options->runs < 1 || options->runs > MOST_RUNS) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d runs, wanted 1 to %d", options->runs, MOST_RUNS);
  }
  if (!(options->seconds >= 0 && options->seconds <= most_seconds)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a time of %g s, wanted 0 to %g", options->seconds,
                     most_seconds);
  }
  lac_status st = laci_pattern_check((laci_pattern){options->n, options->m}, err);
  if (st) return st;
  if (options->n_shapes < 0 || (options->n_shapes > 0 && !options->shapes)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d input shapes, but no list", options->n_shapes);
  }
  return LAC_OK;
}

/* ---- Samples ---- */

/* Room for one more row, which counts when n is raised. NULL: no memory. */
static double *next_row(samples *s) {
  if (s->n == s->capacity) {
    size_t capacity = s->capacity ? 2 * s->capacity : 16;
    size_t row = s->width * sizeof *s->values;
    double *values = laci_resize(s->values, s->n, capacity, row ? row : 1);
    if (!values) return NULL;
    s->values = values;
    s->capacity = capacity;
  }
  return s->values + s->n * s->width;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double column_min(const samples *s, size_t column) {
  double least = s->n > 0 ? s->values[column] : 0;
  for (size_t row = 1; row < s->n; row++) {
    double x = s->values[row * s->width + column];
    if (x < least) least = x;
  }
  return least;
}

/* The only column's values are put in order. */
static lac_bench_time spread(const samples *s) {
  if (s->n == 0) return (lac_bench_time){0};
  qsort(s->values, s->n, sizeof *s->values, compare);
  return (lac_bench_time){.min = s->values[0],
                          .median = 0.5 * (s->values[(s->n - 1) / 2] + s->values[s->n / 2])};
}

/* ---- Planning ---- */

/* Which layers hold the pattern is said where it can be: a weight of NaNs is no reason not to run.
 * Infers the graph's shapes on the way, and is done once. */
static lac_status look_for_pattern(bench *b, const lac_model *model, lac_error *err) {
  lac_error why = {0};
  if (b->looked) return LAC_OK;
  b->looked = true;
  lac_options options = lac_options_default();
  options.n = b->options->n;
  options.m = b->options->m;
  options.threads = b->options->threads;
  options.max_memory = b->options->max_memory;
  lac_status st = lac_check(model, NULL, &options, &b->check, &why);
  if (st == LAC_NO_MEMORY || st == LAC_INTERRUPTED || st == LAC_BAD_ARGUMENT) {
    return laci_fail(err, st, "%s", why.text);
  }
  if (st) laci_log(LAC_LOG_DEBUG, "layers that hold the pattern are not known: %s", why.text);
  return LAC_OK;
}

static lac_status plan_engine(bench *b, const lac_model *model, lac_error *err) {
  lac_bench_result *r = &b->result->pub;
  lac_status st = laci_rebatch_begin(b->graph, b->options, &b->batch, err);
  laci_engine_weight *weights = NULL;
  int n_weights = 0;
  if (!st) st = laci_model_weights(model, &weights, &n_weights, err);
  if (st) return st;
  laci_budget budget = laci_budget_of(b->options->max_memory);
  laci_budget_add(&budget, LACI_BENCH_READ, "what reading memory is measured with");
  laci_engine_options o = {.engine = b->options->engine,
                           .threads = b->options->threads,
                           .bf16 = b->options->dtype == LAC_DTYPE_BF16,
                           .dense_only = b->options->dense_only,
                           .shapes = b->batch.shapes,
                           .n_shapes = b->batch.n_shapes,
                           .weights = weights,
                           .n_weights = n_weights,
                           .fetch = model->file ? laci_onnx_fetch : NULL,
                           .fetch_context = model->file,
                           .budget = &budget};
  double begin = laci_clock_seconds();
  st = laci_engine_create(b->graph, &o, &b->engine, err);
  laci_free(weights);
  r->plan_seconds = laci_clock_seconds() - begin;
  if (!st) st = laci_rebatch_check(&b->batch, b->engine, err);
  if (st && b->batch.from && (st == LAC_BAD_SHAPE || st == LAC_UNSUPPORTED)) {
    st = laci_fail_in(err, st,
                      "the file fixes a batch of %lld, and %lld does not go through (keep that, or "
                      "export with an open batch)",
                      (long long)b->batch.from, (long long)b->batch.to);
  }
  if (st) return st;
  b->n_steps = laci_engine_step_count(b->engine);
  r->threads = laci_engine_threads(b->engine);
  r->weight_bytes = laci_engine_planned(b->engine).weight_bytes;
  r->arena_bytes = laci_engine_planned(b->engine).arena_bytes;
  r->planned_bytes = budget.needed;
  r->batch = 1;
  if (b->batch.n_shapes > 0 && b->batch.shapes[0].shape.rank > 0) {
    r->batch = b->batch.shapes[0].shape.dims[0];
  }
  r->fixed_batch = b->batch.from;
  return LAC_OK;
}

static void log_plan(const laci_engine *engine) {
  const char *at = laci_engine_text(engine);
  while (at && *at && laci_log_wanted(LAC_LOG_DEBUG)) {
    size_t n = strcspn(at, "\n");
    laci_log(LAC_LOG_DEBUG, "%.*s", (int)n, at);
    at += n + (at[n] == '\n');
  }
}

/* Floats in [-1, 1), integers 0 and 1, which index whatever they index. */
static void fill(const laci_engine_port *port, uint64_t seed, int stream, void *bytes) {
  int64_t n = laci_shape_count(&port->type.shape);
  for (int64_t at = 0; at < n; at++) {
    double x = laci_rng_unit(seed, (uint64_t)stream, (uint64_t)at);
    if (port->type.dtype == LAC_DTYPE_F32) ((float *)bytes)[at] = (float)(2 * x - 1);
    else ((int64_t *)bytes)[at] = x < 0.5;
  }
}

static lac_status take_memory(bench *b, lac_error *err) {
  const laci_engine_port *in, *out;
  b->n_inputs = laci_engine_inputs(b->engine, &in);
  b->n_outputs = laci_engine_outputs(b->engine, &out);
  b->inputs = laci_alloc((size_t)b->n_inputs, sizeof *b->inputs);
  b->outputs = laci_alloc((size_t)b->n_outputs, sizeof *b->outputs);
  bool whole = b->inputs && b->outputs;
  for (int at = 0; whole && at < b->n_inputs; at++) {
    b->inputs[at] = laci_alloc(in[at].size_bytes, 1);
    whole = b->inputs[at] != NULL;
    if (whole) fill(&in[at], b->options->seed, at, b->inputs[at]);
  }
  for (int at = 0; whole && at < b->n_outputs; at++) {
    b->outputs[at] = laci_alloc(out[at].size_bytes, 1);
    whole = b->outputs[at] != NULL;
  }
  b->runs.width = 1;
  b->steps.width = b->n_steps;
  return whole ? LAC_OK : laci_fail_memory(err, "inputs and outputs");
}

/* ---- Running ---- */

/* seconds: NULL, or [n_steps]. */
static lac_status run_once(bench *b, double *seconds, double *total, lac_error *err) {
  const void *const *inputs = (const void *const *)b->inputs;
  double begin = laci_clock_seconds();
  lac_status st = laci_engine_run_timed(b->engine, inputs, b->outputs, seconds, err);
  *total = laci_clock_seconds() - begin;
  return st;
}

static lac_status warm_up(bench *b, lac_error *err) {
  double total = 0, spent = 0;
  lac_status st = run_once(b, NULL, &b->result->pub.first_seconds, err);
  for (int at = 0; !st && at < WARM_RUNS && (at == 0 || spent < warm_s); at++) {
    st = run_once(b, NULL, &total, err);
    spent += total;
  }
  return st;
}

static lac_status sample_run(bench *b, double *total, lac_error *err) {
  double *run = next_row(&b->runs), *steps = next_row(&b->steps);
  if (!run || !steps) return laci_fail_memory(err, "times of runs");
  lac_status st = run_once(b, steps, total, err);
  if (st) return st;
  *run = *total;
  b->runs.n++;
  b->steps.n++;
  return LAC_OK;
}

/* A sample of the baseline; the engine's threads, which slept meanwhile, are woken by a run that
 * does not count, where that is short. */
static lac_status sample_peak(bench *b, double last_run, lac_error *err) {
  double total, peak = laci_bench_peak(b->pool, b->kernel);
  if (peak > b->peak) b->peak = peak;
  return last_run < long_run_s ? run_once(b, NULL, &total, err) : LAC_OK;
}

static void report_progress(const bench *b, double spent) {
  double by_runs = (double)b->runs.n / b->options->runs;
  double by_time = b->options->seconds > 0 ? spent / b->options->seconds : 0;
  double share = by_runs > by_time ? by_runs : by_time;
  laci_progress("bench", share < 1 ? (int64_t)(share * PROGRESS) : PROGRESS - 1, PROGRESS);
}

static bool is_enough(const bench *b, double spent) {
  size_t wanted = (size_t)b->options->runs;
  if (b->runs.n >= wanted) return true;
  return b->runs.n >= LEAST_RUNS && b->options->seconds > 0 && spent >= b->options->seconds;
}

static lac_status run_all(bench *b, lac_error *err) {
  double begin = laci_clock_seconds(), now = begin, peak_at = 0, total = 0;
  lac_status st = LAC_OK;
  while (!st && !is_enough(b, now - begin)) {
    if (b->peak <= 0 || now - peak_at >= peak_every_s) {
      st = sample_peak(b, b->runs.n > 0 ? total : 0, err);
      peak_at = laci_clock_seconds();
    }
    if (!st) st = sample_run(b, &total, err);
    now = laci_clock_seconds();
    report_progress(b, now - begin);
  }
  laci_progress("bench", PROGRESS, PROGRESS);
  return st;
}

static lac_status measure(bench *b, lac_error *err) {
  bool bf16 = b->options->dtype == LAC_DTYPE_BF16;
  b->kernel = bf16 ? laci_peak_bf16() : laci_peak_f32();
  if (!b->kernel.run) b->kernel = laci_peak_f32();
  lac_status st = laci_pool_create(b->result->pub.threads, &b->pool, err);
  if (!st) st = warm_up(b, err);
  if (!st) st = laci_bench_read(b->pool, &b->result->pub.read_bytes, err);
  return st ? st : run_all(b, err);
}

/* ---- The result ---- */

static bool holds_pattern(const bench *b, const char *node) {
  for (int at = 0; b->check && node && at < b->check->n_layers; at++) {
    const lac_layer *layer = &b->check->layers[at];
    if (strcmp(layer->name, node) == 0) return layer->pruned;
  }
  return false;
}

/* The name of the step; of one that only changes a layout, that of the next one with "(reorder)".
 */
static char *name_step(bench *b, const char *name, const char *next) {
  laci_arena *arena = &b->result->arena;
  if (name) return laci_arena_text(arena, name);
  if (!next) return laci_arena_text(arena, "(output)");
  static const char mark[] = " (reorder)";
  size_t n = strlen(next);
  char *made = laci_arena_alloc(arena, n + sizeof mark, 1);
  if (!made) return NULL;
  memcpy(made, next, n);
  memcpy(made + n, mark, sizeof mark);
  return made;
}

/* *next: the name of the nearest step behind this one that has any; becomes this one's. */
static lac_status describe_step(bench *b, size_t at, const char **next, lac_error *err) {
  laci_arena *arena = &b->result->arena;
  lac_bench_layer *layer = &b->result->layers[at];
  laci_engine_step info = laci_engine_step_look(b->engine, at);
  double seconds = column_min(&b->steps, at);
  *layer = (lac_bench_layer){.name = name_step(b, info.name, *next),
                             .op = laci_arena_text(arena, info.op),
                             .what = laci_arena_text(arena, info.what),
                             .kernel = laci_arena_text(arena, info.kernel),
                             .plain = info.plain,
                             .holds_pattern = info.flops > 0 && holds_pattern(b, info.name),
                             .dense_seconds = seconds,
                             .seconds = seconds,
                             .flops = info.flops,
                             .bytes_read = info.bytes_read,
                             .bytes_written = info.bytes_written};
  if (info.name) *next = info.name;
  bool whole = layer->name && layer->op && layer->what && layer->kernel;
  return whole ? LAC_OK : laci_fail_memory(err, "the result");
}

static lac_status describe_steps(bench *b, lac_error *err) {
  laci_bench_result *r = b->result;
  const char *next = NULL;
  r->layers = laci_arena_alloc(&r->arena, b->n_steps, sizeof *r->layers);
  if (!r->layers) return laci_fail_memory(err, "the result");
  lac_status st = LAC_OK;
  for (size_t at = b->n_steps; at > 0 && !st; at--) st = describe_step(b, at - 1, &next, err);
  r->pub.layers = r->layers;
  r->pub.n_layers = (int)b->n_steps;
  return st;
}

static lac_status fill_result(bench *b, const lac_model *model, lac_error *err) {
  lac_bench_result *r = &b->result->pub;
  r->model = laci_arena_text(&b->result->arena, model->path);
  r->dtype = b->options->dtype;
  r->runs = (int)b->runs.n;
  r->peak_kernel = b->kernel.name;
  r->peak_flops = b->peak;
  r->dense = spread(&b->runs);
  if (r->dense.median > 0) r->items_per_second = (double)r->batch / r->dense.median;
  r->load_seconds = b->options->load_seconds;
  r->pattern_n = b->options->n;
  r->pattern_m = b->options->m;
  for (int at = 0; b->check && at < b->check->n_layers; at++) {
    const lac_layer *layer = &b->check->layers[at];
    r->n_holding += layer->eligible && layer->pruned;
  }
  lac_status st = r->model ? LAC_OK : laci_fail_memory(err, "the result");
  if (!st) st = describe_steps(b, err);
  return st ? st : laci_bench_sum(b->result, err);
}

static void free_all(void **blocks, int n) {
  for (int at = 0; blocks && at < n; at++) laci_free(blocks[at]);
  laci_free(blocks);
}

static void bench_clear(bench *b) {
  free_all(b->inputs, b->n_inputs);
  free_all(b->outputs, b->n_outputs);
  laci_free(b->runs.values);
  laci_free(b->steps.values);
  laci_pool_destroy(b->pool);
  laci_engine_destroy(b->engine);
  laci_rebatch_undo(&b->batch); /* the engine's bytes and names are the graph's */
  if (b->check) lac_report_destroy(b->check);
  lac_bench_result_destroy(b->result ? &b->result->pub : NULL);
}

lac_status lac_bench(lac_model *model, const lac_bench_options *options, lac_bench_result **result,
                     lac_error *err) {
  lac_bench_options defaults = lac_bench_options_default();
  bench b = {.options = options ? options : &defaults};
  if (result) *result = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"result", result});
  if (!st) st = check_options(b.options, err);
  if (st) return st;
  b.result = laci_alloc(1, sizeof *b.result);
  if (!b.result) return laci_fail_memory(err, "the result");
  b.graph = model->graph;
  /* Looking takes time, which is not part of the first answer's unless another batch needs it. */
  if (laci_rebatch_wanted(b.graph, b.options)) {
    st = laci_model_materialise(model, err);
    if (!st) st = look_for_pattern(&b, model, err);
  }
  if (!st) st = plan_engine(&b, model, err);
  if (!st) log_plan(b.engine);
  if (!st) st = take_memory(&b, err);
  if (!st) st = measure(&b, err);
  if (!st) st = look_for_pattern(&b, model, err);
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

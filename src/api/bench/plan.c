/* SPDX-License-Identifier: Apache-2.0
 * Implements one plan of lac_bench: its engine, and the times of each run and of each step. */
#include <stdlib.h>
#include <string.h>

#include "api/bench/bench_in.h"
#include "api/run/infer.h"
#include "api/run/tuning.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/median.h"
#include "engine/engine.h"
#include "graph/graph.h"

enum { WARM_RUNS = 10 };
static const double warm_s = 0.2;

/* ---- Samples ---- */

/* Returns memory for the next row, which becomes part of the samples when n is increased; NULL: no
 * memory. */
static double *add_sample_row(laci_bench_samples *s) {
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

double laci_bench_plan_fastest_step(const laci_bench_plan *plan, size_t step) {
  const laci_bench_samples *s = &plan->steps;
  double least = s->n > 0 ? s->values[step] : 0;
  for (size_t row = 1; row < s->n; row++) {
    double x = s->values[row * s->width + step];
    if (x < least) least = x;
  }
  return least;
}

lac_bench_time laci_bench_plan_run_times(laci_bench_plan *plan) {
  const laci_bench_samples *s = &plan->runs;
  if (s->n == 0) return (lac_bench_time){0};
  const double median = laci_median(s->values, s->n);
  return (lac_bench_time){.min = s->values[0], .median = median};
}

/* ---- Planning ---- */

lac_status laci_bench_plan_create(const laci_graph *graph, const lac_bench_options *asked,
                                  const laci_engine_options *options, laci_bench_plan *plan,
                                  lac_error *err) {
  double begin = laci_clock_seconds();
  lac_status st = laci_tuned_engine_create(graph, options, asked->run.tuning, asked->run.timings,
                                           &plan->engine, err);
  plan->plan_seconds = laci_clock_seconds() - begin;
  if (st) return st;
  plan->n_steps = laci_engine_step_count(plan->engine);
  plan->runs.width = 1;
  plan->steps.width = plan->n_steps;
  return LAC_OK;
}

void laci_bench_plan_clear(laci_bench_plan *plan) {
  laci_free(plan->runs.values);
  laci_free(plan->steps.values);
  laci_engine_destroy(plan->engine);
  *plan = (laci_bench_plan){0};
}

const char *laci_bench_engine_name(const lac_bench_options *asked) {
  return laci_engine_name_or_default(asked->run.engine);
}

lac_dtype laci_bench_supported_dtype(const lac_bench_options *asked) {
  return laci_dtype_find_supported_or_warn(laci_bench_engine_name(asked), asked->run.dtype);
}

void laci_bench_log_plan(const laci_bench_plan *plan, const laci_graph *graph) {
  const laci_engine_exact exact = laci_engine_describe_exact_nodes(plan->engine);
  laci_log_exact_nodes(&exact, graph->n_nodes);
}

lac_status laci_bench_copy_plan_facts(laci_bench_result *result, const laci_bench_plan *plan,
                                      const laci_graph *graph, lac_error *err) {
  lac_bench_result *r = &result->pub;
  const laci_engine_exact exact = laci_engine_describe_exact_nodes(plan->engine);
  r->engine = laci_arena_text(&result->arena, laci_engine_name(plan->engine));
  r->n_nodes = graph->n_nodes;
  r->costs_known = laci_engine_has_cost_table(laci_engine_name(plan->engine));
  r->n_exact = exact.n_nodes;
  if (exact.reason) r->exact_reason = laci_arena_text(&result->arena, exact.reason);
  bool whole = r->engine && !exact.reason == !r->exact_reason;
  return whole ? LAC_OK : laci_fail_memory(err, "the result");
}

/* ---- Running ---- */

/* Runs the plan once. seconds: gets the time of each step, [n_steps]; NULL: not wanted. */
static lac_status run_once(laci_bench_plan *plan, const laci_bench_ports *ports, double *seconds,
                           lac_error *err) {
  const void *const *inputs = (const void *const *)ports->inputs;
  const laci_engine_watch watch = {.seconds = seconds};
  double begin = laci_clock_seconds();
  lac_status st = laci_engine_run_watched(plan->engine, inputs, ports->outputs, &watch, err);
  plan->last_seconds = laci_clock_seconds() - begin;
  return st;
}

lac_status laci_bench_plan_warm_up(laci_bench_plan *plan, const laci_bench_ports *ports,
                                   lac_error *err) {
  double spent = 0;
  lac_status st = run_once(plan, ports, NULL, err);
  plan->first_seconds = plan->last_seconds;
  for (int at = 0; !st && at < WARM_RUNS && (at == 0 || spent < warm_s); at++) {
    st = run_once(plan, ports, NULL, err);
    spent += plan->last_seconds;
  }
  return st;
}

lac_status laci_bench_plan_run_timed(laci_bench_plan *plan, const laci_bench_ports *ports, int n,
                                     bool wakes, lac_error *err) {
  lac_status st = wakes ? run_once(plan, ports, NULL, err) : LAC_OK;
  for (int at = 0; at < n && !st; at++) {
    double *run = add_sample_row(&plan->runs), *steps = add_sample_row(&plan->steps);
    if (!run || !steps) return laci_fail_memory(err, "times of runs");
    st = run_once(plan, ports, steps, err);
    if (st) return st;
    *run = plan->last_seconds;
    plan->runs.n++;
    plan->steps.n++;
  }
  return st;
}

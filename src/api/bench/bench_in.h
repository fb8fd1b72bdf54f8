/* SPDX-License-Identifier: Apache-2.0
 * Shared by the files of lac_bench: the processor's peak rates (peak.c), the batch size of a
 * network (batch.c), and a plan with its times (plan.c). bench.c runs the benchmark, layers.c makes
 * the rows of the result, report.c sums up and writes. */
#ifndef LACI_API_BENCH_BENCH_IN_H
#define LACI_API_BENCH_BENCH_IN_H

#include "base/memory.h"
#include "kernel/peak/peak.h"
#include "lacuna/bench.h"

typedef struct lac_report lac_report;
typedef struct laci_engine laci_engine;
typedef struct laci_engine_options laci_engine_options;
typedef struct laci_graph laci_graph;
typedef struct laci_input_shape laci_input_shape;
typedef struct laci_pool laci_pool;

typedef struct laci_bench_result {
  lac_bench_result pub; /* must be first: a lac_bench_result * is cast to laci_bench_result * */
  laci_arena arena;
  lac_bench_layer *layers;
  lac_bench_kind *kinds;
} laci_bench_result;

/* ---- bench.c ---- */

/** Does the work of lac_bench; its arguments were checked. */
LAC_MUST_CHECK lac_status laci_bench_run(lac_model *model, const lac_bench_options *options,
                                         lac_bench_result **result, lac_error *err);

/* ---- peak.c ---- */

/** Number of bytes that the measurement of the memory's read rate reads: more than the caches hold.
 */
enum { LACI_BENCH_READ = 96 << 20 };

/** Measures reading from memory on all threads of the pool: bytes per second, the best of a few
 * passes. */
LAC_MUST_CHECK lac_status laci_bench_measure_read_rate(laci_pool *pool, double *bytes_per_second,
                                                       lac_error *err);
/** Measures one sample of the kernel, a few milliseconds, on all threads of the pool. Returns
 * operations per second. */
double laci_bench_measure_peak_rate(laci_pool *pool, laci_peak_kernel kernel);

/* ---- batch.c ---- */

/** A network whose batch size was changed temporarily, with the old sizes and constants to restore.
 */
typedef struct laci_rebatch {
  laci_graph *graph;
  int64_t from, to;         /* batch size of the file (from), and that of the bench (to); from is 0
                               where nothing was changed */
  const uint8_t **bytes;    /* [graph->n_stored] original bytes; NULL: this tensor was not changed
                               */
  laci_input_shape *shapes; /* [n_shapes] shapes of inputs for the plan */
  int n_shapes;
  laci_arena arena;
} laci_rebatch;

/** Do the options want another batch size than the file's fixed one? Shapes must have been inferred
 * if so. */
bool laci_rebatch_is_needed(const laci_graph *graph, const lac_bench_options *options);
/** Resolves the shapes of all inputs: the first size is the batch size (0: the file's, or 1), the
 * others are from the file and the options. If the file has another fixed batch size, changes the
 * graph: its inputs, and constants of Reshape nodes, in which the batch size becomes 0 (copy the
 * input's size). Call laci_rebatch_undo in any case. */
LAC_MUST_CHECK lac_status laci_rebatch_begin(laci_graph *graph, const lac_bench_options *options,
                                             laci_rebatch *batch, lac_error *err);
/** Checks that the outputs of the planned network have the new batch size. */
LAC_MUST_CHECK lac_status laci_rebatch_check_outputs(const laci_rebatch *batch,
                                                     const laci_engine *engine, lac_error *err);
/** Restores the graph. Destroy the engines that were made from it first. */
void laci_rebatch_undo(laci_rebatch *batch);

/* ---- plan.c ---- */

/** The measured values of all runs: of one quantity (width 1), or of a row of `width` quantities,
 * such as the times of all steps. */
typedef struct laci_bench_samples {
  double *values; /* [n, width] the measured values, a row for each run */
  size_t n, capacity, width;
} laci_bench_samples;

typedef struct laci_bench_plan {
  laci_engine *engine;
  size_t n_steps;
  laci_bench_samples runs, steps;
  double plan_seconds, first_seconds, last_seconds; /* times of planning, of the first run, and of
                                                       the last run */
} laci_bench_plan;

/** Buffers of the inputs and outputs of runs. */
typedef struct laci_bench_ports {
  void **inputs, **outputs;
  int n_inputs, n_outputs;
} laci_bench_ports;

/** Makes a plan. Call laci_bench_plan_clear in any case. Fails as laci_engine_create. */
LAC_MUST_CHECK lac_status laci_bench_plan_create(const laci_graph *graph,
                                                 const lac_bench_options *asked,
                                                 const laci_engine_options *options,
                                                 laci_bench_plan *plan, lac_error *err);
/** Returns the engine to time; laci_bench_supported_dtype returns the type in which it computes
 * here, and warns if that is not the type asked for. */
const char *laci_bench_engine_name(const lac_bench_options *asked);
lac_dtype laci_bench_supported_dtype(const lac_bench_options *asked);
/** Logs the plan, and which nodes run by slow definitions. */
void laci_bench_log_plan(const laci_bench_plan *plan, const laci_graph *graph);
LAC_MUST_CHECK lac_status laci_bench_copy_plan_facts(laci_bench_result *result,
                                                     const laci_bench_plan *plan,
                                                     const laci_graph *graph, lac_error *err);
void laci_bench_plan_clear(laci_bench_plan *plan);
/** Does the first run, and a few more that are not timed. */
LAC_MUST_CHECK lac_status laci_bench_plan_warm_up(laci_bench_plan *plan,
                                                  const laci_bench_ports *ports, lac_error *err);
/** Does n timed runs. wakes: a run that is not timed comes first, to wake threads and fill caches.
 */
LAC_MUST_CHECK lac_status laci_bench_plan_run_timed(laci_bench_plan *plan,
                                                    const laci_bench_ports *ports, int n,
                                                    bool wakes, lac_error *err);
/** Returns the times of all timed runs. Sorts the samples. */
lac_bench_time laci_bench_plan_run_times(laci_bench_plan *plan);
/** Returns the step's fastest time over all timed runs, in seconds. */
double laci_bench_plan_fastest_step(const laci_bench_plan *plan, size_t step);

/* ---- layers.c ---- */

/** Makes the result's rows, one for each layer. own: the plan that the engine made; dense: the plan
 * without sparse kernels, whose times the rows also get; NULL: none. check: report that says which
 * layers hold the pattern; NULL: not known. */
LAC_MUST_CHECK lac_status laci_bench_make_layer_rows(laci_bench_result *result,
                                                     const laci_bench_plan *own,
                                                     const laci_bench_plan *dense,
                                                     const lac_report *check, lac_error *err);
/** Adds to each of the rows [n_layers] the dense plan's time for the same node; the time of nodes
 * without a row goes to dense_rest_seconds. */
void laci_bench_add_dense_times(lac_bench_result *result, lac_bench_layer *rows);

/* ---- report.c ---- */

/** Computes the sums over all layers, and over the layers of each operator, from the result's
 * layers. */
LAC_MUST_CHECK lac_status laci_bench_sum_layers(laci_bench_result *result, lac_error *err);

#endif

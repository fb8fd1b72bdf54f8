/* SPDX-License-Identifier: Apache-2.0
 * What the files of lac_bench share: the baselines (peak.c), the batch that a network is run
 * in (batch.c), and a plan with its times (plan.c). bench.c runs, layers.c makes
 * the rows, report.c adds up and writes. */
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
  lac_bench_result pub; /* first: a lac_bench_result * is a laci_bench_result * */
  laci_arena arena;
  lac_bench_layer *layers;
  lac_bench_kind *kinds;
} laci_bench_result;

/* ---- peak.c ---- */

enum { LACI_BENCH_READ = 96 << 20 }; /* bytes that are read: more than caches hold */

/** Reading memory on all threads of the pool: bytes a second, the best of a few passes. */
LAC_MUST_CHECK lac_status laci_bench_read(laci_pool *pool, double *bytes_per_second,
                                          lac_error *err);
/** One sample of the kernel on all threads of the pool, a few milliseconds: operations a second. */
double laci_bench_peak(laci_pool *pool, laci_peak_kernel kernel);

/* ---- batch.c ---- */

/** A network whose inputs have another batch than its file says, until that is taken back. */
typedef struct laci_rebatch {
  laci_graph *graph;
  int64_t from, to;         /* from 0: nothing is changed */
  const uint8_t **bytes;    /* [graph->n_stored] as they were; NULL: not changed */
  laci_input_shape *shapes; /* [n_shapes] for the plan */
  int n_shapes;
  laci_arena arena;
} laci_rebatch;

/** Do the options want another batch than the file fixes? Then its shapes must have been inferred.
 */
bool laci_rebatch_wanted(const laci_graph *graph, const lac_bench_options *options);
/** Resolves the shapes of all inputs: batch (0: the file's own, or 1) as first size, and what
 * options give for the rest. Where the file fixes another batch, the graph is changed: its inputs,
 * and those constants of Reshape that hold the batch become 0, "as it comes". laci_rebatch_undo in
 * any case. */
LAC_MUST_CHECK lac_status laci_rebatch_begin(laci_graph *graph, const lac_bench_options *options,
                                             laci_rebatch *batch, lac_error *err);
/** Did the new batch come through to the outputs of the planned network? */
LAC_MUST_CHECK lac_status laci_rebatch_check(const laci_rebatch *batch, const laci_engine *engine,
                                             lac_error *err);
/** Puts the graph back; not before the engines that were made of it are gone. */
void laci_rebatch_undo(laci_rebatch *batch);

/* ---- plan.c ---- */

/** Samples of one quantity, or of one row of quantities, a run. */
typedef struct laci_bench_samples {
  double *values; /* [n, width] */
  size_t n, capacity, width;
} laci_bench_samples;

typedef struct laci_bench_plan {
  laci_engine *engine;
  size_t n_steps;
  laci_bench_samples runs, steps;
  double plan_seconds, first_seconds, last_seconds; /* of planning, the first run, the last one */
} laci_bench_plan;

/** What runs read and write. */
typedef struct laci_bench_ports {
  void **inputs, **outputs;
  int n_inputs, n_outputs;
} laci_bench_ports;

/** Fails as laci_engine_create. laci_bench_plan_clear in any case. */
LAC_MUST_CHECK lac_status laci_bench_plan_create(const laci_graph *graph,
                                                 const lac_bench_options *asked,
                                                 const laci_engine_options *options,
                                                 laci_bench_plan *plan, lac_error *err);
/** The engine that is timed, and the type that it computes in here, with a warning where that is
 * not the one asked for. */
const char *laci_bench_engine(const lac_bench_options *asked);
lac_dtype laci_bench_dtype(const lac_bench_options *asked);
/** What runs exactly, to the log and to the result. Fails LAC_NO_MEMORY. */
void laci_bench_log(const laci_bench_plan *plan, const laci_graph *graph);
LAC_MUST_CHECK lac_status laci_bench_facts(laci_bench_result *result, const laci_bench_plan *plan,
                                           const laci_graph *graph, lac_error *err);
void laci_bench_plan_clear(laci_bench_plan *plan);
/** The first run, and a few more that do not count. */
LAC_MUST_CHECK lac_status laci_bench_plan_warm(laci_bench_plan *plan, const laci_bench_ports *ports,
                                               lac_error *err);
/** n runs that count; wakes: after one that does not. */
LAC_MUST_CHECK lac_status laci_bench_plan_run(laci_bench_plan *plan, const laci_bench_ports *ports,
                                              int n, bool wakes, lac_error *err);
/** Of all runs that counted. Their order is lost. */
lac_bench_time laci_bench_plan_time(laci_bench_plan *plan);
/** The step's fastest time. */
double laci_bench_plan_step(const laci_bench_plan *plan, size_t step);

/* ---- layers.c ---- */

/** The rows of both plans; dense NULL: there is only one. check: which layers hold the pattern;
 * NULL: it is not known. */
LAC_MUST_CHECK lac_status laci_bench_describe(laci_bench_result *result, const laci_bench_plan *own,
                                              const laci_bench_plan *dense, const lac_report *check,
                                              lac_error *err);
/** Gives each of the rows [n_layers] what the dense plan's rows take for the same node, and the
 * rest to dense_rest_seconds. */
void laci_bench_match(lac_bench_result *result, lac_bench_layer *rows);

/* ---- report.c ---- */

/** Fills kinds and the sums from the layers. */
LAC_MUST_CHECK lac_status laci_bench_sum(laci_bench_result *result, lac_error *err);

#endif

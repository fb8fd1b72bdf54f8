/* SPDX-License-Identifier: Apache-2.0
 * Benchmarks: how fast a network runs on this machine, and how long each step of the engine's plan
 * takes.
 *
 * Every run is timed as a whole and step by step, on random inputs. If the plan uses sparse
 * kernels, a second plan of dense kernels only is timed, alternately with it. The processor's peak
 * rates are those of multiply-adds in registers and of reading from memory. They are measured
 * between the runs, so that percentages of the peak are valid on a busy machine, too. The method is
 * in docs/reference/bench.md.
 *
 * Threads. No other thread may use the model during the call, which may change its batch size
 * temporarily. Any number of threads may read a result. */
#ifndef LACUNA_BENCH_H
#define LACUNA_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/engine.h"
#include "lacuna/run.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_context lac_context; /* lacuna/context.h */
typedef struct lac_model lac_model;     /* lacuna/model.h */

/** How a network is run, and what is measured of it. */
typedef struct lac_bench_options {
  size_t size;         /* sizeof of this struct, set by lac_bench_options_init */
  lac_run_options run; /* how the network is run, see run.h; with dense_only there is no second
                          plan; max_memory limits both plans together */
  int batch; /* leading size of all inputs, 1 .. 65536; 0 (default): the file's, or 1 if the file
                leaves it open */
  const lac_engine_shape *shapes; /* shapes of inputs with open sizes other than the batch size */
  int n_shapes;                   /* length of `shapes`; default 0 */
  int runs;            /* limit of the timed runs of each plan, 1 .. 10000, default 1000 */
  double seconds;      /* limit of the time of all runs together; at least three runs of each plan
                          are timed in any case; 0: no limit; default 5 */
  uint64_t seed;       /* seed of the random inputs, default 0 */
  int n, m;            /* the pattern for holds_pattern of the result's layers; default 2:4 */
  double load_seconds; /* how long the caller took to load the model; copied to the result; default
                          0 */
} lac_bench_options;

/** Seconds of the fastest run, and the median of all runs. */
typedef struct lac_bench_time {
  double min, median;
} lac_bench_time;

/** A step of the plan. Several steps may belong to one node. */
typedef struct lac_bench_layer {
  const char *name;   /* name of the node; "NODE (reorder)" for a change of layout before it */
  const char *op;     /* operator of the node, such as "Conv"; "reorder" for a change of layout */
  const char *what;   /* the operations that are fused into the step: "Conv + scale + function" */
  const char *kernel; /* oneDNN's name of the implementation, "own" for a kernel of the library,
                         "plain" or "exact" */
  bool plain;         /* the operator's slow definition runs, since there is no fast implementation
                         */
  bool exact;         /* the slow definition runs outside of the fast engine, which cannot run such
                         a node at all */
  bool holds_pattern; /* the node's weight holds the pattern n:m of the options */
  double dense_seconds; /* the node's seconds in the plan of dense kernels only: all of its steps
                           there, in the fastest run; 0: that plan has no step of this name */
  double seconds;       /* seconds of this step in the fastest run */
  int64_t flops;        /* multiplications and additions, zeros included; 0: the step is not a
                           matrix product */
  int64_t bytes_read, bytes_written; /* bytes of all operands and of all results, each counted once
                                        */
  bool sparse;                       /* the kernel skips zeros */
  const char *dense_kernel; /* kernel of the node in the dense plan; NULL: that plan has no such
                               step */
  int64_t micro_batches; /* number of equal parts of the batch that the step is run on one after the
                            other; seconds, flops and bytes are sums over all parts */
} lac_bench_layer;

/** Sums over all steps of one operator. */
typedef struct lac_bench_kind {
  const char *op;
  int n_steps, n_plain;
  double seconds;       /* sum of the seconds of the operator's steps */
  int64_t flops, bytes; /* sum of the multiplications and additions of the operator's steps, zeros
                           included; sum of the bytes that they read and write */
  double dense_seconds; /* sum over the steps of this operator in the dense plan */
} lac_bench_kind;

/** What lac_bench measured; lac_bench_result_destroy frees it. */
typedef struct lac_bench_result {
  const char *model;   /* path, or "(memory)" */
  int64_t batch;       /* the batch size that was timed */
  int64_t fixed_batch; /* the file's fixed batch size if another one was timed; else 0 */
  lac_dtype dtype;     /* type of the computation */
  int threads, runs;
  lac_bench_time dense; /* seconds of a run with the plan of dense kernels only */
  bool has_sparse; /* a second plan with sparse kernels was timed; false: no layer used a sparse
                      kernel, there is one plan, and `sparse` is zero */
  lac_bench_time sparse; /* seconds of a run with the plan with sparse kernels; 0: there is none */
  int pattern_n, pattern_m;
  int n_holding;           /* layers of the network that hold the pattern */
  double items_per_second; /* batch divided by the median time: of the plan with sparse kernels if
                              there is one */
  double load_seconds, plan_seconds, first_seconds; /* seconds that loading, planning and the first
                                                       run took */
  uint64_t weight_bytes, arena_bytes;               /* planned bytes of the weights, and of the
                                                       block that holds all values between steps */
  uint64_t planned_bytes;  /* weights, arena, inputs and outputs of all plans, which max_memory
                              limits */
  const char *peak_kernel; /* instructions with which peak_flops was measured: "avx512 f32" */
  double peak_flops;       /* peak operations per second on all threads, the best sample between the
                              runs */
  double read_bytes;       /* peak bytes per second read from memory, on all threads */
  double step_seconds;     /* sum of all layers' seconds */
  int n_layers, n_kinds;
  const lac_bench_layer *layers; /* steps in the order in which they run */
  const lac_bench_kind *kinds;   /* sums for each operator, the one with the longest time first */
  int n_sparse;                  /* number of layers that used sparse kernels */
  const char *engine;            /* the engine that was timed, see lac_engine_options */
  int n_nodes, n_exact;          /* number of nodes, and of those that run by their slow definition,
                                    see lac_engine_facts */
  const char *exact_reason;      /* see lac_engine_facts; NULL: there is no such node */
  bool costs_known; /* the rule that chose kernels has measured costs for this kind of processor;
                       false: it used those of the most similar kind */
  double exact_seconds; /* part of step_seconds that exact steps took */
  /* The fields below are of the dense plan if there are two plans, else 0. The fields of similar
   * names above are of the plan with sparse kernels. */
  double dense_plan_seconds, dense_step_seconds; /* seconds of planning, and of all steps of the
                                                    fastest run */
  double dense_rest_seconds; /* seconds of the dense plan's steps whose node is not among `layers`
                                */
  uint64_t dense_weight_bytes, dense_arena_bytes; /* planned bytes, as weight_bytes and
                                                     arena_bytes */
  int n_dense_layers;
  const lac_bench_layer *dense_layers; /* steps in the order in which they run */
} lac_bench_result;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_bench_options). */
LAC_API void lac_bench_options_init(lac_bench_options *options, size_t size);
LAC_DEFAULT(lac_bench_options)

/** Plans the model (twice if sparse kernels are used) and times the plans. The model is unchanged
 * afterwards. If its batch size is fixed and options->batch differs, the call adapts the sizes of
 * inputs and the constants of Reshape nodes, if shapes allow. Logs the plans at LAC_LOG_DEBUG, and
 * progress as "bench". max_memory limits both plans together. *result belongs to the caller; NULL
 * on failure. Fails LAC_BAD_ARGUMENT (an option outside its limits), LAC_INTERRUPTED, and as
 * lac_engine_create and lac_engine_run do. Fails LAC_BAD_SHAPE if an open size was not given, or if
 * the network cannot run with this batch size: the text names the node. */
LAC_API LAC_MUST_CHECK lac_status lac_bench(lac_model *model, const lac_bench_options *options,
                                            lac_bench_result **result, lac_error *err);

/** Measures what layers cost on this processor with each algorithm, which takes some minutes on one
 * thread. Store *text as a file: with the environment variable LAC_COSTS=FILE, plans are made with
 * these costs. Free it with lac_text_free. This is useful for a kind of processor that the library
 * does not know (costs_known is false). Logs at LAC_LOG_INFO, and progress as "costs", to the
 * context (NULL: the process's). Fails LAC_UNSUPPORTED (a processor that no code is generated for),
 * LAC_INTERRUPTED, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_bench_measure_costs(lac_context *context, char **text,
                                                          lac_error *err);

/** Frees the result and all that it points to. NULL is fine. */
LAC_API void lac_bench_result_destroy(lac_bench_result *result);

/** Sets *text to the result as JSON text (UTF-8, two-space indent, final newline), see
 * docs/reference/json.md. Free it with lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_bench_json(const lac_bench_result *result, char **text,
                                                 lac_error *err);

/** Draws the slowest layers as bars; the file's ending chooses the format: .svg .pdf .png .dot.
 * context: its interrupt ends the call (NULL: the process's). Fails as lac_plot does. */
LAC_API LAC_MUST_CHECK lac_status lac_bench_plot(const lac_bench_result *result, const char *path,
                                                 bool force, lac_context *context, lac_error *err);

/** Draws a roofline diagram as SVG: all matrix products, dense and sparse, against the peak rates
 * of multiply-adds and of memory. */
LAC_API LAC_MUST_CHECK lac_status lac_bench_roofline(const lac_bench_result *result,
                                                     const char *path, bool force, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 * How fast a network runs here, and where the time goes: one row per step of the fast engine's
 * plan.
 *
 * Every run is timed as a whole and step by step, on random inputs. Where sparse kernels have a
 * part in the plan, a second plan of dense kernels only is run as well, alternately with it. What
 * the processor can do at best (multiply-adds in registers, reading from memory) is measured
 * between the runs, so that shares of it hold on a busy machine too. docs/bench.md says how.
 *
 * Threads. The model belongs to the call, which puts another batch in place for its time; a result
 * may be read by any number of threads. */
#ifndef LACUNA_BENCH_H
#define LACUNA_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/engine.h"
#include "lacuna/model.h"
#include "lacuna/report.h" /* lac_text_free */
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a network is run, and what is measured of it. */
typedef struct lac_bench_options {
  int threads;     /* 0 (default): the cores this process may use */
  lac_dtype dtype; /* LAC_DTYPE_F32 (default) or LAC_DTYPE_BF16, see lac_engine_options */
  int batch; /* leading size of all inputs, 1 .. 65536; 0 (default): the file's own, 1 where it
                leaves that open */
  const lac_engine_shape *shapes; /* of inputs whose other sizes the file leaves open */
  int n_shapes;                   /* default 0 */
  int runs;            /* of each plan, at most so many are timed, 1 .. 10000, default 1000 */
  double seconds;      /* of all runs together; ends timing, but not before the third run of each
                          plan; 0: no limit; default 5 */
  uint64_t seed;       /* of the inputs, default 0 */
  int n, m;            /* which layers hold the pattern n:m; default 2:4 */
  double load_seconds; /* what loading the model took, to be reported; default 0 */
  uint64_t max_memory; /* bytes that the work may take, as planned; 0 (default): 80 % of the
                          machine's, or of its control group's */
  const char *engine;  /* see lac_engine_options; NULL (default): "auto" */
  bool dense_only;     /* no sparse kernels, and no second plan; default false */
  lac_tuning tuning;   /* see lac_engine_options; default LAC_TUNING_OFF */
  const char *timings; /* the same; default NULL */
} lac_bench_options;

/** Seconds of the fastest and of the middle run. */
typedef struct lac_bench_time {
  double min, median;
} lac_bench_time;

/** A step of the plan. Several steps may belong to one node. */
typedef struct lac_bench_layer {
  const char *name;   /* of the node; "NODE (reorder)" for a change of layout before it */
  const char *op;     /* "Conv", "reorder" */
  const char *what;   /* with all that is fused in: "Conv + scale + function" */
  const char *kernel; /* oneDNN's name of the implementation that won, "plain", "own" or "exact" */
  bool plain;         /* done by the operator's slow definition: there is no fast form */
  bool exact;         /* so, and outside of the fast engine's plan, which cannot hold it */
  bool holds_pattern; /* its weight is n:m */
  double dense_seconds; /* fastest of all runs, by dense kernels only: of all steps that the dense
                           plan has for the node; 0: it has none of that name */
  double seconds;       /* the same by the kernel that won */
  int64_t flops;        /* multiplications and additions of a dense product; 0: it is none */
  int64_t bytes_read, bytes_written; /* operands and results, each once */
  bool sparse;                       /* the kernel skips zeros */
  const char *dense_kernel; /* which the dense plan has for the node; NULL: it has no such step */
  int64_t micro_batches; /* in which one run does it, each of as many images of the batch; seconds,
                            flops and bytes are of all of them */
} lac_bench_layer;

/** All steps of one operator together. */
typedef struct lac_bench_kind {
  const char *op;
  int n_steps, n_plain;
  double seconds; /* sums over its layers */
  int64_t flops, bytes;
  double dense_seconds; /* over those of the dense plan */
} lac_bench_kind;

/** What lac_bench measured; lac_bench_result_destroy frees it. */
typedef struct lac_bench_result {
  const char *model;   /* path, or "(memory)" */
  int64_t batch;       /* as it was run */
  int64_t fixed_batch; /* the file's own, where another was put in its place; else 0 */
  lac_dtype dtype;     /* that was computed in */
  int threads, runs;
  lac_bench_time dense; /* of the plan that keeps to dense kernels */
  bool has_sparse; /* else no layer ran by a sparse kernel: there is one plan, and sparse is zero */
  lac_bench_time sparse;
  int pattern_n, pattern_m;
  int n_holding;           /* layers of the network that hold the pattern */
  double items_per_second; /* batch over the median of the plan that has sparse kernels, if any */
  double load_seconds, plan_seconds, first_seconds; /* up to the first answer */
  uint64_t weight_bytes, arena_bytes;               /* as planned */
  uint64_t planned_bytes;  /* with inputs and outputs: what is held to max_memory */
  const char *peak_kernel; /* what the peak was measured with: "avx512 f32" */
  double peak_flops;       /* a second, on all threads, the best sample between the runs */
  double read_bytes;       /* a second, from memory, on all threads */
  double step_seconds;     /* sum of all layers' seconds */
  int n_layers, n_kinds;
  const lac_bench_layer *layers; /* in the order in which they run */
  const lac_bench_kind *kinds;   /* the longest first */
  int n_sparse;                  /* layers that ran by sparse kernels */
  const char *engine;            /* that was timed, see lac_engine_options */
  int n_nodes, n_exact;          /* see lac_engine_facts */
  const char *exact_reason;      /* the same; NULL: there is none */
  bool costs_known; /* the rule that chose kernels has figures of this kind of processor, and not
                       the nearest one's alone */
  double exact_seconds; /* of step_seconds, those of exact steps */
  /* Of the dense plan where there are two (else 0), as above of the one that won. */
  double dense_plan_seconds, dense_step_seconds;
  double dense_rest_seconds; /* of its steps whose node has no row among `layers` */
  uint64_t dense_weight_bytes, dense_arena_bytes;
  int n_dense_layers;
  const lac_bench_layer *dense_layers; /* in the order in which they run */
} lac_bench_result;

/** Every field's default, which its line names. */
LAC_API lac_bench_options lac_bench_options_default(void);

/** Plans the model, twice where sparse kernels have a part in it, and times it. It is the same
 * afterwards. Where its batch is fixed and another is wanted, inputs and the constants of Reshape
 * are run with that, if shapes allow. Logs the plans at LAC_LOG_DEBUG and its progress as "bench".
 * Both plans are held to max_memory together. *result is the caller's, NULL on failure. Fails
 * LAC_BAD_ARGUMENT (an option outside its limits), LAC_BAD_SHAPE (an open size that was not given;
 * a batch that the network does not take, naming the node), LAC_INTERRUPTED, and as
 * lac_engine_create and lac_engine_run do. */
LAC_API LAC_MUST_CHECK lac_status lac_bench(lac_model *model, const lac_bench_options *options,
                                            lac_bench_result **result, lac_error *err);

/** Measures what layers cost on this processor by each algorithm, in some minutes on one thread, as
 * the text of a file by which plans are made where the environment says LAC_COSTS=FILE; free with
 * lac_text_free. A processor whose kind the library does not know (costs_known) gains by it. Logs
 * what it does at LAC_LOG_INFO, and its progress as "costs". Fails LAC_UNSUPPORTED (a processor
 * that no code is generated for), LAC_INTERRUPTED, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_bench_measure_costs(char **text, lac_error *err);

/** Frees the result and all that it points to. NULL is fine. */
LAC_API void lac_bench_result_destroy(lac_bench_result *result);

/** The result as JSON text (UTF-8, two-space indent, final newline), see docs/json.md; free with
 * lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_bench_json(const lac_bench_result *result, char **text,
                                                 lac_error *err);

/** Draws the slowest layers as bars; the format is the file's ending: .svg .pdf .png .dot. */
LAC_API LAC_MUST_CHECK lac_status lac_bench_plot(const lac_bench_result *result, const char *path,
                                                 bool force, lac_error *err);

/** Draws every product against the limits of multiply-adds and memory, dense and sparse; SVG. */
LAC_API LAC_MUST_CHECK lac_status lac_bench_roofline(const lac_bench_result *result,
                                                     const char *path, bool force, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif

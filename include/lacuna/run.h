/* SPDX-License-Identifier: Apache-2.0
 * How networks are run: options that sessions, engines, infer, eval, bench and training share. */
#ifndef LACUNA_RUN_H
#define LACUNA_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_context lac_context; /* lacuna/context.h */

/** How an engine chooses between dense and sparse kernels for a layer that both can compute. */
typedef enum lac_tuning {
  LAC_TUNING_OFF = 0,   /* it chooses by a fixed rule: the plan is the same every time */
  LAC_TUNING_QUICK = 1, /* it chooses by times of the layer on this machine, measured in a few runs
                           */
  LAC_TUNING_FULL = 2,  /* it chooses by the shortest times of the layer on this machine, measured
                           in many runs */
} lac_tuning;

/** A part of a run; see lac_parallel. */
typedef void lac_part(void *arg, int index);

/** A caller's function that has its own threads compute a part of a run. It calls part(arg, 0),
 * part(arg, 1) .. part(arg, n - 1), each once, and returns when all of them have returned. The
 * calls may be in any order, on any threads, at the same time or one after the other. The argument
 * `context` is parallel_context of a session's options. Runs of several threads may call it at the
 * same time. It must not call the session. */
typedef void lac_parallel(void *context, lac_part *part, void *arg, int n);

/** How networks are run: part of the options of every function that runs one. Its size is fixed;
 * later fields take reserved bytes, and zero means their default. */
typedef struct lac_run_options {
  int threads;     /* number of threads; 0 (default): the cores this process may use */
  lac_dtype dtype; /* LAC_DTYPE_F32 (default), or LAC_DTYPE_BF16: weights and values in bf16 inside;
                      inputs and outputs stay f32. On a processor without bf16 instructions f32 is
                      used, with a warning; results name the type that was used */
  uint64_t max_memory; /* limit in bytes of the planned memory; 0 (default): 80 % of the machine's
                          memory, or of its control group's limit */
  const char *engine;  /* "auto" uses the fast engine, and the operators' slow definitions for nodes
                          that only these can run (shapes that depend on data, bodies of If, Loop
                          and Scan); "cpu" is the fast engine alone and refuses such networks;
                          "plain" uses the slow definitions for all nodes, in double; a name of
                          lac_engine_load is an engine from a plug-in. NULL (default): "auto"; for
                          training "cpu" */
  const char *timings; /* file in which tuning stores the times measured on this machine: layers
                          found there are not measured again. If it cannot be written, there is only
                          a warning. NULL (default): no file */
  lac_tuning tuning;   /* how kernels are chosen; default LAC_TUNING_OFF */
  bool dense_only;     /* use no sparse kernels: zeros are multiplied, too; default false. The
                          environment variable LAC_SPARSE=0 sets this for the whole process */
  bool careful;        /* compute so that NaN and infinity appear wherever operators define them: no
                          kernel skips a product by zero, and no step is fused into another; slow.
                          false (default): a run whose numbers may not all be finite is repeated
                          with true; a training fails then */
  unsigned char reserved_flags[2]; /* must be 0 */
  lac_context *context; /* log, progress and interrupt of the call, and of what it makes (an engine,
                           a session); see context.h. NULL (default): the process's */
  unsigned char reserved[72]; /* must be 0 */
} lac_run_options;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 * Running a network on arrays in files: NumPy's .npy in, a folder of .npy out.
 *
 * For arrays in memory see engine.h (fast) and run.h (plain). docs/data.md says which .npy files
 * are read and how they are written.
 *
 * Threads. Several threads may run one model at the same time (model.h), into folders of their own.
 */
#ifndef LACUNA_INFER_H
#define LACUNA_INFER_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/engine.h"
#include "lacuna/model.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An input of the network and the file that holds its array. The array's shape gives the sizes
 * that the network leaves open; its element type may be any whose elements the network's own type
 * holds, every one. Floats are rounded to a narrower type. */
typedef struct lac_infer_input {
  const char *name;
  const char *path;
} lac_infer_input;

/** How a network is run on arrays from files. */
typedef struct lac_infer_options {
  bool plain;      /* the plain engine, slow and in double; default false: "auto" */
  int threads;     /* 0 (default): the cores this process may use */
  lac_dtype dtype; /* of the fast engine, see lac_engine_options; default LAC_DTYPE_F32 */
  const lac_engine_shape *shapes; /* an array is taken in this shape in the place of its own, which
                                     must have as many elements; -1: a size as the file has it */
  int n_shapes;                   /* default 0 */
  bool force;                     /* replace files that exist; inputs are never replaced */
  bool f32; /* outputs of every float type are written as f32; default false: as their own type */
  uint64_t max_memory; /* bytes that the work may take, as planned; 0 (default): 80 % of the
                          machine's, or of its control group's */
  const char *engine;  /* see lac_engine_options; "plain" is the same as `plain`. NULL (default): as
                          `plain` says */
  bool dense_only;     /* see lac_engine_options; default false */
  lac_tuning tuning;   /* see lac_engine_options; default LAC_TUNING_OFF */
  const char *timings; /* the same; default NULL */
} lac_infer_options;

/** An output as it was written. */
typedef struct lac_infer_output {
  const char *name;
  const char *path; /* FOLDER/NAME.npy */
  lac_dtype dtype;  /* in the file: the network's own type; bf16 as ml_dtypes has NumPy write it,
                       two bytes of type '<V2' */
  int rank;
  int64_t shape[8];
} lac_infer_output;

/** What lac_infer made; lac_infer_result_destroy frees it. */
typedef struct lac_infer_result {
  int n_outputs;
  const lac_infer_output *outputs; /* in the network's order */
  lac_dtype dtype;                 /* that was computed in; of the plain engine f64 */
  const char *engine;              /* that ran, see lac_engine_options */
  int n_nodes, n_exact;            /* see lac_engine_facts */
  const char *exact_reason;        /* the same; NULL: there is none */
  double seconds;                  /* of the run alone, without reading, planning and writing */
  int64_t batch;                   /* the leading size of the first input; 1 where it has none */
  int n_sparse;                    /* steps of the plan that ran by sparse kernels */
} lac_infer_result;

/** Every field's default, which its line names. */
LAC_API lac_infer_options lac_infer_options_default(void);

/** Runs the model once and writes each output to folder, which is made if need be. A file has the
 * output's name with every byte but letters, digits, "-", "_" and "." replaced by "_" (a leading
 * "." too); two outputs that would get the same name are refused, LAC_EXISTS, before the run. All
 * files are written or none. *result (it may be NULL: not wanted) is the caller's. Logs the plan
 * at LAC_LOG_DEBUG. Fails LAC_NOT_FOUND (an input that is unknown or missing), LAC_BAD_SHAPE,
 * LAC_BAD_VALUE (an element that the input's type does not hold), LAC_BAD_FILE, LAC_EXISTS,
 * LAC_IO, and as lac_engine_create and lac_engine_run do. */
LAC_API LAC_MUST_CHECK lac_status lac_infer(const lac_model *model, const lac_infer_input *inputs,
                                            int n_inputs, const char *folder,
                                            const lac_infer_options *options,
                                            lac_infer_result **result, lac_error *err);

/** Frees the result and all that it points to. NULL is fine. */
LAC_API void lac_infer_result_destroy(lac_infer_result *result);

#ifdef __cplusplus
}
#endif
#endif

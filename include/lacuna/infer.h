/* SPDX-License-Identifier: Apache-2.0
 * Running a network on arrays in NumPy's .npy files; outputs are written as .npy files to a folder.
 *
 * For arrays in memory see engine.h (fast) and run.h (plain). docs/reference/data.md says which
 * .npy files are read and how they are written.
 *
 * Threads. Several threads may run one model at the same time (model.h) if each writes to a
 * different folder. */
#ifndef LACUNA_INFER_H
#define LACUNA_INFER_H

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

typedef struct lac_model lac_model; /* lacuna/model.h */

/** An input of the network and the file that holds its array. The array's shape determines the
 * sizes that the network leaves open. The array may have any element type, if the type of the
 * network's input can represent every element; floats are rounded if it is narrower. */
typedef struct lac_infer_input {
  const char *name;
  const char *path;
} lac_infer_input;

/** How a network is run on arrays from files. */
typedef struct lac_infer_options {
  size_t size;                    /* sizeof of this struct, set by lac_infer_options_init */
  lac_run_options run;            /* how the network is run, see run.h */
  const lac_engine_shape *shapes; /* shapes for inputs, used instead of the arrays' shapes; the
                                     number of elements must be the same; -1: the size in the file
                                     */
  int n_shapes;                   /* length of `shapes`; default 0 */
  bool force;                     /* replace files that exist; inputs are never replaced */
  bool f32; /* write outputs of all float types as f32; default false: in the network's types */
} lac_infer_options;

/** An output that was written to a file. */
typedef struct lac_infer_output {
  const char *name;
  const char *path; /* path of the file: FOLDER/NAME.npy */
  lac_dtype dtype;  /* type in the file: the network's. bf16 is stored as by the Python package
                       ml_dtypes: NumPy type '<V2', two bytes */
  int rank;
  int64_t shape[8];
} lac_infer_output;

/** What lac_infer made; lac_infer_result_destroy frees it. */
typedef struct lac_infer_result {
  int n_outputs;
  const lac_infer_output *outputs; /* [n_outputs] outputs in the network's order */
  lac_dtype dtype;                 /* type of the computation; f64 for the plain engine */
  const char *engine;              /* the engine that ran, see lac_engine_options */
  int n_nodes, n_exact;            /* see lac_engine_facts */
  const char *exact_reason;        /* see lac_engine_facts; NULL: there is no such node */
  double seconds;                  /* seconds of the run alone, without reading, planning and
                                      writing */
  int64_t batch;                   /* the leading size of the first input; 1 where it has none */
  int n_sparse;                    /* number of steps of the plan that used sparse kernels */
} lac_infer_result;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_infer_options). */
LAC_API void lac_infer_options_init(lac_infer_options *options, size_t size);
LAC_DEFAULT(lac_infer_options)

/** Runs the model once and writes each output to folder, which is created if missing. A file has
 * the output's name, in which every byte except letters, digits, "-", "_" and "." is replaced by
 * "_" (a leading "." too). Two outputs that would get the same file name fail LAC_EXISTS before the
 * run. All files are written or none. result may be NULL; *result belongs to the caller. Logs the
 * plan at LAC_LOG_DEBUG. Fails LAC_NOT_FOUND (an input that is unknown or missing) and
 * LAC_BAD_VALUE (an element that the input's type cannot represent). Fails LAC_BAD_SHAPE,
 * LAC_BAD_FILE, LAC_EXISTS, LAC_IO, and as lac_engine_create and lac_engine_run do. */
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

/* SPDX-License-Identifier: Apache-2.0
 * Running a network on float32 inputs with the plain engine, which is slow (it accumulates in
 * double) and defines the correct results. Use it to compare networks, not for production.
 *
 * Threads. Several threads may run one model at the same time (model.h), and any number of threads
 * may read a result. */
#ifndef LACUNA_RUN_H
#define LACUNA_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_model lac_model; /* lacuna/model.h */

/** How an engine chooses between dense and sparse kernels for a layer that both can compute. */
typedef enum lac_tuning {
  LAC_TUNING_OFF = 0,   /* by a fixed rule: the plan is the same every time */
  LAC_TUNING_QUICK = 1, /* by the layers' times on this machine, measured in a few runs */
  LAC_TUNING_FULL = 2,  /* by the layers' least times on this machine in many runs */
} lac_tuning;

/** How networks are run: part of the options of every function that runs one. Its size is fixed;
 * later fields take reserved bytes, and zero means their default. */
typedef struct lac_run_options {
  int threads;     /* 0 (default): the cores this process may use */
  lac_dtype dtype; /* LAC_DTYPE_F32 (default), or LAC_DTYPE_BF16: weights and values in bf16 inside;
                      inputs and outputs stay f32. On a processor without bf16 instructions f32 is
                      used, with a warning; results name the type that was used */
  uint64_t max_memory; /* limit in bytes of the planned memory; 0 (default): 80 % of the machine's
                          memory, or of its control group's limit */
  const char *engine;  /* "auto" uses the fast engine, and the operators' slow definitions for nodes
                          that only these can run (shapes that depend on data, bodies of If, Loop
                          and Scan); "cpu" is the fast engine alone and refuses such networks;
                          "plain" uses the slow definitions for all nodes, in double. NULL
                          (default): "auto"; for training "cpu" */
  const char *timings; /* file in which tuning stores the times measured on this machine: layers
                          found there are not measured again. If it cannot be written, there is only
                          a warning. NULL (default): no file */
  lac_tuning tuning;   /* default LAC_TUNING_OFF */
  bool dense_only;     /* use no sparse kernels: zeros are multiplied, too; default false. The
                          environment variable LAC_SPARSE=0 sets this for the whole process */
  unsigned char reserved[83]; /* 0 */
} lac_run_options;

/** An input or an output. The values of an input are the caller's memory; those of an output belong
 * to the lac_run_result. */
typedef struct lac_run_tensor {
  const char *name; /* of the network's input or output; NULL: the network's input of the same index
                       */
  int rank;         /* 0 .. 8 */
  int64_t shape[8];
  const float *values; /* row-major, product of shape elements */
} lac_run_tensor;

/** What lac_run computed; lac_run_result_destroy frees it. */
typedef struct lac_run_result {
  int n_outputs;
  const lac_run_tensor *outputs; /* in the network's order; integers and f64 are converted to f32 */
} lac_run_result;

/** Runs the model on n_inputs inputs: every input without a stored value must be given. Inputs are
 * converted to the element type that the network declares. threads 0: the cores this process may
 * use. *result is NULL on failure. Fails LAC_NOT_FOUND (no input of that name, or one is missing),
 * LAC_BAD_SHAPE, LAC_UNSUPPORTED (an operator that the plain engine cannot run), LAC_NO_MEMORY,
 * LAC_MEMORY_LIMIT (the values together need more than 80 % of the machine's memory),
 * LAC_INTERRUPTED. */
LAC_API LAC_MUST_CHECK lac_status lac_run(const lac_model *model, const lac_run_tensor *inputs,
                                          int n_inputs, int threads, lac_run_result **result,
                                          lac_error *err);

/** Frees the result and all that it points to. NULL is fine. */
LAC_API void lac_run_result_destroy(lac_run_result *result);

#ifdef __cplusplus
}
#endif
#endif

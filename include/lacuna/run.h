/* SPDX-License-Identifier: Apache-2.0
 * Running a network on float32 inputs with the plain engine, which is slow (it accumulates in
 * double) and defines the correct results. Use it to compare networks, not for production.
 *
 * Threads. Several threads may run one model at the same time (model.h), and any number of threads
 * may read a result. */
#ifndef LACUNA_RUN_H
#define LACUNA_RUN_H

#include <stdint.h>

#include "lacuna/model.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

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

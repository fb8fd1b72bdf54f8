/* SPDX-License-Identifier: Apache-2.0
 * The threads of a session of ONNX Runtime: counts them, and runs loops on them. */
#ifndef LAC_ORT_THREADS_H
#define LAC_ORT_THREADS_H

#include "lacuna/run.h"
#include "table.h"

/** Counts the threads that compute a loop of this kernel: those of the session's pool, and the
 * caller. ONNX Runtime has no function for that. Takes some milliseconds at most. */
int laci_ort_count_threads(const laci_ort *ort, ort_kernel *kernel);
/** Returns the number of cores that this process may use. */
int laci_ort_count_cores(void);

/** Makes laci_ort_run_parallel of this thread compute on the threads of `kernel`; NULL: on this
 * thread alone. */
void laci_ort_use_kernel_threads(const laci_ort *ort, ort_kernel *kernel);
/** Runs parts of a loop on the threads that laci_ort_use_kernel_threads chose. It is the function
 * for lac_session_options.parallel. */
lac_parallel laci_ort_run_parallel;

#endif

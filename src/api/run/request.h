/* SPDX-License-Identifier: Apache-2.0
 * Converts a caller's lac_engine_options and model to the options of engine/engine.h. */
#ifndef LACI_API_RUN_REQUEST_H
#define LACI_API_RUN_REQUEST_H

#include "engine/engine.h"
#include "lacuna/engine.h"

/** Converts a caller's run options to engine options. This is the only place where each of them is
 * passed on. dtype: the type of the computation. The caller of this function adds memory limit,
 * tuning and threads. */
laci_engine_options laci_engine_options_of_run(const lac_run_options *run, lac_dtype dtype);

typedef struct laci_request {
  lac_model *view; /* view of the model, whose graph the engine borrows */
  laci_engine_options options;
  laci_input_shape *shapes;
  laci_engine_weight *weights;
  lac_dtype dtype; /* type of the computation */
} laci_request;

/** Fills the request, except for memory limit, tuning and the caller's threads. It must not be
 * cleared before the engine is destroyed. Logs a warning if bf16 is wanted and the processor has
 * none. Clear the request in any case. */
LAC_MUST_CHECK lac_status laci_request_init(laci_request *request, const lac_model *model,
                                            const lac_engine_options *options, lac_error *err);
void laci_request_clear(laci_request *request);

#endif

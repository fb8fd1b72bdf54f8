/* SPDX-License-Identifier: Apache-2.0
 * What a caller's lac_engine_options and model ask of an engine: the options of engine/engine.h. */
#ifndef LACI_API_RUN_REQUEST_H
#define LACI_API_RUN_REQUEST_H

#include "engine/engine.h"
#include "lacuna/engine.h"

/** Passes on what engines read of a caller's options: the one place where each of them becomes one
 * of engine/engine.h. dtype: the type of the computation. Memory, tuning and the caller's threads
 * are added by whoever plans. */
laci_engine_options laci_engine_options_of(const lac_run_options *run, lac_dtype dtype);

typedef struct laci_request {
  lac_model *view; /* has the graph of the engine, which borrows it */
  laci_engine_options options;
  laci_input_shape *shapes;
  laci_engine_weight *weights;
  lac_dtype dtype; /* type of the computation */
} laci_request;

/** Fills the request, but for memory, threads of the caller and tuning. It must not be
 * cleared before the engine is destroyed. Logs a warning if there is no bf16 here. Clear it in any
 * case. */
LAC_MUST_CHECK lac_status laci_request_init(laci_request *request, const lac_model *model,
                                            const lac_engine_options *options, lac_error *err);
void laci_request_clear(laci_request *request);

#endif

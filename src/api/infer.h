/* SPDX-License-Identifier: Apache-2.0
 * What infer and eval have in common: logging the plan and the memory. */
#ifndef LACI_API_INFER_H
#define LACI_API_INFER_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct lac_engine lac_engine;
typedef struct lac_engine_options lac_engine_options;
typedef struct lac_model lac_model;
typedef struct laci_budget laci_budget;

/** lac_engine_create beside what the budget holds already; what the engine needs is added.
 * options->max_memory does not count. */
LAC_MUST_CHECK lac_status laci_model_engine(const lac_model *model,
                                            const lac_engine_options *options, laci_budget *budget,
                                            lac_engine **engine, lac_error *err);

/** laci_engine_sparse_count of it. */
int laci_model_engine_sparse(const lac_engine *engine);

/** The plan's lines, the last with the memory that it needs, to the log at LAC_LOG_DEBUG. */
void laci_log_plan(const lac_engine *engine);
/** What was planned, with what the caller holds for its inputs and outputs, and what the process
 * had at most, to the log at LAC_LOG_DEBUG. */
void laci_log_memory(const lac_engine *engine, size_t held_bytes);

#endif

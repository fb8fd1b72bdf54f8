/* SPDX-License-Identifier: Apache-2.0
 * What infer and eval have in common: logging the plan and the memory. */
#ifndef LACI_API_RUN_INFER_H
#define LACI_API_RUN_INFER_H

#include <stddef.h>

#include "lacuna/dtype.h"
#include "lacuna/status.h"

typedef struct lac_engine lac_engine;
typedef struct lac_engine_options lac_engine_options;
typedef struct lac_model lac_model;
typedef struct laci_budget laci_budget;
typedef struct laci_buf laci_buf;
typedef struct laci_engine_exact laci_engine_exact;

/** lac_engine_create under a budget that may hold something already. What the engine needs is added
 * to it; options->max_memory does not count. */
LAC_MUST_CHECK lac_status laci_model_engine(const lac_model *model,
                                            const lac_engine_options *options, laci_budget *budget,
                                            lac_engine **engine, lac_error *err);

/** The engine of that name; NULL: the automatic one. */
const char *laci_engine_wanted(const char *name);
/** The type that the engine (NULL: the fast one) computes in where `wanted` is asked for: f32 in
 * place of bf16 where this processor has no instructions for that. */
lac_dtype laci_dtype_here(const char *engine, lac_dtype wanted);
/** The same with a warning, once before the work begins. */
lac_dtype laci_dtype_that_runs(const char *engine, lac_dtype wanted);

/** laci_engine_result of it. */
const laci_buf *laci_model_engine_result(const lac_engine *engine, int output);
/** Which nodes run exactly and why, to the log at LAC_LOG_INFO, where any do. */
void laci_log_exact(const laci_engine_exact *exact, int n_nodes);
void laci_log_parts(const lac_engine *engine);

/** laci_engine_sparse_count of it. */
int laci_model_engine_sparse(const lac_engine *engine);

/** The plan's lines, the last with the memory that it needs, to the log at LAC_LOG_DEBUG. */
void laci_log_plan(const lac_engine *engine);
/** What was planned, with what the caller holds for its inputs and outputs, and what the process
 * had at most, to the log at LAC_LOG_DEBUG. */
void laci_log_memory(const lac_engine *engine, size_t held_bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Functions shared by infer and eval: making an engine, and logging its plan and memory. */
#ifndef LACI_API_RUN_INFER_H
#define LACI_API_RUN_INFER_H

#include <stddef.h>

#include "lacuna/dtype.h"
#include "lacuna/status.h"

typedef struct lac_engine lac_engine;
typedef struct lac_engine_facts lac_engine_facts;
typedef struct lac_engine_options lac_engine_options;
typedef struct lac_model lac_model;
typedef struct lac_plan_answer lac_plan_answer;
typedef struct lac_plan_facts lac_plan_facts;
typedef struct lac_plan_node lac_plan_node;
typedef struct laci_budget laci_budget;
typedef struct laci_buf laci_buf;
typedef struct laci_engine laci_engine;
typedef struct laci_engine_exact laci_engine_exact;
typedef struct laci_engine_watch laci_engine_watch;
typedef struct laci_parallel laci_parallel;

/** Does lac_engine_create within a budget that may be partly used. Adds the engine's memory to the
 * budget; ignores options->max_memory. parallel: see laci_engine_options; NULL: none. */
LAC_MUST_CHECK lac_status laci_model_create_engine(const lac_model *model,
                                                   const lac_engine_options *options,
                                                   const laci_parallel *parallel,
                                                   laci_budget *budget, lac_engine **engine,
                                                   lac_error *err);

/** Checks type, threads and shapes of the options. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_check_engine_options(const lac_engine_options *options,
                                                    lac_error *err);

/** Returns the name of the engine to use; name NULL: that of the default engine. */
const char *laci_engine_name_or_default(const char *name);
/** Returns the type in which the engine (NULL: the fast one) computes if `wanted` is requested: f32
 * instead of bf16 if this processor has no bf16 instructions. */
lac_dtype laci_dtype_find_supported(const char *engine, lac_dtype wanted);
/** Returns the type of laci_dtype_find_supported, and logs a warning if it is not the wanted one.
 * Call it once, before the run. */
lac_dtype laci_dtype_find_supported_or_warn(const char *engine, lac_dtype wanted);

/** Returns laci_engine_result of the laci_engine that the public engine contains. */
const laci_buf *laci_model_engine_result(const lac_engine *engine, int output);
/** Runs as lac_engine_run does. watch: gets times, and is called after each step; NULL: not wanted.
 */
LAC_MUST_CHECK lac_status laci_model_engine_run(lac_engine *engine, const void *const *inputs,
                                                void *const *outputs,
                                                const laci_engine_watch *watch, lac_error *err);
/** Returns the laci_engine that the public engine contains. */
const laci_engine *laci_model_engine_inner(const lac_engine *engine);
/** Logs at LAC_LOG_INFO which nodes run by slow definitions and why, if any do. */
void laci_log_exact_nodes(const laci_engine_exact *exact, int n_nodes);
void laci_log_exact_part(const lac_engine *engine);

/** Returns laci_engine_sparse_step_count of the laci_engine that the public engine contains. */
int laci_model_engine_n_sparse(const lac_engine *engine);
/** Returns the facts that lac_engine_about fills in. */
lac_engine_facts laci_model_engine_facts(const lac_engine *engine);

/** Returns the facts of an answer, and sets *nodes to its nodes. Both point into the answer. */
const lac_plan_facts *laci_plan_answer_facts(const lac_plan_answer *answer,
                                             const lac_plan_node **nodes);

/** Logs the plan's lines at LAC_LOG_DEBUG; the last line has the plan's memory. */
void laci_log_plan(const lac_engine *engine);
/** Logs at LAC_LOG_DEBUG the planned memory, including held_bytes for the caller's inputs and
 * outputs, and the peak memory of the process. */
void laci_log_memory(const lac_engine *engine, size_t held_bytes);

#endif

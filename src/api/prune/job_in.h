/* SPDX-License-Identifier: Apache-2.0
 * The first steps of lac_prune, lac_permute, lac_check and lac_inspect. */
#ifndef LACI_API_PRUNE_JOB_IN_H
#define LACI_API_PRUNE_JOB_IN_H

#include "base/budget.h"

typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_analysis laci_analysis;
typedef struct laci_graph laci_graph;
typedef struct laci_pool laci_pool;
typedef struct laci_target_choice laci_target_choice;

/** A model with inferred shapes, a thread pool, and the analysis. */
typedef struct laci_job {
  laci_budget budget; /* the memory limit, and the memory that the model takes */
  bool streamed; /* the model's large tensors are in its files: read them with laci_stored_acquire
                         (graph/graph.h) */
  const char *engine; /* name of the engine that runs networks on samples; NULL: the default
                         engine */
  laci_pool *pool;
  laci_target_choice *targets; /* [options->n_targets] the targets of the options; NULL: there are
                                  none */
  laci_analysis *analysis;
} laci_job;

/** Finds the options' targets by name: *choices has n_targets elements, NULL if there are no
 * targets. The caller frees it with laci_free, also after a failure. Fails LAC_BAD_ARGUMENT,
 * LAC_NO_MEMORY. (target.c) */
LAC_MUST_CHECK lac_status laci_targets_find(const lac_options *options,
                                            laci_target_choice **choices, lac_error *err);

/** Infers shapes with the options' input shapes and assumptions for the first time, and writes them
 * into the graph. */
LAC_MUST_CHECK lac_status laci_job_infer_graph(laci_graph *graph, const lac_options *options,
                                               lac_error *err);
/** Opens a job. Any thread may call it: if several do with one model, the first one infers shapes
 * and the others wait. */
LAC_MUST_CHECK lac_status laci_job_open(const lac_model *model, const lac_options *options,
                                        laci_job *job, lac_error *err);
/** Loads all stored tensors into memory, for work that reads them in place. Fails LAC_MEMORY_LIMIT.
 */
LAC_MUST_CHECK lac_status laci_job_materialise(laci_job *job, const lac_model *model,
                                               lac_error *err);
void laci_job_close(laci_job *job);

/** Fails LAC_UNSUPPORTED if an engine from a plug-in is named, but the call would run no network
 * with it. `samples`: the call runs the network on samples. Verification never uses an engine from
 * a plug-in. */
LAC_MUST_CHECK lac_status laci_check_engine_of_plugin(const lac_options *options, bool samples,
                                                      lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What every verb starts with. */
#ifndef LACI_API_PRUNE_JOB_IN_H
#define LACI_API_PRUNE_JOB_IN_H

#include "base/budget.h"

typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_analysis laci_analysis;
typedef struct laci_pool laci_pool;
typedef struct laci_target_choice laci_target_choice;

/** Shapes inferred, a pool, the analysis. */
typedef struct laci_job {
  laci_budget budget; /* the limit, and what the model holds */
  bool streamed;      /* the model's large tensors are in its files: hold them (graph/graph.h) */
  laci_pool *pool;
  laci_target_choice *targets; /* [options->n_targets]; NULL: none */
  laci_analysis *analysis;
} laci_job;

/** The targets of the options, found by name: [n_targets] of laci_alloc, NULL where there are none.
 * The caller's to free, also after a failure: LAC_BAD_ARGUMENT, LAC_NO_MEMORY. (target.c) */
LAC_MUST_CHECK lac_status laci_targets_find(const lac_options *options,
                                            laci_target_choice **choices, lac_error *err);

/** Any thread: the first of several on one model infers, the others wait for it. */
LAC_MUST_CHECK lac_status laci_job_open(const lac_model *model, const lac_options *options,
                                        laci_job *job, lac_error *err);
/** For work that wants all stored bytes where they are: brings them into memory. Fails
 * LAC_MEMORY_LIMIT. */
LAC_MUST_CHECK lac_status laci_job_materialise(laci_job *job, const lac_model *model,
                                               lac_error *err);
void laci_job_close(laci_job *job);

#endif

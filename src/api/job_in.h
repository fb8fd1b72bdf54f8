/* SPDX-License-Identifier: Apache-2.0
 * What every verb starts with. */
#ifndef LACI_API_JOB_IN_H
#define LACI_API_JOB_IN_H

#include "base/budget.h"

typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_analysis laci_analysis;
typedef struct laci_pool laci_pool;

/** Stored bytes in memory, shapes inferred, a pool, the analysis. */
typedef struct laci_job {
  laci_budget budget; /* the limit, and what the model holds */
  laci_pool *pool;
  laci_analysis *analysis;
} laci_job;

/** Any thread: the first of several on one model infers, the others wait for it. */
LAC_MUST_CHECK lac_status laci_job_open(const lac_model *model, const lac_options *options,
                                        laci_job *job, lac_error *err);
void laci_job_close(laci_job *job);

#endif

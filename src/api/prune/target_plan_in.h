/* SPDX-License-Identifier: Apache-2.0
 * What the plan of the library's own engine does with layers. */
#ifndef LACI_API_PRUNE_TARGET_PLAN_IN_H
#define LACI_API_PRUNE_TARGET_PLAN_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_options lac_options;
typedef struct laci_analysis laci_analysis;
typedef struct laci_arena laci_arena;
typedef struct laci_job laci_job;
typedef struct laci_target_choice laci_target_choice;

/** Is it the target whose answers are those of a plan, "lacuna-cpu"? */
bool laci_target_is_planned(const laci_target_choice *choice);

/** A network that is planned. */
typedef struct laci_target_plan_source {
  const laci_analysis *analysis;
  const uint8_t *const *weights; /* [n_stored] bytes that replace the graph's; NULL, or a NULL
                                    entry: the graph's own */
  int threads;
  bool bf16;
} laci_target_plan_source;

/** Asks for the plan: (*reasons)[layer] is NULL where it skips the weight's zeros, else says why it
 * does not; in the arena. Fails LAC_NO_MEMORY, and as laci_engine_ask. */
LAC_MUST_CHECK lac_status laci_target_plan_ask(const laci_target_plan_source *from,
                                               laci_arena *arena, const char ***reasons,
                                               lac_error *err);
/** Leaves dense, for such a target, the eligible layers of the job's analysis that a plan of the
 * pruned network would run as dense. A model whose tensors are not in memory stays as it is. */
LAC_MUST_CHECK lac_status laci_target_plan_limit(const laci_job *job, const lac_options *options,
                                                 lac_error *err);

#endif

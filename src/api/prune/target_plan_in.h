/* SPDX-License-Identifier: Apache-2.0
 * What the plan of the library's own engine does with layers. */
#ifndef LACI_API_PRUNE_TARGET_PLAN_IN_H
#define LACI_API_PRUNE_TARGET_PLAN_IN_H

#include <stdbool.h>

typedef struct lac_options lac_options;
typedef struct laci_job laci_job;
typedef struct laci_target_choice laci_target_choice;

/** Is the target "lacuna-cpu", whose answers come from a plan of the library's own engine? */
bool laci_target_is_own_engine(const laci_target_choice *choice);
/** Is "lacuna-cpu" one of the options' targets? */
bool laci_targets_include_own_engine(const laci_job *job, const lac_options *options);

#endif

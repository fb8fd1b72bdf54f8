/* SPDX-License-Identifier: Apache-2.0
 * What the plan of the library's own engine does with layers. */
#ifndef LACI_API_PRUNE_TARGET_PLAN_IN_H
#define LACI_API_PRUNE_TARGET_PLAN_IN_H

#include <stdbool.h>

typedef struct lac_options lac_options;
typedef struct laci_job laci_job;
typedef struct laci_target_choice laci_target_choice;

/** Is it the target whose answers are those of a plan, "lacuna-cpu"? */
bool laci_target_is_planned(const laci_target_choice *choice);
/** Is it one of the options' targets? */
bool laci_target_any_is_planned(const laci_job *job, const lac_options *options);

#endif

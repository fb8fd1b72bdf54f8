/* SPDX-License-Identifier: Apache-2.0
 * Where a network is cut into stages, by a rule: the same cut every time, on any processor. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_CUT_H
#define LACI_ENGINE_CPU_MICROBATCH_CUT_H

#include "engine/cpu/plan/plan.h"

typedef struct laci_stage_cut {
  int value;           /* the last one of the part that is run for a micro-batch at a time */
  int64_t micro_batch; /* images; it divides the batch */
} laci_stage_cut;

/** What the rule takes a processor to be. */
typedef struct laci_stage_rule {
  double flops, memory, cache; /* a second: operations, bytes from memory, bytes from the caches */
  double step_seconds;         /* that a step takes, whatever it does */
  double cache_bytes;          /* what a layer may read and write to be in the caches */
  double least_gain;           /* share of a run that has to be gained */
} laci_stage_rule;
extern const laci_stage_rule laci_stage_usual;

/** Finds the cut by which most time is gained. False: none gains enough, or the graph's layers
 * cannot be run image by image. Types and constants of the plan are known (laci_plan_infer). */
bool laci_stage_find_cut(laci_cpu_plan *plan, const laci_stage_rule *rule, laci_stage_cut *cut);

#endif

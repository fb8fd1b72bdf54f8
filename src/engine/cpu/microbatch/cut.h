/* SPDX-License-Identifier: Apache-2.0
 * Where a network is cut into stages: by a fixed rule, which gives the same cut every time on any
 * processor. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_CUT_H
#define LACI_ENGINE_CPU_MICROBATCH_CUT_H

#include "engine/cpu/plan/plan.h"

typedef struct laci_stage_cut {
  int value;           /* the result of the part that runs for a micro-batch at a time */
  int64_t micro_batch; /* images; it divides the batch */
} laci_stage_cut;

/** The processor that the rule assumes. */
typedef struct laci_stage_rule {
  double flops, memory, cache; /* per second: operations, bytes to or from memory, bytes to or from
                                  the caches */
  double step_seconds;         /* fixed time of each step */
  double cache_bytes; /* a layer that reads and writes at most so many bytes stays in the caches */
  double least_gain;  /* a cut must save this share of a run */
} laci_stage_rule;
extern const laci_stage_rule laci_stage_usual;

/** Finds the cut that saves most time. False: none saves enough, or the graph's layers cannot run
 * image by image. Types and constants of the plan must be known (laci_plan_infer_types). */
bool laci_stage_find_cut(laci_cpu_plan *plan, const laci_stage_rule *rule, laci_stage_cut *cut);

#endif

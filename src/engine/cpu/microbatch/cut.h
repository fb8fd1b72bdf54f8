/* SPDX-License-Identifier: Apache-2.0
 * Where a network is cut into stages: by a fixed rule, which gives the same cut every time on any
 * processor. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_CUT_H
#define LACI_ENGINE_CPU_MICROBATCH_CUT_H

#include "engine/cpu/plan/plan.h"

typedef struct laci_stage_cut {
  int value;           /* the value at which the network is cut: the result of the first layers,
                          which run one micro-batch at a time */
  int64_t micro_batch; /* number of images of a micro-batch; it divides the batch */
} laci_stage_cut;

/** The processor that the rule assumes. */
typedef struct laci_stage_rule {
  double flops, memory, cache; /* per second: operations; bytes read from or written to memory;
                                  bytes read from or written to the caches */
  double step_seconds;         /* fixed time of each step */
  double cache_bytes; /* a layer that reads and writes at most this number of bytes stays in the
                         caches */
  double least_gain;  /* share of the time of a run that a cut must save at least */
} laci_stage_rule;
extern const laci_stage_rule laci_stage_usual;

/** Finds the cut that saves most time. False: none saves enough, or the graph's layers cannot run
 * image by image. Types and constants of the plan must be known (laci_plan_infer_types). */
bool laci_stage_find_cut(laci_cpu_plan *plan, const laci_stage_rule *rule, laci_stage_cut *cut);

#endif

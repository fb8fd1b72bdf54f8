/* SPDX-License-Identifier: Apache-2.0
 * Where a network is cut into stages: by a fixed rule, which gives the same cut every time on any
 * processor. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_CUT_H
#define LACI_ENGINE_CPU_MICROBATCH_CUT_H

#include "engine/cpu/plan/plan.h"

typedef struct laci_stage_cut {
  int value;           /* the value at which the network is cut. It is the result of the first
                          layers, which run one micro-batch at a time */
  int64_t micro_batch; /* number of images of a micro-batch; it divides the batch */
} laci_stage_cut;

/** The speeds of the processor that the rule for cuts assumes. */
typedef struct laci_stage_rule {
  double flops, memory, cache; /* per second: floating-point operations (flops), bytes moved from or
                                  to memory (memory), bytes moved from or to the caches (cache) */
  double step_seconds;         /* fixed time of each step */
  double cache_bytes; /* if a layer reads and writes at most this number of bytes, they stay in the
                         caches */
  double least_gain;  /* minimum fraction of a run's time that a cut must save */
} laci_stage_rule;
extern const laci_stage_rule laci_stage_usual;

/** Finds the cut of the network that saves most time. False: none saves enough, or the graph's
 * layers cannot run image by image. Types and constants of the plan must be known
 * (laci_plan_infer_types). */
bool laci_stage_find_cut(laci_cpu_plan *plan, const laci_stage_rule *rule, laci_stage_cut *cut);

#endif

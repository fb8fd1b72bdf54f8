/* SPDX-License-Identifier: Apache-2.0
 * A network in stages: its first layers for a few images at a time, the others for the whole batch.
 *
 * At 112 x 112 pixels the values of a batch are larger than any cache, so that layers with little
 * to compute (depthwise windows, joins, normalizations) wait for memory. Where a rule finds that
 * (cut.h), the graph is cut at a value. The part before it becomes a stage: a net for a
 * micro-batch, which runs once for each micro-batch. The values inside a stage stay in the caches
 * from layer to layer; the value at the cut is kept in memory for the whole batch. A network
 * without a cut is one stage. Next: cut.h (where to cut), part.h (parts of a graph),
 * microbatch.c. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_MICROBATCH_H
#define LACI_ENGINE_CPU_MICROBATCH_MICROBATCH_H

#include "engine/cpu/net.h"
#include "engine/cpu/microbatch/cut.h"

typedef struct laci_microbatches laci_microbatches;

/** Creates the stages of a network, like laci_engine_create. Tuning, if the options ask for it, is
 * done for each stage. rule: how cuts are found, normally laci_stage_usual. */
LAC_MUST_CHECK lac_status laci_microbatches_create(const laci_graph *graph,
                                                   const laci_engine_options *options,
                                                   const laci_stage_rule *rule,
                                                   laci_microbatches **stages, lac_error *err);
void laci_microbatches_destroy(laci_microbatches *stages);

/** These do what the functions of laci_net with these names do. Steps are numbered through all
 * stages. The work that is reported for a step is that of all micro-batches together. */
int laci_microbatches_inputs(const laci_microbatches *stages, const laci_engine_port **ports);
int laci_microbatches_outputs(const laci_microbatches *stages, const laci_engine_port **ports);
laci_engine_memory laci_microbatches_planned_memory(const laci_microbatches *stages);
const char *laci_microbatches_plan_text(const laci_microbatches *stages);
LAC_MUST_CHECK lac_status laci_microbatches_run(laci_microbatches *stages,
                                                const void *const *inputs, void *const *outputs,
                                                const laci_engine_watch *watch, lac_error *err);
void laci_microbatches_list_nodes(const laci_microbatches *stages, const laci_graph *graph,
                                  laci_engine_node *nodes);
size_t laci_microbatches_step_count(const laci_microbatches *stages);
laci_engine_step laci_microbatches_step_info(const laci_microbatches *stages, size_t at);
size_t laci_microbatches_output_step(const laci_microbatches *stages, int port);
int laci_microbatches_threads(const laci_microbatches *stages);

#endif

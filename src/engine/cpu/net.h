/* SPDX-License-Identifier: Apache-2.0
 * The fast engine (row.c makes it one of the list): a graph, planned once for fixed input shapes,
 * run many times.
 *
 * Planning decides everything that does not depend on the data: which nodes are constant, which are
 * fused to the one before them, the layout of every value, the place of every value in one arena.
 * Running walks a list of steps. Dense work is oneDNN's; what it lacks is done by the operators'
 * own eval. Next: plan/plan.h (what is computed together, and where values are), lower/lower.h
 * (how: an ordered list of implementations for each operator), net.c. */
#ifndef LACI_ENGINE_CPU_NET_H
#define LACI_ENGINE_CPU_NET_H

#include "engine/engine.h"

typedef struct laci_net laci_net;

/** Which layers native kernels do, of those that they can. */
typedef enum laci_native_which {
  LACI_NATIVE_USE_FASTER, /* where that is faster, by timings or by a rule */
  LACI_NATIVE_USE_NONE,   /* laci_engine_options.dense_only, LAC_SPARSE=0, LAC_ALGORITHM=dense */
  LACI_NATIVE_USE_ZEROS,  /* where weights are zeros, whatever it costs */
  LACI_NATIVE_USE_ALL,    /* dense weights, too; LAC_SPARSE=all and LAC_ALGORITHM, for tests */
  LACI_NATIVE_USE_LISTED, /* none: layers are found, nothing is lowered or can be run */
} laci_native_which;

/** The same, and by which algorithm where all are done that can be. */
typedef struct laci_native_use {
  laci_native_which which;
  int algorithm; /* laci_algorithm_id (native/layer.h), where it can do a layer; 0, which is dense:
                    what the layer's kind has */
} laci_native_use;

/** Which nets run before and after this one (microbatch/microbatch.h). Zeroed: none. */
typedef struct laci_net_place {
  laci_pool *pool;    /* borrowed; NULL: one of its own, of options->threads */
  bool reads_blocks;  /* inputs are in blocks of 16 channels (nChw16c), f32, where they have four
                         axes and 16 divides their channels; else row-major */
  bool writes_blocks; /* so do outputs */
} laci_net_place;

/** As laci_engine_create. Stored bytes are read here and never again; above the budget, no
 * primitive was made. options->tuning is not looked at, and timings are only read (tune.h).
 * place: NULL is fine. */
LAC_MUST_CHECK lac_status laci_net_create(const laci_graph *graph,
                                          const laci_engine_options *options, laci_native_use use,
                                          const laci_net_place *place, laci_net **net,
                                          lac_error *err);
void laci_net_destroy(laci_net *net);
/** Can nets compute in bf16 here? */
bool laci_net_has_bf16(void);

int laci_net_inputs(const laci_net *net, const laci_engine_port **ports);
int laci_net_outputs(const laci_net *net, const laci_engine_port **ports);
laci_engine_memory laci_net_planned(const laci_net *net);
/** A line a step; dies with the net. */
const char *laci_net_text(const laci_net *net);

/** As laci_engine_run_watched. Allocates nothing of our own (an operator without a fast form may
 * take scratch memory for itself; the text names each). */
LAC_MUST_CHECK lac_status laci_net_run(laci_net *net, const void *const *inputs,
                                       void *const *outputs, const laci_engine_watch *watch,
                                       lac_error *err);

/** The node that this plan is not sure of, whatever the inputs are (plan/finite.h): a careful plan
 * is wanted in its place. NULL: none. */
const char *laci_net_careless(const laci_net *net);
/** The value of the last run that may not be finite, where the run ended: its outputs are
 * undefined. NULL: all are finite, and the run is complete. */
const char *laci_net_suspect(const laci_net *net);

size_t laci_net_step_count(const laci_net *net);
laci_engine_step laci_net_step_look(const laci_net *net, size_t at);
size_t laci_net_output_step(const laci_net *net, int port);
int laci_net_threads(const laci_net *net);

#endif

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

/** Which layers native kernels compute, out of those that they support. */
typedef enum laci_native_which {
  LACI_NATIVE_USE_FASTER, /* layers for which native kernels are faster, by timings or by a rule */
  LACI_NATIVE_USE_NONE,   /* no layer: set by laci_engine_options.dense_only, LAC_SPARSE=0 and
                             LAC_ALGORITHM=dense */
  LACI_NATIVE_USE_ZEROS,  /* layers whose weights have zeros, even if that is slower */
  LACI_NATIVE_USE_ALL,    /* layers with dense weights, too: set by LAC_SPARSE=all and
                             LAC_ALGORITHM, for tests */
  LACI_NATIVE_USE_LISTED, /* layers are only found: nothing is lowered, and the net cannot run */
} laci_native_which;

/** Which layers native kernels compute, and by which algorithm. */
typedef struct laci_native_use {
  laci_native_which which; /* which layers native kernels compute */
  int algorithm;           /* laci_algorithm_id (native/layer.h) that computes all layers which it
                              supports; 0 (the dense algorithm): the algorithm is chosen for each
                              kind of layer */
} laci_native_use;

/** How a net is connected with the nets that run before and after it (microbatch/microbatch.h). All
 * zeros: there are no such nets. */
typedef struct laci_net_place {
  laci_pool *pool;    /* threads that compute, borrowed; NULL: the net creates a pool of
                         options->threads */
  bool reads_blocks;  /* inputs with four axes and a multiple of 16 channels are given in blocks of
                         16 channels (nChw16c), f32; other inputs are row-major */
  bool writes_blocks; /* outputs with four axes and a multiple of 16 channels are wanted in these
                         blocks, f32; other outputs are row-major */
} laci_net_place;

/** Plans a graph, as laci_engine_create does. Stored bytes are read only during this call. Where
 * memory would exceed the budget, it fails before it creates any primitive. options->tuning is
 * ignored, and timings are only read (tune.h). place: NULL is fine. */
LAC_MUST_CHECK lac_status laci_net_create(const laci_graph *graph,
                                          const laci_engine_options *options, laci_native_use use,
                                          const laci_net_place *place, laci_net **net,
                                          lac_error *err);
void laci_net_destroy(laci_net *net);
/** Can nets compute in bf16 on this machine? */
bool laci_net_can_use_bf16(void);

int laci_net_inputs(const laci_net *net, const laci_engine_port **ports);
int laci_net_outputs(const laci_net *net, const laci_engine_port **ports);
laci_engine_memory laci_net_planned_memory(const laci_net *net);
/** Returns the plan as text, one line for each step; it lives as long as the net. */
const char *laci_net_plan_text(const laci_net *net);

/** As laci_engine_run_watched. Allocates no memory, except that operators without a fast kernel may
 * allocate scratch memory; the plan's text names them. */
LAC_MUST_CHECK lac_status laci_net_run(laci_net *net, const void *const *inputs,
                                       void *const *outputs, const laci_engine_watch *watch,
                                       lac_error *err);

/** Returns the name of a node whose result may not be finite whatever the inputs are
 * (plan/finite.h): a careful plan must replace this one. NULL: there is none. */
const char *laci_net_node_needing_careful_plan(const laci_net *net);
/** Returns the name of the value that may not be finite and at which the last run stopped: its
 * outputs are undefined. NULL: all values were finite, and the run is complete. */
const char *laci_net_suspect_value(const laci_net *net);

/** As laci_engine_list_nodes. */
void laci_net_list_nodes(const laci_net *net, const laci_graph *graph, laci_engine_node *nodes);
size_t laci_net_step_count(const laci_net *net);
laci_engine_step laci_net_step_info(const laci_net *net, size_t at);
size_t laci_net_output_step(const laci_net *net, int port);
int laci_net_threads(const laci_net *net);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Runs a part of a network on several batches at the same time. A worker is a copy of the part's
 * engine. It has one thread and runs one batch, so results do not depend on the number of threads.
 * Private to calibrate. */
#ifndef LACI_CALIBRATE_WORKERS_IN_H
#define LACI_CALIBRATE_WORKERS_IN_H

#include "calibrate/network_in.h"

typedef struct laci_budget laci_budget;
typedef struct laci_engine laci_engine;

/** The workers of one part of a network: engines with the same weights and one thread each, which
 * run one batch at a time. */
typedef struct laci_part_engines {
  int n;               /* number of workers; set by the caller before laci_part_engines_create */
  laci_budget *budget; /* memory budget, set by the caller, to which the engines' bytes are added;
                          NULL: no limit */
  const char *engine;  /* set by the caller: name of the engine that runs the samples */
  laci_graph *graph;
  laci_engine **engines; /* [n] the engine of each worker */
} laci_part_engines;

/** Creates the engines of the part. weights: [n_stored] bytes of the stored tensors. Fails as
 * laci_engine_create; *workers is then zeroed. */
LAC_MUST_CHECK lac_status laci_part_engines_create(const laci_network *network,
                                                   const laci_part *part,
                                                   const uint8_t *const *weights,
                                                   laci_part_engines *workers, lac_error *err);
/** Creates engines of a graph in place of a part; takes the graph over, even if it fails. */
LAC_MUST_CHECK lac_status laci_part_engines_create_for_graph(laci_graph *graph,
                                                             laci_part_engines *workers,
                                                             lac_error *err);
void laci_part_engines_clear(laci_part_engines *workers); /* destroys the engines; zeroed is fine */

/** Runs one batch on a worker (engine). inputs, outputs: addresses, in the order of the part's
 * inputs and outputs. Different workers may run at the same time. */
LAC_MUST_CHECK lac_status laci_part_engines_run(const laci_part_engines *workers, int worker,
                                                const void *const *inputs, void *const *outputs,
                                                lac_error *err);

#endif

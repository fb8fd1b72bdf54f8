/* SPDX-License-Identifier: Apache-2.0
 * The same part of a network for several batches at the same time: a lane is an engine of one
 * thread for one of them, so that a batch has the same bits whatever the number of threads. Private
 * to calibrate. */
#ifndef LACI_CALIBRATE_LANES_IN_H
#define LACI_CALIBRATE_LANES_IN_H

#include "calibrate/network_in.h"

typedef struct laci_budget laci_budget;
typedef struct laci_engine laci_engine;

typedef struct laci_lanes {
  int n;               /* given, at first */
  laci_budget *budget; /* given: what the engines take is added; NULL: no limit */
  laci_graph *graph;
  laci_engine **engines; /* [n] */
} laci_lanes;

/** Engines of the part with these weights, [n_stored]. Zeroed on failure, which is that of
 * laci_engine_create. */
LAC_MUST_CHECK lac_status laci_lanes_create(const laci_network *network, const laci_part *part,
                                            const uint8_t *const *weights, laci_lanes *lanes,
                                            lac_error *err);
void laci_lanes_clear(laci_lanes *lanes); /* zeroed is fine */

/** inputs, outputs: in the order of the part. Different lanes may run at the same time. */
LAC_MUST_CHECK lac_status laci_lanes_run(const laci_lanes *lanes, int lane,
                                         const void *const *inputs, void *const *outputs,
                                         lac_error *err);

#endif

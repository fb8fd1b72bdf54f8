/* SPDX-License-Identifier: Apache-2.0
 * The stops of the walk, and what it computes between two stops: private to calibrate.
 *
 * A stop is a value that layers read. Its part is all nodes that it depends on, except those of
 * earlier parts. Values of a part that are read after its stop are stored. These, and values of
 * earlier parts that are still needed, are the frontier: later parts read no other computed values.
 */
#ifndef LACI_CALIBRATE_PLAN_IN_H
#define LACI_CALIBRATE_PLAN_IN_H

#include "calibrate/layer_in.h"

enum { LACI_STREAM_DENSE, LACI_STREAM_PRUNED, LACI_STREAMS };

typedef struct laci_stop {
  int value;
  int first_layer, n_layers; /* the stop's layers: n_layers of plan->layers, from first_layer on */
  /* The nodes to run before this stop, in each network. No nodes: the stop's value is available
   * already, and is the part's only input. In the pruned network, the part outputs only values that
   * differ from the dense network's. No nodes and no inputs: the stop's value does not differ. */
  laci_part part[LACI_STREAMS];
} laci_stop;

typedef struct laci_walk_plan {
  int n_layers, n_stops;
  laci_matrix_layer *layers; /* the layers to calibrate, in the order of the stops */
  laci_stop *stops;
  bool *differs;  /* [n_values] the value differs between the dense and the pruned network */
  int *last_stop; /* [n_values] index of the last stop whose part or layers read the value; -1: none
                     reads it */
} laci_walk_plan;

/** Plans the calibration of plan->layers, whose n_layers entries the caller sets (memory of
 * laci_alloc). Sorts the layers, which may replace the array. is_pruned: [n_stored] tensors whose
 * weights will change. The plan's other arrays are in the network's arena. */
LAC_MUST_CHECK lac_status laci_walk_plan_make(laci_network *network, const bool *is_pruned,
                                              laci_walk_plan *plan, lac_error *err);

#endif

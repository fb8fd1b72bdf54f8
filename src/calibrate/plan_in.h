/* SPDX-License-Identifier: Apache-2.0
 * Where the walk stops, and what it computes between two stops: private to calibrate.
 *
 * A stop is a value that layers read. Its part is all nodes that it depends on and that no earlier
 * part has computed. Values of a part that are read after its stop are kept. Together with what is
 * left of earlier parts they are the frontier: of computed values later parts read no others. */
#ifndef LACI_CALIBRATE_PLAN_IN_H
#define LACI_CALIBRATE_PLAN_IN_H

#include "calibrate/layer_in.h"

enum { LACI_STREAM_DENSE, LACI_STREAM_PRUNED, LACI_STREAMS };

typedef struct laci_stop {
  int value;
  int first_layer, n_layers; /* of the plan's */
  /* Without nodes: the value is there already, and the part's only input. In the pruned network the
     part has only outputs that differ there; no inputs either: the value does not. */
  laci_part part[LACI_STREAMS];
} laci_stop;

typedef struct laci_walk_plan {
  int n_layers, n_stops;
  laci_matrix_layer *layers; /* by stops */
  laci_stop *stops;
  bool *differs;  /* [n_values] in the pruned network */
  int *last_stop; /* [n_values] up to which a value is needed; -1: by none */
} laci_walk_plan;

/** layers: taken [n_layers]; is_pruned: [n_stored] tensors that have other weights in the pruned
 * network, sooner or later. Arrays but `layers` live in the network's arena. */
LAC_MUST_CHECK lac_status laci_walk_plan_make(laci_network *network, const bool *is_pruned,
                                              laci_walk_plan *plan, lac_error *err);

#endif

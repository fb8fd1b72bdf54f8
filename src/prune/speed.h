/* SPDX-License-Identifier: Apache-2.0
 * The layers to prune for a wanted speed: of all choices that are predicted to reach it, the one
 * that harms least.
 *
 *     least  sum of errors of the pruned layers
 *     so that  sum of the times that they save >= what is needed
 *
 * Dynamic programming over time, cut into buckets, solves this exactly up to the width of a bucket.
 * The method is that of Frantar and Alistarh, "SPDY: Accurate Pruning with Speedup Guarantees"
 * (2022), with two choices for each layer. What a layer saves also depends on its neighbours, by
 * reorders between them. So a plan with all chosen layers is predicted as a whole. If it is too
 * slow, the next choice has to save more. */
#ifndef LACI_PRUNE_SPEED_H
#define LACI_PRUNE_SPEED_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct laci_analysis laci_analysis;

/** Predicts a run with the layers pruned whose flag in pruned, [n_layers], is set.
 *  layers   [n_layers] out: seconds of each layer's step
 *  *seconds out: of the whole run */
typedef lac_status laci_predict_run(void *context, const bool *pruned, double *layers,
                                    double *seconds, lac_error *err);

/** Predicted times, and the wanted speed. The functions are set by src/api, which can ask for
 * plans. */
typedef struct laci_prune_timing {
  laci_predict_run *predict;
  void *context;
  double speed; /* the wanted speed: time of the dense network / time of the pruned one; 0: no speed
                   is wanted */
} laci_prune_timing;

/** A layer that may be pruned, together with all that share its weight. */
typedef struct laci_speed_layer {
  int layer;
  double error; /* harm done by pruning it, >= 0 */
  double saved; /* seconds by which pruning it shortens a run, as laci_speed_find_savings
                   predicts */
  bool pruned;  /* result: the layer is chosen to be pruned */
} laci_speed_layer;

/** Chooses layers of least error that together save `needed` seconds. Returns false if all of them
 * together do not, or if memory is short; then all layers that save time are chosen. */
bool laci_speed_choose_layers(laci_speed_layer *layers, int n, double needed);

/** A choice of layers by their times. */
typedef struct laci_speed_choice {
  const laci_analysis *analysis;
  const laci_prune_timing *timing;
  const bool *always; /* [n_layers] layers that are pruned in any case; NULL: none */
  laci_speed_layer *layers;
  int n;
  double reached; /* result of laci_speed_choose_for_target: the predicted time of the dense network
                     / that of the pruned one */
} laci_speed_choice;

/** Predicts what each layer saves: the difference of its step in a plan with none and one with all
 * of them pruned. Fails as timing->predict, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_speed_find_savings(laci_speed_choice *choice, lac_error *err);

/** Chooses layers of least error with which the plan is predicted to be timing->speed times as fast
 * as the dense one, and sets their savings. Fails LAC_UNSUPPORTED where no choice reaches that, and
 * as laci_speed_find_savings. */
LAC_MUST_CHECK lac_status laci_speed_choose_for_target(laci_speed_choice *choice, lac_error *err);

#endif

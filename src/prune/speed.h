/* SPDX-License-Identifier: Apache-2.0
 * Chooses the layers to prune for a wanted speed: among all choices that are predicted to reach it,
 * the one that harms least.
 *
 *     least  sum of errors of the pruned layers
 *     so that  sum of the times that they save >= what is needed
 *
 * Dynamic programming over time, cut into buckets, solves this exactly up to the width of a bucket.
 * The method is that of Frantar and Alistarh, "SPDY: Accurate Pruning with Speedup Guarantees"
 * (2022), with two choices for each layer. What a layer saves also depends on its neighbours, by
 * reorders between them. So a plan with all chosen layers is predicted as a whole. If it is too
 * slow, another choice that saves more is made. */
#ifndef LACI_PRUNE_SPEED_H
#define LACI_PRUNE_SPEED_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct laci_analysis laci_analysis;

/** Predicts the time of a run in which the layers are pruned whose flag in pruned, [n_layers], is
 * set. layers: [n_layers] result: seconds that each layer takes. *seconds: seconds that the whole
 * run takes. */
typedef lac_status laci_predict_run(void *context, const bool *pruned, double *layers,
                                    double *seconds, lac_error *err);

/** Predicted times, and the wanted speed. src/api, which can ask for plans, sets the function. */
typedef struct laci_prune_timing {
  laci_predict_run *predict;
  void *context;
  double speed; /* wanted speed: time of the dense network / time of the pruned one; 0: no speed is
                   wanted */
} laci_prune_timing;

/** A layer that may be pruned, together with all layers that share its weight. */
typedef struct laci_speed_layer {
  int layer;
  double error; /* harm that pruning the layer does, >= 0 */
  double saved; /* seconds by which pruning the layer shortens a run, as laci_speed_find_savings
                   predicts */
  bool pruned;  /* result: the layer is chosen to be pruned */
} laci_speed_layer;

/** Chooses layers that together save `needed` seconds, with the least sum of errors. Returns false
 * if all layers together do not save that much, or if there is no memory; then all layers that save
 * time are chosen. */
bool laci_speed_choose_layers(laci_speed_layer *layers, int n, double needed);

/** A choice of the layers to prune, by predicted times. */
typedef struct laci_speed_choice {
  const laci_analysis *analysis;
  const laci_prune_timing *timing;
  const bool *always; /* [n_layers] layers that are pruned in any case; NULL: none */
  laci_speed_layer *layers;
  int n;
  double reached; /* result of laci_speed_choose_for_target: predicted time of the dense network /
                     that of the pruned one */
} laci_speed_choice;

/** Predicts the seconds that each listed layer saves: the time of all layers with its weight if no
 * listed layer is pruned, minus their time if all listed layers are. The layers in `always` are
 * pruned in both cases. Fails as timing->predict, and with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_speed_find_savings(laci_speed_choice *choice, lac_error *err);

/** Chooses the layers with the least sum of errors with which the plan is predicted to be
 * timing->speed times as fast as the dense one, and sets their savings. Fails with LAC_UNSUPPORTED
 * if no choice reaches that speed, and as laci_speed_find_savings. */
LAC_MUST_CHECK lac_status laci_speed_choose_for_target(laci_speed_choice *choice, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Chooses, out of many samples, those that are most like the data a network was trained on.
 *
 * Each batch normalization stores the mean and variance of its inputs on the training data. The
 * chosen samples together have means and variances near these. They are chosen one after the other,
 * each time the sample that brings the sums nearest (herding: Welling, "Herding dynamical weights
 * to learn", 2009). */
#ifndef LACI_CALIBRATE_CHOOSE_H
#define LACI_CALIBRATE_CHOOSE_H

#include "calibrate/samples.h"

typedef struct laci_choose_options {
  const laci_calibration_samples *candidates; /* samples to choose from */
  int64_t n;                                  /* number of samples to choose, at most
                                                 candidates->count */
  laci_pool *pool;
  const laci_budget *budget; /* memory budget; NULL: no limit */
} laci_choose_options;

/** Distances between the statistics of samples and those that batch normalizations store: squared
 * differences in units of the stored deviations, averaged over channels and normalizations. */
typedef struct laci_choice {
  int n_norms; /* number of batch normalizations that are compared; 0: there are none, and the first
                  n samples are chosen */
  double first, chosen; /* distances of the first n candidates (first) and of the n chosen samples
                           (chosen) */
} laci_choice;

/** Fills places [n] with the indices of the chosen candidates, in the order of choice. Engines of
 * one thread run the network, so the choice does not depend on the number of threads. Fails as
 * laci_engine_create, laci_engine_run and candidates->fetch do, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_choose_samples(const laci_graph *graph,
                                              const laci_choose_options *options, int64_t *places,
                                              laci_choice *choice, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Measuring a table of costs. Networks of representative layers are timed layer by layer, by each
 * algorithm. Then the figures are found for which the algorithms' own formulas are nearest to these
 * times. Read next: networks.c (what is timed), fit.c, text.c, measure.c. */
#ifndef LACI_ENGINE_CPU_NATIVE_MEASURE_MEASURE_H
#define LACI_ENGINE_CPU_NATIVE_MEASURE_MEASURE_H

#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/layer.h"

/* ---- networks.c ---- */

int laci_measured_n_networks(void);
/** Builds the network with index `at` among those that are timed, for inference with the given
 * batch size and fixed shapes. Its weights are random; pruned weights keep two of every four
 * channels. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_measured_build_network(int at, int64_t batch, laci_graph **graph,
                                                      lac_error *err);

/** Does the network alternate between dense and native layers, so that reorders are timed? */
bool laci_measured_has_reorders(int at);

/* ---- observations.c ---- */

/** The measured time of a layer by one algorithm. */
typedef struct laci_observation {
  const laci_net *net;            /* net that has the layer; none of its layers is chosen */
  const laci_native_layer *layer; /* the layer that was timed; NULL: a reorder */
  laci_algorithm_id algorithm;
  double seconds; /* time of the layer; of a reorder, the time of one element */
} laci_observation;

/** All measured times. All nets read their costs from `costs`. */
typedef struct laci_measured {
  laci_observation *observations; /* [n] the measured times */
  size_t n, capacity;             /* number of observations, and how many fit in the array */
  laci_costs *costs;              /* the costs from which all nets estimate */
} laci_measured;

/** Adds an observation for each layer of the net and each algorithm that can compute that layer.
 * reorders: adds one for reorders, too. The net reads measured->costs from now on. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_measured_add_net(laci_measured *measured, laci_net *net,
                                                bool reorders, lac_error *err);
/** Replaces the times of the observations [first, last) by those in `timings`, where these are
 * shorter. */
void laci_measured_update_times(laci_measured *measured, size_t first, size_t last,
                                const laci_timings *timings);
/** Drops observations that were not timed or took no time. */
void laci_measured_drop_untimed(laci_measured *measured);

/* ---- fit.c ---- */

/** Fits the table's f32 figures to the measured times, starting from their present values. Figures
 * on which no time depends stay. Results are rounded to three digits. */
void laci_costs_fit_figures(const laci_measured *measured, laci_cost_table *table);
/** Returns the median error of the table's estimates for an algorithm, as a factor minus 1; 0: the
 * algorithm was not timed. *n: number of times that were measured for the algorithm. */
double laci_costs_median_error(const laci_measured *measured, const laci_cost_table *table,
                               laci_algorithm_id algorithm, int *n);

/* ---- text.c ---- */

/** Fits a table of costs to the measured times, and writes it as the text of a file, which the
 * caller frees (laci_free). n_runs: how often networks were run, for the comment at the top of the
 * file. */
LAC_MUST_CHECK lac_status laci_measured_write_table(const laci_measured *measured, int n_runs,
                                                    char **text, lac_error *err);

#endif

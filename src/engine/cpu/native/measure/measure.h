/* SPDX-License-Identifier: Apache-2.0
 * Measuring a table of costs: networks of representative layers are timed layer by layer, by each
 * algorithm, and figures are found with which the algorithms' own formulas come nearest to these
 * times. Next: networks.c (what is timed), fit.c, text.c, measure.c. */
#ifndef LACI_ENGINE_CPU_NATIVE_MEASURE_MEASURE_H
#define LACI_ENGINE_CPU_NATIVE_MEASURE_MEASURE_H

#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/layer.h"

/* ---- networks.c ---- */

int laci_measured_networks(void);
/** Network `at` with so many images, of fixed shapes, inferred. Its weights are random and keep two
 * of every four channels where they are pruned. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_measured_network(int at, int64_t batch, laci_graph **graph,
                                                lac_error *err);

/** Are its reorders between dense and native layers? */
bool laci_measured_reorders(int at);

/* ---- observations.c ---- */

/** What a layer took by an algorithm. */
typedef struct laci_observation {
  const laci_net *net;            /* listed */
  const laci_native_layer *layer; /* NULL: an element of a reorder */
  laci_algorithm_id algorithm;
  double seconds;
} laci_observation;

/** All that was timed; every net reads `costs`. */
typedef struct laci_measured {
  laci_observation *observations; /* [n] */
  size_t n, capacity;
  laci_costs *costs;
} laci_measured;

/** Each layer of the net by each algorithm that can compute it, and an element of its reorders
 * where `reorders`; the net reads measured->costs from now on. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_measured_add(laci_measured *measured, laci_net *net, bool reorders,
                                            lac_error *err);
/** Takes those of [first, last) that timings have, where they are less. */
void laci_measured_note(laci_measured *measured, size_t first, size_t last,
                        const laci_timings *timings);
/** What was not timed, or took no time, is no evidence. */
void laci_measured_drop_unknown(laci_measured *measured);

/* ---- fit.c ---- */

/** Fits the table's figures of f32, beginning with those that it has, from which it goes as far as
 * times are evidence for: what no time depends on stays. Figures are rounded to three digits. */
void laci_costs_fit(const laci_measured *measured, laci_cost_table *table);
/** How far the table's estimates of an algorithm are from times in the middle, as a factor less 1;
 * 0: nothing of it was timed. *n: how many times. */
double laci_costs_error(const laci_measured *measured, const laci_cost_table *table,
                        laci_algorithm_id algorithm, int *n);

/* ---- text.c ---- */

/** The table that fits best, as the text of a file, the caller's (laci_free). n_runs: of networks,
 * for its head. */
LAC_MUST_CHECK lac_status laci_measured_text(const laci_measured *measured, int n_runs, char **text,
                                             lac_error *err);

#endif

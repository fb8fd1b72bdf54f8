/* SPDX-License-Identifier: Apache-2.0
 * Runs a network over samples and passes chosen values to a function. Several batches are run at
 * the same time, each in a worker with an engine of one thread. So values do not depend on the
 * number of threads. Private to calibrate. */
#ifndef LACI_CALIBRATE_OBSERVE_IN_H
#define LACI_CALIBRATE_OBSERVE_IN_H

#include "calibrate/samples.h"

/** A value in one batch, as it is passed to the caller's function. */
typedef struct laci_observed {
  int worker;    /* index of the worker (engine) that computed the value; several workers may call
                    the function at the same time, each with one value */
  int place;     /* index of the value in laci_observe_options.values */
  int64_t first; /* index of the first sample of the batch */
  const laci_shape *shape;
  const float *elements; /* [n] elements of the value, valid until the function returns */
  int64_t n;             /* number of elements */
} laci_observed;

/** A function that receives the observed values, one value of one batch in each call. If it fails,
 * the run ends with its failure. */
typedef lac_status laci_observe_on_value(void *context, const laci_observed *seen, lac_error *err);

typedef struct laci_observe_options {
  const int *values; /* [n_values] values of the graph, of a float type, without duplicates */
  int n_values;
  const laci_calibration_samples *samples;
  int64_t batch, n_batches; /* batch: number of samples in a batch; n_batches: number of batches to
                               run, from the first sample on */
  laci_pool *pool;
  const laci_budget *budget; /* memory budget; NULL: no limit */
  laci_observe_on_value *on_value;
  void *context;
  const char *what; /* name of the work for messages: "ranges of values" */
} laci_observe_options;

typedef struct laci_observation laci_observation;

/** Creates an observation, which can run the network. The options are copied; what they point to,
 * and `from`, must outlive the observation. A value that no output depends on may be left out.
 * Fails as laci_network_create and laci_engine_create do. */
LAC_MUST_CHECK lac_status laci_observe_open(const laci_weighted_graph *from,
                                            const laci_observe_options *options,
                                            laci_observation **observation, lac_error *err);
void laci_observe_close(laci_observation *observation); /* NULL is fine */

/** Returns the maximum number of workers (engines that run at the same time), at least 1. */
int laci_observe_max_parallel_batches(const laci_observation *observation);

/** Runs all batches. May be called again. Fails as samples->fetch, laci_engine_run and
 * options->on_value do. */
LAC_MUST_CHECK lac_status laci_observe_run(laci_observation *observation, lac_error *err);

#endif

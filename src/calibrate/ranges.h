/* SPDX-License-Identifier: Apache-2.0
 * What values a network takes on samples: of each wanted value the least and the largest element,
 * and a histogram of what is in between.
 *
 * All counts are integers and every batch is run by an engine of one thread, so that the result is
 * the same for any number of threads. */
#ifndef LACI_CALIBRATE_RANGES_H
#define LACI_CALIBRATE_RANGES_H

#include "calibrate/samples.h"

enum { LACI_RANGE_BINS = 2048 };

/** Of one value. Bin k counts elements in [low + k * w, low + (k + 1) * w), w = (high - low) /
 * LACI_RANGE_BINS, the last one with its end; zeros are not in it, since all scales hold 0. */
typedef struct laci_range {
  double low, high;
  int64_t n_zeros, n_others;
  int64_t bins[LACI_RANGE_BINS];
} laci_range;

typedef struct laci_ranges_options {
  const int *values; /* [n_values] of the graph, of floats, each once */
  int n_values;
  const laci_calibration_samples *samples;
  int64_t batch, n_batches; /* the first so many are looked at */
  laci_pool *pool;
  const laci_budget *budget;
} laci_ranges_options;

/** Runs the network over the samples, twice; ranges: [n_values]. Fails as laci_engine_create,
 * laci_engine_run and samples->fetch do, LAC_BAD_VALUE for a value that is not finite. */
LAC_MUST_CHECK lac_status laci_ranges_measure(const laci_weighted_graph *from,
                                              const laci_ranges_options *options,
                                              laci_range *ranges, lac_error *err);

/** How a range is cut for the sake of what is in it. */
typedef enum laci_range_rule {
  LACI_RANGE_PERCENTILE, /* all but one in 10000 elements are inside */
  LACI_RANGE_MSE,        /* the least squared error of rounding and of cutting */
  LACI_RANGE_MINMAX,     /* all of it */
} laci_range_rule;

/** The integers that represent a range: x = (q - zero) * scale, q in [least, most]. */
typedef struct laci_affine {
  float scale; /* 0: the value is 0 throughout */
  int zero, least, most;
  double error; /* of rounding and cutting, relative to the sum of squares; about, from the bins */
} laci_affine;

/** is_signed: -127 .. 127 about zero 0; else 0 .. 255, the zero where the range has it. */
laci_affine laci_range_affine(const laci_range *range, laci_range_rule rule, bool is_signed);

#endif

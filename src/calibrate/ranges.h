/* SPDX-License-Identifier: Apache-2.0
 * Ranges of a network's values on samples: the smallest and the largest element of each wanted
 * value, and a histogram of the elements in between.
 *
 * All counts are integers and every batch is run by an engine of one thread, so the result is the
 * same for any number of threads. */
#ifndef LACI_CALIBRATE_RANGES_H
#define LACI_CALIBRATE_RANGES_H

#include "calibrate/samples.h"

enum { LACI_RANGE_BINS = 2048 };

/** Range and histogram of one value. Bin k counts the elements in [low + k * w, low + (k + 1) * w),
 * w = (high - low) / LACI_RANGE_BINS; the last bin includes high. Zeros are not in the bins, since
 * every scale represents 0 exactly. */
typedef struct laci_range {
  double low, high;
  int64_t n_zeros, n_others;
  int64_t bins[LACI_RANGE_BINS];
} laci_range;

typedef struct laci_ranges_options {
  const int *values; /* [n_values] values of the graph, of a float type, without duplicates */
  int n_values;
  const laci_calibration_samples *samples;
  int64_t batch, n_batches; /* batch: number of samples in a batch; n_batches: number of batches to
                               run, from the first sample on */
  laci_pool *pool;
  const laci_budget *budget;
} laci_ranges_options;

/** Runs the network over the samples, twice, and fills ranges, [n_values]. Fails as
 * laci_engine_create, laci_engine_run and samples->fetch do, LAC_BAD_VALUE for a value that is not
 * finite. */
LAC_MUST_CHECK lac_status laci_ranges_measure(const laci_weighted_graph *from,
                                              const laci_ranges_options *options,
                                              laci_range *ranges, lac_error *err);

/** How the range that the integers represent is chosen. Elements outside of it are clipped. */
typedef enum laci_range_rule {
  LACI_RANGE_PERCENTILE, /* clips at most one in 10000 elements */
  LACI_RANGE_MSE,        /* gives the least squared error of rounding and of clipping */
  LACI_RANGE_MINMAX,     /* clips nothing */
} laci_range_rule;

/** The integers that represent a range: x = (q - zero) * scale, q in [least, most]. */
typedef struct laci_affine {
  float scale; /* the number that an integer step stands for; 0: all elements are 0 */
  int zero, least, most;
  double low, high; /* smallest and largest element of the value on the samples */
  double error; /* squared error of rounding and clipping, divided by the sum of squares; estimated
                   from the bins */
} laci_affine;

/** Chooses scale and zero point for a range. is_signed: integers -127 .. 127 with zero point 0;
 * else 0 .. 255, with the zero point that follows from the range. */
laci_affine laci_range_choose_affine(const laci_range *range, laci_range_rule rule, bool is_signed);

#endif

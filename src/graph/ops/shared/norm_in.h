/* SPDX-License-Identifier: Apache-2.0
 * What the normalizations share: mean and variance of a run of numbers, and checks of per-channel
 * parameters. */
#ifndef LACI_GRAPH_OPS_SHARED_NORM_IN_H
#define LACI_GRAPH_OPS_SHARED_NORM_IN_H

#include "graph/ops/shared/op_in.h"

typedef struct laci_moments {
  double mean, variance; /* variance: the sum of squares is divided by n */
} laci_moments;

/** Computes mean and variance in two passes, which is accurate for a variance much smaller than the
 * mean. */
laci_moments laci_moments_of(const double *x, int64_t n);

/** Computes y = (x - mean) / sqrt(variance + epsilon) for n elements. */
void laci_normalize_run(const double *x, int64_t n, laci_moments moments, double epsilon,
                        double *y);

/** Returns 1 / sqrt(mean(x^2) + epsilon), where the mean is over n elements. */
double laci_inverse_root_mean_square(const double *x, int64_t n, double epsilon);

/** Checks that input `port`, where present and known, has one axis of `size` (< 0: any). Fails
 *  LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_check_input_vector(laci_infer *infer, int port, int64_t size);

/** Returns the attribute epsilon, 1e-5 where absent. */
double laci_epsilon(const laci_node *node);

/** Passes channel orders from x to y, and ties parameters at ports first to last to the channels,
 * axis 1 (coupling.h). Returns false where shapes are not known. */
bool laci_couple_channels(laci_coupling *c, int first, int last);

#endif

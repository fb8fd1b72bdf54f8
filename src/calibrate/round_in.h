/* SPDX-License-Identifier: Apache-2.0
 * Rounding as a fit: integers for the weights of a layer, such that its outputs change least.
 * Private to calibrate. */
#ifndef LACI_CALIBRATE_ROUND_IN_H
#define LACI_CALIBRATE_ROUND_IN_H

#include "calibrate/fit.h"

/** Rounds the weights of a fit, in units of a step of the grid, to integers of magnitude `most` or
 * less: E(Q) = <(Q - W)(H + d I), Q - W> becomes small. W are the weights of the fit; with k, those
 * that minimize its error without a mask, W_d (K + d I)(H + d I)^-1. A weight that is 0 stays 0.
 * Only name, rows, columns, h, k, positions, damping and weight of the fit are read.
 *  rounded  out  [rows, columns]. Fails LAC_BAD_VALUE if H has no inverse, LAC_NO_MEMORY. It has
 *  the same bytes for any pool. */
LAC_MUST_CHECK lac_status laci_fit_round(const laci_fit *fit, double most, laci_pool *pool,
                                         double *rounded, lac_error *err);
/** Returns the peak bytes that laci_fit_round allocates. */
uint64_t laci_fit_round_memory_bytes(int64_t rows, int64_t columns);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What fit.c and solve.c know of each other. */
#ifndef LACI_CALIBRATE_SOLVE_IN_H
#define LACI_CALIBRATE_SOLVE_IN_H

#include "calibrate/fit.h"

/** Shapes, pattern and finite values; with the sums where they are needed. */
LAC_MUST_CHECK lac_status laci_fit_check(const laci_fit *fit, bool needs_gram, lac_error *err);

/** Bytes that laci_fit_solve allocates for a mask of the fit's pattern. */
uint64_t laci_solve_memory(const laci_fit *fit, int n_threads);

#endif

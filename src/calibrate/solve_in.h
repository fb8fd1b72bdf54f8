/* SPDX-License-Identifier: Apache-2.0
 * Functions that fit.c, check.c and solve.c share. */
#ifndef LACI_CALIBRATE_SOLVE_IN_H
#define LACI_CALIBRATE_SOLVE_IN_H

#include "calibrate/fit.h"

/** Checks the fit's shapes and pattern, and that all values are finite; checks the sums H and K
 * only if needs_gram. */
LAC_MUST_CHECK lac_status laci_fit_check_input(const laci_fit *fit, bool needs_gram,
                                               lac_error *err);

/** Returns the bytes that laci_fit_solve_weights allocates for a mask of the fit's pattern. */
uint64_t laci_fit_solve_memory_bytes(const laci_fit *fit, int n_threads);

#endif

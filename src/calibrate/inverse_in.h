/* SPDX-License-Identifier: Apache-2.0
 * The inverse (H + d I)^-1, and functions shared by the scores that use it. */
#ifndef LACI_CALIBRATE_INVERSE_IN_H
#define LACI_CALIBRATE_INVERSE_IN_H

#include "calibrate/score_in.h"

/** Computes the inverse of the damped Gram matrix, (H + d I)^-1 [columns, columns], both triangles.
 * Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_fit_invert_gram(const laci_score_input *input, double *inverse,
                                               lac_error *err);

/** Replaces the inverse [columns, columns] by its upper triangular Cholesky factor U, with U' U =
 * inverse. Fails LAC_BAD_VALUE if it has none. */
LAC_MUST_CHECK lac_status laci_fit_factorize_inverse(const laci_score_input *input, double *inverse,
                                                     lac_error *err);

/** Computes the weights with which pruning begins, start [rows, columns] = G (H + d I)^-1
 * (score_in.h). They have the least damped error without a mask; in the symmetric form they are
 * W_d. */
LAC_MUST_CHECK lac_status laci_fit_compute_start_weights(const laci_score_input *input,
                                                         const double *inverse, double *start,
                                                         lac_error *err);

/** Computes the saliency of Optimal Brain Surgeon for each weight, |start| / sqrt((H + d I)^-1_jj):
 * the root of the error that removing this weight alone adds, if the other weights are updated to
 * compensate. It can be the `saliency` of a laci_score. */
LAC_MUST_CHECK lac_status laci_fit_compute_obs_saliency(const laci_score_input *input, double *out,
                                                        lac_error *err);

/** Returns the peak bytes that the functions above allocate. */
uint64_t laci_fit_inverse_memory_bytes(const laci_fit *fit);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * (H + d I)^-1, and what scores that read it have in common. */
#ifndef LACI_CALIBRATE_INVERSE_IN_H
#define LACI_CALIBRATE_INVERSE_IN_H

#include "calibrate/score_in.h"

/** inverse [columns, columns], all of it. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_fit_inverse(const laci_sums *sums, double *inverse, lac_error *err);

/** The dense weights that pruning begins with: those with the least damped error without a mask,
 *  start [rows, columns] = G (H + d I)^-1, which is W_d in the symmetric form. */
LAC_MUST_CHECK lac_status laci_fit_start(const laci_sums *sums, const double *inverse,
                                         double *start, lac_error *err);

/** |start| / sqrt((H + d I)^-1_jj): the root of what removing that weight alone adds to the
 *  error, where the others follow. A saliency of laci_score. */
LAC_MUST_CHECK lac_status laci_fit_inverse_saliency(const laci_sums *sums, double *out,
                                                    lac_error *err);

/** Bytes of the three above. */
uint64_t laci_fit_inverse_memory(const laci_fit *fit);

#endif

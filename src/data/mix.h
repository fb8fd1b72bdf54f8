/* SPDX-License-Identifier: Apache-2.0
 * Labels as rows of class probabilities, smoothed, and MixUp: blends of two images and of their
 * rows (Zhang, Cisse, Dauphin, Lopez-Paz: "mixup: beyond empirical risk minimization", 2018). */
#ifndef LACI_DATA_MIX_H
#define LACI_DATA_MIX_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/** Computes labels as rows of class probabilities, smoothed: rows[i][c] = (1 - smoothing) [c is
 * label i] + smoothing / n_classes. labels: [n], 0 <= label < n_classes. rows: [n, n_classes].
 * Fails LAC_BAD_VALUE for other labels (rows are then undefined), and LAC_BAD_ARGUMENT for a
 * smoothing outside 0..1. */
LAC_MUST_CHECK lac_status laci_labels_smooth(const int32_t *labels, int n, int n_classes,
                                             double smoothing, float *rows, lac_error *err);

/** Returns MixUp's weight of the first of two blended images, drawn from Beta(alpha, alpha) for
 * this training step; 1 if alpha is 0. alpha >= 0, finite. */
double laci_mixup_draw_weight(uint64_t seed, uint64_t step, double alpha);

/** Blends item i with item n - 1 - i, in place: x[i] = share x[i] + (1 - share) x[n - 1 - i]. There
 * are n items of `size` floats each. In a shuffled batch these are random pairs. It is used for
 * images and for rows of labels. */
void laci_mixup_blend_items(double share, float *items, int n, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Policies that draw changes of images (pixel_change.h) for training: RandAugment (Cubuk, Zoph,
 * Shlens, Le, 2020), some changes of one strength, and TrivialAugment (Mueller, Hutter, 2021), one
 * change of any strength, from the wider of its tables.
 *
 * Tables of strengths are torchvision's, with 31 bins each. What is drawn follows from (seed,
 * number of the sample). */
#ifndef LACI_DATA_POLICY_H
#define LACI_DATA_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "data/augment.h"
#include "data/pixel_change.h"

/** Returns the magnitude of a change for a bin (strength), 0 .. LACI_POLICY_BINS - 1, for an image
 * of this size, without a sign. */
double laci_policy_magnitude(laci_policy_kind kind, laci_pixel_change change, int bin, int width,
                             int height);
/** Does the change's magnitude have a sign? It is then negative for half of the images. */
bool laci_policy_has_sign(laci_pixel_change change);

/** Draws the changes that the policy makes to a training sample, and makes them in place. Fails as
 * laci_pixels_change. */
LAC_MUST_CHECK lac_status laci_policy_apply(const laci_sample_change *change, const char *name,
                                            laci_image *image, laci_image *spare, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Draws synthetic images by the dead leaves model: shapes of many sizes that cover each other.
 *
 * Their statistics are near those of photographs: edges at every scale, spectra that fall with the
 * frequency, and large even areas (Lee, Mumford and Huang, "Occlusion models for natural images",
 * International Journal of Computer Vision 41, 2001). In a network that was trained on photographs
 * they give values of the usual ranges and correlations, which is what calibration needs.
 *
 * Each image depends on its number alone, so that any thread can draw any of them. */
#ifndef LACI_SYNTHETIC_LEAVES_H
#define LACI_SYNTHETIC_LEAVES_H

#include <stdint.h>

typedef struct laci_leaves laci_leaves;

#include "lacuna/status.h"

/** Prepares images of height x width pixels, each at least 1. The same seed gives the same images.
 * Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_leaves_create(uint64_t seed, int height, int width,
                                             laci_leaves **leaves, lac_error *err);
void laci_leaves_destroy(laci_leaves *leaves); /* leaves may be NULL */

/** Draws image number `at` into rgb, [3][height][width], with values from 0 to 1. scratch: [height
 * * width]. Any thread may call it. */
void laci_leaves_draw(const laci_leaves *leaves, uint64_t at, float *rgb, float *scratch);

#endif

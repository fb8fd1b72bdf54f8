/* SPDX-License-Identifier: Apache-2.0
 * A part of an image, and the random choice of the part that training uses.
 *
 * Szegedy et al., "Going deeper with convolutions" (2015): the area is drawn from 8 to 100 % of the
 * image's, the aspect ratio, width by height, from 3/4 to 4/3, uniformly in its logarithm; the
 * corner is drawn so that the part is inside the image. If ten draws do not fit, the part is the
 * largest one in the middle of the image with such an aspect ratio. torchvision's RandomResizedCrop
 * draws by the same rule. */
#ifndef LACI_DATA_REGION_H
#define LACI_DATA_REGION_H

#include <stdint.h>

typedef struct laci_region {
  int left, top, width, height; /* position and size in pixels, inside of the image; width and
                                   height are at least 1 */
} laci_region;

/** Returns the random part of an image that a training sample uses. It follows from (seed, sample)
 * and the image's size. */
laci_region laci_draw_region(uint64_t seed, uint64_t sample, int width, int height);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Rectangles of prepared images: random erasing (Zhong, Zheng, Kang, Li, Yang: "Random erasing data
 * augmentation", 2020) and CutMix (Yun, Han, Oh, Chun, Choe, Yoo: "CutMix", 2019), with the sizes
 * and places that torchvision's RandomErasing and CutMix have. Everything follows from the seed and
 * the number of the sample or step. */
#ifndef LACI_DATA_CUT_H
#define LACI_DATA_CUT_H

#include <stdbool.h>
#include <stdint.h>

/** Sizes of an image [channels, height, width]. */
typedef struct laci_plane_sizes {
  int channels, height, width;
} laci_plane_sizes;

/** Rows top .. bottom - 1 and columns left .. right - 1. */
typedef struct laci_rectangle {
  int top, left, bottom, right;
  double share; /* of the pixels outside of it */
} laci_rectangle;

/** Computes the size of an erased rectangle: `area` of the image's pixels, 0.02 to 0.33, with the
 * height `aspect` times the width. False: it is not smaller than the image in both. */
bool laci_erase_size(double area, double aspect, laci_plane_sizes sizes, int *height, int *width);

/** Sets a random rectangle to zero, which is the mean of prepared pixels, with this probability. */
void laci_erase_part(uint64_t seed, uint64_t sample, double probability, laci_plane_sizes sizes,
                     float *image);

/** Returns the rectangle around (x, y) that has the share 1 - share of the pixels, before it is cut
 * at the borders; its own share is what is left then. */
laci_rectangle laci_cut_around(double share, int y, int x, int height, int width);

/** Does this step do CutMix? alpha 0: never; with MixUp (alpha > 0), half of the steps do. */
bool laci_cutmix_is_drawn(uint64_t seed, uint64_t step, double mixup, double cutmix);
/** Draws the rectangle of a step, whose share before the cut is of Beta(alpha, alpha). */
laci_rectangle laci_cutmix_cut(uint64_t seed, uint64_t step, double alpha, int height, int width);
/** Exchanges the rectangle of image i and image n - 1 - i, as laci_mixup_items pairs them. */
void laci_cutmix_items(const laci_rectangle *cut, laci_plane_sizes sizes, float *images, int n);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Rectangles in prepared images: random erasing (Zhong, Zheng, Kang, Li, Yang: "Random erasing data
 * augmentation", 2020) and CutMix (Yun, Han, Oh, Chun, Choe, Yoo: "CutMix", 2019). Sizes and places
 * are those of torchvision's RandomErasing and CutMix. They follow from the seed and the number of
 * the sample or step. */
#ifndef LACI_DATA_CUT_H
#define LACI_DATA_CUT_H

#include <stdbool.h>
#include <stdint.h>

/** Sizes of an image [channels, height, width]. */
typedef struct laci_plane_sizes {
  int channels, height, width;
} laci_plane_sizes;

/** A rectangle of pixels: rows top .. bottom - 1 and columns left .. right - 1. */
typedef struct laci_rectangle {
  int top, left, bottom, right;
  double share; /* share of the image's pixels that are outside of the rectangle */
} laci_rectangle;

/** Computes the size of an erased rectangle: `area` of the image's pixels, 0.02 to 0.33, with the
 * height `aspect` times the width. False: the rectangle would be as high or as wide as the image,
 * or more. */
bool laci_erase_rectangle_size(double area, double aspect, laci_plane_sizes sizes, int *height,
                               int *width);

/** Sets a random rectangle to zero, which is the mean of prepared pixels, with this probability. */
void laci_erase_random_rectangle(uint64_t seed, uint64_t sample, double probability,
                                 laci_plane_sizes sizes, float *image);

/** Returns the rectangle around (x, y) that covers the fraction 1 - share of the image's pixels.
 * The rectangle is then cut at the image's borders, and its field `share` is set to the share of
 * pixels outside of it. */
laci_rectangle laci_cut_rectangle_around(double share, int y, int x, int height, int width);

/** Does this step do CutMix? Never if cutmix is 0. If mixup is above 0, too, half of the steps do.
 * */
bool laci_cutmix_is_chosen(uint64_t seed, uint64_t step, double mixup, double cutmix);
/** Draws the rectangle of a step. Its share, before it is cut at the borders, is drawn from
 * Beta(alpha, alpha). */
laci_rectangle laci_cutmix_draw_rectangle(uint64_t seed, uint64_t step, double alpha, int height,
                                          int width);
/** Exchanges the pixels in the rectangle between image i and image n - 1 - i, the pairs of
 * laci_mixup_blend_items. */
void laci_cutmix_swap_rectangles(const laci_rectangle *cut, laci_plane_sizes sizes, float *images,
                                 int n);

#endif

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
  double share; /* fraction of the image's pixels that are outside of the rectangle */
} laci_rectangle;

/** Computes the size of an erased rectangle. area: its fraction of the image's pixels, 0.02 to
 * 0.33; aspect: height / width. False: it would be at least as high, or at least as wide, as the
 * image. */
bool laci_erase_rectangle_size(double area, double aspect, laci_plane_sizes sizes, int *height,
                               int *width);

/** With the given probability, sets a random rectangle of the image to zero, which is the mean of
 * prepared pixels. */
void laci_erase_random_rectangle(uint64_t seed, uint64_t sample, double probability,
                                 laci_plane_sizes sizes, float *image);

/** Returns a rectangle around (x, y) of the fraction 1 - share of the image's pixels, cut at the
 * image's borders. Its field `share` is the fraction of pixels outside of it after the cut. */
laci_rectangle laci_cut_rectangle_around(double share, int y, int x, int height, int width);

/** Is CutMix done in this training step? Never if cutmix is 0. If both mixup and cutmix are above
 * 0, in half of the steps. */
bool laci_cutmix_is_chosen(uint64_t seed, uint64_t step, double mixup, double cutmix);
/** Draws CutMix's rectangle for a training step. Its share, before it is cut at the borders, is
 * drawn from Beta(alpha, alpha). */
laci_rectangle laci_cutmix_draw_rectangle(uint64_t seed, uint64_t step, double alpha, int height,
                                          int width);
/** Exchanges the pixels in the rectangle between images i and n - 1 - i of the batch [n, channels,
 * height, width], the same pairs as in laci_mixup_blend_items. */
void laci_cutmix_swap_rectangles(const laci_rectangle *cut, laci_plane_sizes sizes, float *images,
                                 int n);

#endif

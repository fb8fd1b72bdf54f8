/* SPDX-License-Identifier: Apache-2.0
 * Batch normalization in training, in HWC16N (window.h: [row][pixel][channel][16 images]), forward
 * and backward, some pixels at a time.
 *
 *     v  = (x - mean) * scale + shift         scale = gamma / sqrt(variance + epsilon)
 *                                             shift = beta
 *     y  = v, or max(v, 0) where a Relu follows
 *     m  = dy, or 0 where a Relu follows and not v > 0
 *     dx = scale * (m - mean(m) - (x - mean) * mean(m * (x - mean)) / (variance + epsilon))
 *
 * What the Relu let through is found again from x, by the same sum, so that nothing has to be kept
 * for it. Statistics are taken of tiles, and the caller combines these, as in T. Chan, G. Golub and
 * R. LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979: no
 * sum of squares of what has a large mean.
 *
 * With bf16 (product.h), x, y, dy and dx are bf16: two neighbouring channels share the four bytes
 * that a float takes elsewhere. All else is f32, and results are rounded at the end, to the
 * nearest.
 *
 * Sums of a channel go through the pixels in their order, a sum for each lane, then lanes together,
 * halves first. Multiplications are rounded before sums. So every variant gives the same bits.
 * image_norm_isa.c is the one text of all variants; the scalar one is the definition of right.
 * Next: engine/cpu/native/train/norm.c, the reader. */
#ifndef LACI_KERNEL_SPARSE_IMAGE_NORM_H
#define LACI_KERNEL_SPARSE_IMAGE_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_IMAGE_NORM_CHANNELS = 128 }; /* that sums are taken of at once, at most */

/** Rows of pixels of 16 images, and some consecutive channels of them. n_places: places of four
 * bytes, each a channel, or a bf16 pair of channels. */
typedef struct laci_norm_tile {
  int64_t n_rows, n_pixels, n_places;
  int64_t pixel_stride; /* floats from a pixel to the next, of all operands */
} laci_norm_tile;

/** The tile's first float, and how far its rows are apart. */
typedef struct laci_norm_from {
  const float *at;
  int64_t row_stride;
} laci_norm_from;
typedef struct laci_norm_to {
  float *at;
  int64_t row_stride;
} laci_norm_to;

/** [channels] each. */
typedef struct laci_norm_scales {
  const float *mean, *scale, *shift;
  bool relu;
} laci_norm_scales;

/** What comes off the gradient, [channels]: mean(m), and what (x - mean) is multiplied by. */
typedef struct laci_norm_slopes {
  const float *level, *slope;
} laci_norm_slopes;

/** Any alignment of floats. Any thread. */
typedef struct laci_image_norm {
  /** mean[c] of the tile's n_rows * n_pixels * 16 values, and the sum of squares around it, found
   * around the mean of the pixel in the middle. At most LACI_IMAGE_NORM_CHANNELS. */
  void (*moments)(const laci_norm_tile *t, laci_norm_from x, float *mean, float *squares);
  /** y, which may be x */
  void (*apply)(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_from x,
                laci_norm_to y);
  /** level[c] = sum of m, slope[c] = sum of m * (x - mean). At most LACI_IMAGE_NORM_CHANNELS. */
  void (*sums)(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_from x,
               laci_norm_from dy, float *const sums[2]);
  /** dx, which may be dy: scale * (m - level - (x - mean) * slope) */
  void (*gradient)(const laci_norm_tile *t, const laci_norm_scales *s, const laci_norm_slopes *off,
                   laci_norm_from x, laci_norm_from dy, laci_norm_to dx);
  /** to[i] = max(a[i] + b[i], 0) or without the bound, [n] floats or bf16 pairs; `to` may be one of
   * them */
  void (*add)(const float *a, const float *b, bool relu, int64_t n, float *to);
} laci_image_norm;

#define LACI_IMAGE_NORM_DECLARE(name, level) \
  extern const laci_image_norm laci_image_norm_##name, laci_image_norm_bf16_##name;
LACI_KERNEL_VARIANTS(LACI_IMAGE_NORM_DECLARE)
#undef LACI_IMAGE_NORM_DECLARE

/** The variants in force (cpu/cpu.h). */
const laci_image_norm *laci_image_norm_now(void);
const laci_image_norm *laci_image_norm_bf16_now(void);

#endif

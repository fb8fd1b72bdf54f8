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
 * The backward pass computes again from x which values passed the Relu, so that no mask has to be
 * stored. Statistics are computed for tiles, and the caller combines them, as in T. Chan, G. Golub
 * and R. LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979.
 * This avoids sums of squares of values that have a large mean.
 *
 * With bf16 (product.h), x, y, dy and dx are bf16: two neighbouring channels share the four bytes
 * that a float takes elsewhere. All else is f32, and results are rounded to the nearest at the end.
 *
 * The sums of a channel add pixels in order, with one sum for each lane; then the lanes are added,
 * each time the upper half to the lower half. Products are rounded before they are added. So every
 * variant gives the same bits. image_norm_isa.c is the common source of all variants; the scalar
 * variant is the reference. Caller: engine/cpu/native/train/norm.c. */
#ifndef LACI_KERNEL_SPARSE_IMAGE_NORM_H
#define LACI_KERNEL_SPARSE_IMAGE_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/variants.h"

enum {
  LACI_IMAGE_NORM_CHANNELS = 128
}; /* maximum number of channels of a call that computes
                                            sums */

/** The shape of a tile: n_rows rows of n_pixels pixels of 16 images, with some consecutive
 * channels. n_places: number of channels; with bf16, number of pairs of channels, which share four
 * bytes. */
typedef struct laci_norm_tile {
  int64_t n_rows, n_pixels, n_places;
  int64_t pixel_stride; /* number of floats from one pixel of a row to the next, the same in all
                           operands */
} laci_norm_tile;

/** A tile in an operand. at: its first float. row_stride: number of floats from one row to the
 * next. */
typedef struct laci_norm_source {
  const float *at;
  int64_t row_stride;
} laci_norm_source;
typedef struct laci_norm_target {
  float *at;
  int64_t row_stride;
} laci_norm_target;

/** The parameters of normalization, [channels] each. relu: a Relu follows. */
typedef struct laci_norm_scales {
  const float *mean, *scale, *shift;
  bool relu;
} laci_norm_scales;

/** What is subtracted from the gradient, [channels] each. offset: mean(m). slope: the factor of (x
 * - mean). */
typedef struct laci_norm_slopes {
  const float *offset, *slope;
} laci_norm_slopes;

/** The functions of one variant of the kernel. Arrays need only the alignment of floats. Any thread
 * may call them. */
typedef struct laci_image_norm {
  /** Computes, for each channel c, mean[c] of the tile's n_rows * n_pixels * 16 values, and
   * squares[c], the sum of squared distances from that mean. To avoid cancellation, it sums
   * relative to the mean of the tile's middle pixel. Channels: at most LACI_IMAGE_NORM_CHANNELS. */
  void (*moments)(const laci_norm_tile *t, laci_norm_source x, float *mean, float *squares);
  /** Computes y from x, as defined at the top of this file. y may be x. */
  void (*apply)(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_source x,
                laci_norm_target y);
  /** Computes sums[0][c] = sum of m and sums[1][c] = sum of m * (x - mean). Channels: at most
   * LACI_IMAGE_NORM_CHANNELS. */
  void (*sums)(const laci_norm_tile *t, const laci_norm_scales *s, laci_norm_source x,
               laci_norm_source dy, float *const sums[2]);
  /** Computes dx = scale * (m - offset - (x - mean) * slope), the gradient of x. dx may be dy. */
  void (*gradient)(const laci_norm_tile *t, const laci_norm_scales *s, const laci_norm_slopes *off,
                   laci_norm_source x, laci_norm_source dy, laci_norm_target dx);
  /** Adds two arrays of n floats (or bf16 pairs): to[i] = a[i] + b[i], or with relu, max(a[i] +
   * b[i], 0). `to` may be a or b. */
  void (*add)(const float *a, const float *b, bool relu, int64_t n, float *to);
} laci_image_norm;

#define LACI_IMAGE_NORM_DECLARE(name, level) \
  extern const laci_image_norm laci_image_norm_##name, laci_image_norm_bf16_##name;
LACI_KERNEL_VARIANTS(LACI_IMAGE_NORM_DECLARE)
#undef LACI_IMAGE_NORM_DECLARE

/** Return the variants for floats and for bf16, for the SIMD level in force (cpu/cpu.h). */
const laci_image_norm *laci_image_norm_variant(void);
const laci_image_norm *laci_image_norm_bf16_variant(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Resizes images of 3-byte pixels along one axis, and converts the result to normalized floats.
 * Every pixel of the result is a weighted sum of neighbours, in integers; weights have 22 fraction
 * bits:
 *
 *     to = min(255, (2^21 + sum of weight[k] from[first + k]) / 2^22, rounded down)
 *
 * All variants give the same bytes and floats. resize_scalar.c is the reference. Read next:
 * data/resize.c, which makes the weights. */
#ifndef LACI_KERNEL_IMAGE_RESIZE_H
#define LACI_KERNEL_IMAGE_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_TAP_BITS = 22 }; /* fraction bits of a weight */

enum {
  LACI_TAP_LOW_BITS = 11, /* bits of the lower half of a weight */
  LACI_TAP_GROUP = 4,     /* taps that vector code processes at a time */
  LACI_RESIZE_SLACK = 16, /* bytes after the last row that may be read; their values do not
                             matter */
};

/** Two neighbouring weights, each cut into an upper and a lower half. Of `high` and of `low`, the
 * 16 low bits are the half of the first weight, and the 16 high bits that of the second. */
typedef struct laci_tap_pair {
  uint32_t high, low;
} laci_tap_pair;

/** The taps of one pixel of the result. */
typedef struct laci_tap_span {
  int first, count;           /* index of the first source pixel, and number of source pixels, >=
                                 1 */
  const int32_t *weight;      /* [count] weight of each source pixel, 0 .. 2^22; the weights add up
                                 to about 2^22 */
  const laci_tap_pair *pairs; /* the same weights in pairs, with zeros up to a multiple of
                                 LACI_TAP_GROUP taps */
} laci_tap_span;

/** n rows of bytes; strides are bytes from a row to the next. */
typedef struct laci_resize_rows {
  const uint8_t *from;
  uint8_t *to;
  size_t from_stride, to_stride;
  int n;
} laci_resize_rows;

/** How grey levels become floats: (grey - mean) / std, for each channel. */
typedef struct laci_image_scale {
  float mean[3], std[3];
  int n_channels; /* 3; or 1: only the first channel is converted */
  bool mirrored;  /* rows are written in reverse order of pixels */
} laci_image_scale;

typedef struct laci_image_resize {
  /** Resizes every row horizontally: to[n_spans][3] from pixels [..][3]. LACI_RESIZE_SLACK bytes
   * after the last row of `from` must be readable. */
  void (*across)(const laci_tap_span *spans, int n_spans, const laci_resize_rows *rows);
  /** Computes one row of a vertical resize: to[stride] is the weighted sum of the rows of `rows`
   * from span.first on; rows are `stride` bytes long. */
  void (*down)(laci_tap_span span, const uint8_t *rows, size_t stride, uint8_t *to);
  /** Converts a row of pixels [width][3] to a row of floats [width] for each channel.
   * channel_stride: floats from the row of a channel to that of the next channel. */
  void (*scale)(const laci_image_scale *scale, const uint8_t *row, size_t width, float *to,
                size_t channel_stride);
} laci_image_resize;

#define LACI_IMAGE_RESIZE_DECLARE(name, level) \
  extern const laci_image_resize laci_image_resize_##name;
LACI_KERNEL_VARIANTS(LACI_IMAGE_RESIZE_DECLARE)
#undef LACI_IMAGE_RESIZE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
const laci_image_resize *laci_image_resize_variant(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * One axis of a resize, of pixels of three bytes, and what follows it. Every pixel of the result is
 * a weighted sum of neighbours, in integers, weights as fractions of 22 bits:
 *
 *     to = min(255, (2^21 + sum of weight[k] from[first + k]) / 2^22, rounded down)
 *
 * All variants give the same bytes and floats. resize_scalar.c is the definition of right. Next:
 * data/resize.c, which makes the weights. */
#ifndef LACI_KERNEL_IMAGE_RESIZE_H
#define LACI_KERNEL_IMAGE_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_TAP_BITS = 22 }; /* fraction of a weight */

enum {
  LACI_TAP_LOW_BITS = 11, /* bits of the lower half of a weight */
  LACI_TAP_GROUP = 4,     /* taps that vector code processes at a time */
  LACI_RESIZE_SLACK = 16, /* bytes after the last row that may be read; their values do not
                             matter */
};

/** Two neighbouring weights cut into halves: 16 bits of the first below 16 of the second. */
typedef struct laci_tap_pair {
  uint32_t high, low;
} laci_tap_pair;

/** The taps of one pixel of the result. */
typedef struct laci_tap_span {
  int first, count;           /* pixels of the source; count >= 1 */
  const int32_t *weight;      /* [count], 0 .. 2^22, about 2^22 in all */
  const laci_tap_pair *pairs; /* the same two by two, zeros up to a multiple of LACI_TAP_GROUP */
} laci_tap_span;

/** Rows of bytes, `stride` from one to the next. */
typedef struct laci_resize_rows {
  const uint8_t *from;
  uint8_t *to;
  size_t from_stride, to_stride;
  int n;
} laci_resize_rows;

/** What becomes of grey levels: (grey - mean) / std, of each channel. */
typedef struct laci_image_scale {
  float mean[3], std[3];
  int n_channels; /* 3, or 1: the first alone */
  bool mirrored;  /* the last pixel of a row comes first */
} laci_image_scale;

typedef struct laci_image_resize {
  /** Every row: to[n_spans][3] from pixels [..][3]. After the last row of `from`, LACI_RESIZE_SLACK
   * more bytes are readable. */
  void (*across)(const laci_tap_span *spans, int n_spans, const laci_resize_rows *rows);
  /** One row down: to[stride], a sum of the rows span.first ... of `rows`, each of stride bytes. */
  void (*down)(laci_tap_span span, const uint8_t *rows, size_t stride, uint8_t *to);
  /** A row of pixels [width][3] to rows of floats [width]; channel_stride: the distance from one
   * channel's row to the next's. */
  void (*scale)(const laci_image_scale *scale, const uint8_t *row, size_t width, float *to,
                size_t channel_stride);
} laci_image_resize;

#define LACI_IMAGE_RESIZE_DECLARE(name, level) \
  extern const laci_image_resize laci_image_resize_##name;
LACI_KERNEL_VARIANTS(LACI_IMAGE_RESIZE_DECLARE)
#undef LACI_IMAGE_RESIZE_DECLARE

/** The variant in force (cpu/cpu.h). */
const laci_image_resize *laci_image_resize_now(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What a layer multiplies its weights with: a vector x for every position of its output, with a
 * column for every tap and channel, tap-major, then channel.
 *
 * Convolutions: x is a patch of the input. Transposed convolutions: a patch of the input spread
 * apart, so that an output where several taps meet is one product, too. Matrix products: one tap;
 * an image is a row, or where the value is read transposed, an input position is one. */
#ifndef LACI_KERNEL_GRAM_UNFOLD_H
#define LACI_KERNEL_GRAM_UNFOLD_H

#include <stdbool.h>
#include <stdint.h>

enum { LACI_UNFOLD_AXES = 3 };

/** Along one axis, position o and tap t meet at input position
 *    o * stride - pad + t * dilation                  (convolution)
 *    (o + pad - t * dilation) / stride, where whole   (transposed) */
typedef struct laci_unfold_axis {
  int64_t in, out, kernel, stride, dilation, pad;
} laci_unfold_axis;

/** Inputs of a layer in a value [images, groups * channels, in ...]; leading axes that are not used
 * have size 1. */
typedef struct laci_unfold {
  int64_t images, groups, channels; /* channels: of a group */
  laci_unfold_axis axis[LACI_UNFOLD_AXES];
  bool transposed;
} laci_unfold;

int64_t laci_unfold_taps(const laci_unfold *unfold);
int64_t laci_unfold_columns(const laci_unfold *unfold); /* taps * channels */
int64_t laci_unfold_positions(const laci_unfold *unfold);
bool laci_unfold_equal(const laci_unfold *a, const laci_unfold *b);

/** Some positions of one group, a line a column. */
typedef struct laci_unfold_lines {
  const laci_unfold *unfold;
  const float *value;
  int64_t group, first, n;  /* positions [first, first + n) of */
  const int64_t *positions; /* these; NULL: of all */
  float *lines;             /* [columns, distance]; zeros after n */
  int64_t distance;         /* >= n */
} laci_unfold_lines;

/** Lines of columns [begin, end). */
void laci_unfold_fill(const laci_unfold_lines *l, int64_t begin, int64_t end);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The input vectors that a layer multiplies its weights with: a vector x for every position of the
 * output. Its columns are ordered by tap, then by channel.
 *
 * Of a convolution, x is a patch of the input. Of a transposed convolution, x is a patch of the
 * input with zeros inserted between pixels, so that every output is one product, too. A matrix
 * product has one tap; each row of its input is an image, or, if the input is read transposed, a
 * position. */
#ifndef LACI_KERNEL_GRAM_UNFOLD_H
#define LACI_KERNEL_GRAM_UNFOLD_H

#include <stdbool.h>
#include <stdint.h>

enum { LACI_UNFOLD_AXES = 3 };

/** Along one axis, position o and tap t meet at input position
 *    o * stride - pad + t * dilation                  (convolution)
 *    (o + pad - t * dilation) / stride, where it is an integer   (transposed) */
typedef struct laci_unfold_axis {
  int64_t in, out, kernel, stride, dilation, pad;
} laci_unfold_axis;

/** The shape of a layer's input value, [images, groups * channels, in ...], and how windows are
 * read from it. Leading axes that are not used have size 1. */
typedef struct laci_unfold {
  int64_t images, groups, channels; /* number of images; of groups; of channels of one group */
  laci_unfold_axis axis[LACI_UNFOLD_AXES];
  bool transposed;
} laci_unfold;

int64_t laci_unfold_n_taps(const laci_unfold *unfold);
int64_t laci_unfold_n_columns(const laci_unfold *unfold); /* taps * channels */
int64_t laci_unfold_n_positions(const laci_unfold *unfold);
bool laci_unfold_equal(const laci_unfold *a, const laci_unfold *b);

/** The input vectors of some positions of one group, transposed: a line for each column of x. */
typedef struct laci_unfold_lines {
  const laci_unfold *unfold;
  const float *value;
  int64_t group, first, n;  /* number of the group; the lines have positions [first, first + n) of
                               `positions` */
  const int64_t *positions; /* list of positions, of which [first, first + n) are used; NULL:
                               position k is k */
  float *lines;             /* [columns, distance] out: one line for each column of x; elements from
                               n on are set to zero */
  int64_t distance;         /* floats from the beginning of a line to the next, >= n */
} laci_unfold_lines;

/** Fills the lines of columns [begin, end). */
void laci_unfold_fill_lines(const laci_unfold_lines *l, int64_t begin, int64_t end);

#endif

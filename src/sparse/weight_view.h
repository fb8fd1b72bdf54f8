/* SPDX-License-Identifier: Apache-2.0
 * Describes a stored tensor as a weight that can be pruned: which axis has the input channels, and
 * what the score of an element is. */
#ifndef LACI_SPARSE_WEIGHT_VIEW_H
#define LACI_SPARSE_WEIGHT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/dtype.h"

typedef struct laci_byte_source laci_byte_source;

/** The pattern N:M, 1 <= n < m <= 64: at most n nonzeros in every aligned block of m input
 * channels. */
typedef struct laci_pattern {
  int n, m;
} laci_pattern;

enum { LACI_MOST_PATTERN_M = 64 };

/** The shape of a mask's blocks (mask.h). */
typedef enum laci_mask_form {
  LACI_MASK_1D,
  LACI_MASK_2D_GREEDY,
  LACI_MASK_2D_BEST,
  LACI_MASK_SHARED, /* blocks of V rows that share their columns (V:N:M) */
} laci_mask_form;

typedef struct laci_mask_rule {
  laci_pattern pattern;
  laci_mask_form form;
  int v; /* V of the pattern V:N:M, the number of rows that share columns; 0 unless form is
            LACI_MASK_SHARED */
} laci_mask_rule;

/** How a stored tensor is seen as a weight. Element (o, c, i) is at flat index (o * columns + c) *
 * inner + i; c is the input channel ("column"), and every (o, i) is a row.
 *
 * Columns are cut into runs of `run`: one run for each convolution group if the axis has all their
 * channels; else run == columns. Blocks of m are aligned inside a run, and the last block of a run
 * may be partial.
 *
 * The score of element e is |w[e] - zero[k]| * |scale[k]|, or its square. k is (e / scale_stride) %
 * n_scales, or the scale of its block (laci_scale_index_of). Without scales it is |w[e]|. A pruned
 * element gets the value zero[k] (0 without zeros). */
typedef struct laci_weight_view {
  const char *name; /* name of the stored tensor, for messages */
  lac_dtype dtype;  /* element type, any type of floats or integers */
  /* address of the elements; if bytes_from is set, they need not be in memory */
  const uint8_t *bytes;
  /* reads elements that are not in memory (laci_weight_acquire); NULL: all are in memory */
  const laci_byte_source *bytes_from;
  int64_t outer, columns, inner, run;
  int64_t n_scales, scale_stride;  /* n_scales: number of scales; 0: there are none. scale_stride:
                                      number of neighbouring elements that share a scale */
  int64_t scale_block, scale_size; /* for block-wise scales: along an axis of size scale_size,
                                      scale_block neighbouring elements share a scale, and every
                                      index of the other axes has scales of its own. scale_block is
                                      0 if scales are not block-wise */
  const double *scale;             /* [n_scales] scales; NULL: all are 1 */
  const double *zero;              /* [n_scales] zero points; NULL: all are 0 */
  bool squared;                    /* true: scores are squared */
  /* output channels, for masks whose blocks span several rows (mask.h): rows is their number (0:
   * not known), row_step the number of elements between two. Blocks are aligned inside runs of
   * row_run rows (one convolution group) */
  int64_t rows, row_step, row_run;
  const float *score; /* scores given by the caller, >= 0, in the weight's layout, which replace
                         those from the elements; NULL: none */
  const struct laci_weight_grid *grid; /* grid to which the network quantizes the weight; NULL:
                                          elements are used as they are stored */
} laci_weight_view;

/** The grid of a float weight that the network quantizes and dequantizes. x becomes (q(x / scale +
 * zero) - zero) * scale, where q rounds to the nearest element of `to.dtype`. The result is scored.
 * The stored element decides whether it counts as zero. */
typedef struct laci_weight_grid {
  laci_weight_view to; /* dtype, scales and zero points of the quantized weight; other fields are
                          not used */
  lac_dtype precision; /* type in which the quotient x / scale is computed */
  unsigned rounding;   /* rounding mode for floats (tensor/narrow.h) */
  bool after_scales;   /* true: the view's own scales are applied before the grid; false: after
                          it */
} laci_weight_grid;

/** Returns the index of the scale of element e. n_scales must not be 0. */
static inline int64_t laci_scale_index_of(const laci_weight_view *w, int64_t e) {
  int64_t place = e / w->scale_stride;
  if (w->scale_block == 0) return place % w->n_scales;
  int64_t n_blocks = (w->scale_size - 1) / w->scale_block + 1;
  int64_t block = place / w->scale_size * n_blocks + place % w->scale_size / w->scale_block;
  return block * w->scale_stride + e % w->scale_stride;
}

#endif

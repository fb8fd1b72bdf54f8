/* SPDX-License-Identifier: Apache-2.0
 * A stored tensor seen as a prunable weight: which axis holds the input channels, and how an
 * element is scored. */
#ifndef LACI_SPARSE_WEIGHT_VIEW_H
#define LACI_SPARSE_WEIGHT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/dtype.h"

typedef struct laci_byte_source laci_byte_source;

/** Any N:M, 1 <= n < m <= 64: at most n non-zeros in every aligned block of m input channels. */
typedef struct laci_pattern {
  int n, m;
} laci_pattern;

enum { LACI_MOST_PATTERN_M = 64 };

/** The shape of a mask's blocks (mask.h). */
typedef enum laci_mask_form {
  LACI_MASK_1D,
  LACI_MASK_2D_GREEDY,
  LACI_MASK_2D_BEST,
  LACI_MASK_SHARED, /* blocks of V rows that share their columns: V:N:M */
} laci_mask_form;

typedef struct laci_mask_rule {
  laci_pattern pattern;
  laci_mask_form form;
  int v; /* V of the pattern V:N:M, the number of rows that share columns; 0 unless form is
            LACI_MASK_SHARED */
} laci_mask_rule;

/** Element (o, c, i) is at flat index (o * columns + c) * inner + i; c is the input channel
 * ("column"), and every (o, i) is a row. Columns are cut into runs of `run` (one a convolution
 * group where the C axis holds them all; else run == columns); blocks of m are aligned inside a
 * run, the last one of a run may be partial. Score of element e: |w[e] - zero[k]| * |scale[k]|, k =
 * (e / scale_stride) % n_scales, or that of its block (laci_scale_index_of); without scales:
 * |w[e]|; or its square. A pruned element gets the value zero[k] (0 without zeros). */
typedef struct laci_weight_view {
  const char *name; /* stored tensor, for messages */
  lac_dtype dtype;  /* any of floats or integers */
  /* address of the elements, which need not be in memory if bytes_from is set */
  const uint8_t *bytes;
  /* reads elements that are not in memory (laci_weight_acquire); NULL: all are in memory */
  const laci_byte_source *bytes_from;
  int64_t outer, columns, inner, run;
  int64_t n_scales, scale_stride;  /* number of scales (0: there are none), and number of
                                      neighbouring elements that share one */
  int64_t scale_block, scale_size; /* block-wise scales: along an axis of size scale_size,
                                      scale_block neighbouring elements share a scale; every index
                                      of the other axes has separate scales. scale_block is 0 where
                                      scales are not block-wise */
  const double *scale;             /* [n_scales] the scales; NULL: all are 1 */
  const double *zero;              /* [n_scales] the zero points; NULL: all are 0 */
  bool squared;                    /* the score of an element is the square of the value above */
  /* Output channels, for masks whose blocks span several rows (mask.h): `rows` of them, row_step
   * elements apart. Blocks are aligned inside runs of row_run rows (one convolution group). rows 0:
   * not known. */
  int64_t rows, row_step, row_run;
  const float *score; /* scores given by the caller, >= 0, in the weight's layout, used instead of
                         those from the elements; NULL: none */
  const struct laci_weight_grid *grid; /* NULL: elements are used as they are stored */
} laci_weight_view;

/** Describes a float weight that the network quantizes and dequantizes: x becomes (q(x / scale +
 * zero) - zero) * scale, where q rounds to the nearest element of `to.dtype`. The result is scored;
 * the stored element decides whether it is zero. */
typedef struct laci_weight_grid {
  laci_weight_view to; /* dtype, scales and zero points of the quantized weight; its other fields
                          are not used */
  lac_dtype precision; /* type in which the quotient is computed */
  unsigned rounding;   /* rounding mode for floats (tensor/narrow.h) */
  bool after_scales;   /* the weight is multiplied by the view's own scales before it is quantized
                          to the grid; false: after that */
} laci_weight_grid;

/** Returns the index of element e's scale; n_scales must not be 0. */
static inline int64_t laci_scale_index_of(const laci_weight_view *w, int64_t e) {
  int64_t place = e / w->scale_stride;
  if (w->scale_block == 0) return place % w->n_scales;
  int64_t n_blocks = (w->scale_size - 1) / w->scale_block + 1;
  int64_t block = place / w->scale_size * n_blocks + place % w->scale_size / w->scale_block;
  return block * w->scale_stride + e % w->scale_stride;
}

#endif

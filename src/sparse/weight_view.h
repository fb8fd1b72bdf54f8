/* SPDX-License-Identifier: Apache-2.0
 * A stored tensor seen as a prunable weight: which of its axes is reduced over, and how an element
 * is scored. */
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

/** Which elements a mask's blocks hold together (mask.h). */
typedef enum laci_mask_form {
  LACI_MASK_1D,
  LACI_MASK_2D_GREEDY,
  LACI_MASK_2D_BEST,
  LACI_MASK_SHARED, /* V:N:M */
} laci_mask_form;

typedef struct laci_mask_rule {
  laci_pattern pattern;
  laci_mask_form form;
  int v; /* rows that share columns; 0 unless LACI_MASK_SHARED */
} laci_mask_rule;

/** Element (o, c, i) is at flat index (o * columns + c) * inner + i; c is the input channel
 * ("column"), and every (o, i) is a row. Columns are cut into runs of `run` (one a convolution
 * group where the C axis holds them all; else run == columns); blocks of m are aligned inside a
 * run, the last one of a run may be partial. Score of element e: |w[e] - zero[k]| * |scale[k]|, k =
 * (e / scale_stride) % n_scales, or that of its block (laci_scale_of); without scales: |w[e]|; or
 * its square. A pruned element gets the value zero[k] (0 without zeros). */
typedef struct laci_weight_view {
  const char *name;                   /* stored tensor, for messages */
  lac_dtype dtype;                    /* any of floats or integers */
  const uint8_t *bytes;               /* in memory; else: */
  const laci_byte_source *bytes_from; /* not NULL: where they are (laci_weight_hold) */
  int64_t outer, columns, inner, run;
  int64_t n_scales, scale_stride;  /* n_scales 0: none */
  int64_t scale_block, scale_size; /* blocks along an axis of that size, whose scales differ in all
                                      other axes, too; 0: none */
  const double *scale;             /* [n_scales] or NULL (1) */
  const double *zero;              /* [n_scales] or NULL (0) */
  bool squared;                    /* scores are squares */
  /* Output channels, for masks whose blocks hold several rows (mask.h): `rows` of them, row_step
   * elements apart, blocks aligned inside row_run (one convolution group's). rows 0: unknown. */
  int64_t rows, row_step, row_run;
  const float *score; /* scores of somebody else, >= 0, of the weight's layout, in the place of the
                         above; NULL: none */
  const struct laci_weight_grid *grid; /* NULL: elements are used as they are stored */
} laci_weight_view;

/** A float that is quantized and dequantized before the layer: x becomes
 * (q(x / scale + zero) - zero) * scale, q the nearest element of `to.dtype`; that is what is
 * scored. What is stored decides whether an element is zero. */
typedef struct laci_weight_grid {
  laci_weight_view to; /* dtype, scales and zero points */
  lac_dtype precision; /* of the quotient */
  unsigned rounding;   /* of floats (tensor/narrow.h) */
  bool after_scales;   /* the view's own scales come before it; else after it */
} laci_weight_grid;

/** k of element e, with scales. */
static inline int64_t laci_scale_of(const laci_weight_view *w, int64_t e) {
  int64_t place = e / w->scale_stride;
  if (w->scale_block == 0) return place % w->n_scales;
  int64_t n_blocks = (w->scale_size - 1) / w->scale_block + 1;
  int64_t block = place / w->scale_size * n_blocks + place % w->scale_size / w->scale_block;
  return block * w->scale_stride + e % w->scale_stride;
}

#endif

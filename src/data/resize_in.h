/* SPDX-License-Identifier: Apache-2.0
 * One axis of a resize: which input pixels contribute to each pixel of the result, and with what
 * weight. prepare.h has the formula; kernel/image/resize.h applies the weights. */
#ifndef LACI_DATA_RESIZE_IN_H
#define LACI_DATA_RESIZE_IN_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/image/resize.h"
#include "lacuna/status.h"

/** The weights with which one axis of an image is resized. Zero-initialized, there are none; the
 * next laci_resize_taps_compute reuses the memory. */
typedef struct laci_taps {
  int n;                /* number of pixels of the result */
  laci_tap_span *spans; /* [n] for each pixel of the result, its range of input pixels and the
                           address of their weights */
  int32_t *weights;
  laci_tap_pair *pairs;
  double *scratch; /* the weights of one pixel before they are rounded */
  size_t n_spans, n_weights, n_pairs, n_scratch;
} laci_taps;

/** Computes the weights for pixels [first, first + n) of an axis that is resized from `in` to `out`
 * pixels. */
LAC_MUST_CHECK lac_status laci_resize_taps_compute(laci_taps *taps, int in, int64_t out,
                                                   int64_t first, int n, lac_error *err);
void laci_resize_taps_clear(laci_taps *taps);

#endif

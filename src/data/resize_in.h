/* SPDX-License-Identifier: Apache-2.0
 * One axis of a resize: which pixels go into each pixel of the result, and with what weight.
 * prepare.h has the formula. */
#ifndef LACI_DATA_RESIZE_IN_H
#define LACI_DATA_RESIZE_IN_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

enum { LACI_TAP_BITS = 22 }; /* fraction of a weight */

/** The taps of one pixel of the result. */
typedef struct laci_tap_span {
  int first, count;
  const int32_t *weight; /* [count] */
} laci_tap_span;

/** Zero-initialised is empty; the memory is used again. */
typedef struct laci_taps {
  int n;                /* pixels of the result */
  laci_tap_span *spans; /* [n] */
  int32_t *weights;
  double *scratch; /* of one pixel */
  size_t n_spans, n_weights, n_scratch;
} laci_taps;

/** Pixels [first, first + n) of an axis that shrinks or grows from `in` to `out` pixels. */
LAC_MUST_CHECK lac_status laci_taps_set(laci_taps *taps, int in, int64_t out, int64_t first, int n,
                                        lac_error *err);
void laci_taps_clear(laci_taps *taps);

/** One row across: to[n][3] from a row of pixels [*][3]. */
void laci_taps_across(const laci_taps *taps, const uint8_t *from, uint8_t *to);

/** One row down: to[n_bytes], a weighted sum of rows of `stride` bytes; `rows` is row 0 of the
 * image. sums: scratch of n_bytes. */
void laci_taps_down(laci_tap_span span, const uint8_t *rows, size_t stride, uint32_t *sums,
                    uint8_t *to);

#endif

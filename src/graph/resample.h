/* SPDX-License-Identifier: Apache-2.0
 * How Resize and Upsample compute an axis, for engines with kernels of their own: every output
 * position is a weighted sum of input positions. */
#ifndef LACI_GRAPH_RESAMPLE_H
#define LACI_GRAPH_RESAMPLE_H

#include "graph/op.h"

/** The input positions of one axis, and their weights. */
typedef struct laci_resample_taps {
  int64_t n_out, width; /* number of output positions (0: the axis is not resampled), and number of
                           weights for each of them */
  int64_t *first;       /* [n_out] the first input position; it may be outside of the input, whose
                           border is read there. INT64_MIN: the output is a given number */
  double *weight;       /* [n_out, width] the weights of each output position */
} laci_resample_taps;

/** A Resize or Upsample from x to y. y has at least one element. */
typedef struct laci_resampled {
  const laci_node *node;
  const laci_shape *x, *y;
  const laci_buf *const *operands; /* [n_inputs] the node's inputs; NULL where absent; the first one
                                      is not read */
} laci_resampled;

/** Computes the taps of an axis; there are none after a failure. */
LAC_MUST_CHECK lac_status laci_resample_find_taps(const laci_resampled *of, int axis,
                                                  laci_resample_taps *taps, lac_error *err);
void laci_resample_clear_taps(laci_resample_taps *taps);

#endif

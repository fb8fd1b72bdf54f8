/* SPDX-License-Identifier: Apache-2.0
 * Which element of its input a Pad reads at each output position, for engines with kernels of
 * their own. */
#ifndef LACI_GRAPH_PAD_H
#define LACI_GRAPH_PAD_H

#include "graph/op.h"

typedef enum laci_pad_mode {
  LACI_PAD_CONSTANT,
  LACI_PAD_REFLECT,
  LACI_PAD_EDGE,
  LACI_PAD_WRAP
} laci_pad_mode;

/** One axis of a Pad: the number of elements added `before` and `after` the input's (negative:
 * removed), and the input's `size`. */
typedef struct laci_pad_axis {
  laci_pad_mode mode;
  int64_t before, after, size;
} laci_pad_axis;

/** Reads the attribute "mode". */
LAC_MUST_CHECK lac_status laci_pad_read_mode(const laci_node *node, laci_pad_mode *mode,
                                             lac_error *err);
/** Returns the position of x that output position o reads, or -1: the constant. Where one side is
 * cropped and the other padded, x is cropped first. */
int64_t laci_pad_source_position(const laci_pad_axis *pad, int64_t o);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Resampling of a tensor, one axis at a time: every output position is a weighted sum of input
 * positions. Users: resize.c and the older upsample.c. */
#ifndef LACI_GRAPH_OPS_SHARED_RESAMPLE_IN_H
#define LACI_GRAPH_OPS_SHARED_RESAMPLE_IN_H

#include "graph/op.h"

typedef enum laci_resample_mode { LACI_NEAREST, LACI_LINEAR, LACI_CUBIC } laci_resample_mode;

/** How an output position maps to a position in the input (ONNX's
 * coordinate_transformation_mode). */
typedef enum laci_resample_place {
  LACI_HALF_PIXEL,
  LACI_HALF_PIXEL_SYMMETRIC,
  LACI_PYTORCH_HALF_PIXEL,
  LACI_ALIGN_CORNERS,
  LACI_ASYMMETRIC,
  LACI_CROP_AND_RESIZE,
  LACI_HALF_PIXEL_FOR_NEAREST,
} laci_resample_place;

typedef enum laci_resample_round {
  LACI_ROUND_PREFER_FLOOR,
  LACI_ROUND_PREFER_CEIL,
  LACI_ROUND_FLOOR,
  LACI_ROUND_CEIL,
  LACI_ROUND_OLD, /* before opset 11: up along an axis that gets smaller, else down */
} laci_resample_round;

typedef struct laci_resampling {
  laci_resample_mode mode;
  laci_resample_place place;
  laci_resample_round round;
  /* outside_value: for positions that a crop reads outside of the input */
  double cubic_a, outside_value;
  bool antialias, exclude_outside;
} laci_resampling;

typedef struct laci_resample_axis {
  /* output size / input size, as given; it need not be the exact quotient */
  double scale;
  double crop_begin, crop_end; /* where the crop of LACI_CROP_AND_RESIZE begins and ends, as
                                  fractions of the input's size */
} laci_resample_axis;

/** Computes output 0: input 0 resampled along every axis whose size differs or whose scale is not
 * 1. */
LAC_MUST_CHECK lac_status laci_resample_all_axes(const laci_eval *eval,
                                                 const laci_resampling *resize,
                                                 const laci_resample_axis *axes);

/** Reads what a Resize or an Upsample does with each axis of x: resize.c, upsample.c. */
typedef lac_status laci_resample_describe(const laci_node *node, const laci_shape *x,
                                          const laci_buf *const *operands, laci_resampling *how,
                                          laci_resample_axis *axes, lac_error *err);
laci_resample_describe laci_resize_describe, laci_upsample_describe;

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A layer as a matrix product: what its rows and columns are in the stored weight, and where its
 * inputs lie in the value that it reads. Private to calibrate.
 *
 *   y[o, p] = sum_j W[o, j] x[j, p],   j = tap * channels + channel,   for every group by itself
 *
 * Conv: x are patches; ConvTranspose: patches of the input spread apart; Gemm and MatMul: one tap,
 * a position a row (or a column, where they read the value transposed). */
#ifndef LACI_CALIBRATE_LAYER_IN_H
#define LACI_CALIBRATE_LAYER_IN_H

#include "calibrate/network_in.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_layer laci_layer;

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

/** rows [n, columns]: x of some positions in one group of `value`. */
typedef struct laci_unfold_of {
  const float *value;
  int64_t group, n;
  const int64_t *positions; /* [n] */
} laci_unfold_of;
void laci_unfold_rows(const laci_unfold *unfold, const laci_unfold_of *of, float *rows);

/** A layer that can be calibrated. */
typedef struct laci_matrix_layer {
  int layer; /* of the analysis */
  int node, stored;
  int port;                              /* of the weight */
  int value;                             /* that it reads */
  int64_t rows, columns, channels, taps; /* of a group */
  int64_t k_stride, c_stride;            /* in the stored weight */
  bool groups_along_c;
  laci_unfold unfold;
} laci_matrix_layer;

/** NULL: *out is the layer; else why it cannot be calibrated (a text of the network's arena or a
 * constant one; no memory: a text, too). */
const char *laci_matrix_layer_of(const laci_analysis *analysis, int layer, laci_network *network,
                                 laci_matrix_layer *out);

/** One group's matrix, [rows, columns]. */
typedef struct laci_group_matrix {
  int64_t group;
  double *elements;
  uint8_t *mask; /* 1 = kept */
} laci_group_matrix;

/** Out of the bytes of the stored tensor (the mask stays as it is), and into bytes and mask of the
 * stored tensor. */
LAC_MUST_CHECK lac_status laci_matrix_layer_gather(const laci_matrix_layer *l,
                                                   const laci_network *network,
                                                   const uint8_t *bytes,
                                                   const laci_group_matrix *to, lac_error *err);
void laci_matrix_layer_scatter(const laci_matrix_layer *l, const laci_network *network,
                               const laci_group_matrix *from, uint8_t *bytes, uint8_t *mask);

#endif

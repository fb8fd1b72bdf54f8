/* SPDX-License-Identifier: Apache-2.0
 * A layer as a matrix product: what its rows and columns are in the stored weight, and where its
 * inputs are in the value that it reads. Private to calibrate.
 *
 *   y[o, p] = sum_j W[o, j] x[j, p],   j = tap * channels + channel,   for every group by itself
 *
 * Conv: x are patches; ConvTranspose: patches of the input spread apart; Gemm and MatMul: one tap,
 * a position a row (or a column, where they read the value transposed). */
#ifndef LACI_CALIBRATE_LAYER_IN_H
#define LACI_CALIBRATE_LAYER_IN_H

#include "calibrate/network_in.h"
#include "kernel/gram/unfold.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_layer laci_layer;

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

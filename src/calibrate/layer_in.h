/* SPDX-License-Identifier: Apache-2.0
 * A layer as a matrix product: where the matrix's elements are in the stored weight, and where the
 * inputs x are in the value that the layer reads. Private to calibrate.
 *
 *   y[o, p] = sum_j W[o, j] x[j, p],   j = tap * channels + channel,   in each group
 *
 * Conv: x are patches of the input; ConvTranspose: patches of the input with zeros inserted between
 * its elements; Gemm and MatMul: one tap, and each row of the value is a position (each column,
 * where the value is read transposed). */
#ifndef LACI_CALIBRATE_LAYER_IN_H
#define LACI_CALIBRATE_LAYER_IN_H

#include "calibrate/network_in.h"
#include "kernel/gram/unfold.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_layer laci_layer;

/** A layer that can be calibrated, as a matrix product. */
typedef struct laci_matrix_layer {
  int layer; /* index of the layer in laci_analysis.layers */
  int node, stored;
  int port;                              /* index of the node's input that is the weight */
  int value;                             /* index of the value that the layer reads as data */
  int64_t rows, columns, channels, taps; /* size of the weight matrix of one group: columns =
                                            channels * taps (kernel positions) */
  int64_t k_stride, c_stride;            /* distance in the stored weight, in elements, from an
                                            output channel to the next (k), and from an input
                                            channel to the next (c) */
  bool groups_along_c;
  bool is_recurrent; /* the weight W or R of an LSTM, GRU or RNN (recurrent_in.h) */
  laci_unfold unfold;
} laci_matrix_layer;

/** Describes the layer in *out and returns NULL, or returns why it cannot be calibrated: a static
 * text, or one in the network's arena. Lack of memory is reported as such a text, too. */
const char *laci_matrix_layer_init(const laci_analysis *analysis, int layer, laci_network *network,
                                   laci_matrix_layer *out);

/** Fills in the windows of a Conv or ConvTranspose with input x and output y. Other axes of *u must
 * have size 1. Returns NULL, or why it cannot be described. Unknown sizes stay symbols. */
const char *laci_describe_windows(const laci_node *node, const laci_shape *x, const laci_shape *y,
                                  const laci_shape *weight, laci_unfold *u);

/** Describes in l->unfold how the layer's inputs x are taken from its data of shape x; y, w: the
 * shapes of its output and of its weight. The layer's channels, port and unfold.groups are set.
 * Returns NULL, or why it cannot be described. */
const char *laci_matrix_layer_describe_input(const laci_node *node, const laci_shape *x,
                                             const laci_shape *y, const laci_shape *w,
                                             laci_matrix_layer *l);
/** Returns the index, in the stored tensor, of an element of a group's weight matrix. Taps (kernel
 * positions) are the axes after the first two, innermost and in the same order. */
int64_t laci_matrix_layer_element(const laci_matrix_layer *l, int64_t group, int64_t row,
                                  int64_t column);

/** Returns the bytes of the layer's outputs in a batch whose inputs are unfolded so. */
uint64_t laci_matrix_layer_output_bytes(const laci_matrix_layer *l, const laci_network *network,
                                        const laci_unfold *unfold);

/** The weight matrix of one convolution group, and its mask, both [rows, columns]. */
typedef struct laci_group_matrix {
  int64_t group;
  double *elements;
  uint8_t *mask; /* 1: the weight is kept; 0: it is pruned */
} laci_group_matrix;

/** laci_matrix_layer_gather reads a group's matrix from the bytes of the stored tensor; it does not
 * set the mask. laci_matrix_layer_scatter writes a group's matrix and mask into the bytes and the
 * mask of the stored tensor. */
LAC_MUST_CHECK lac_status laci_matrix_layer_gather(const laci_matrix_layer *l,
                                                   const laci_network *network,
                                                   const uint8_t *bytes,
                                                   const laci_group_matrix *to, lac_error *err);
void laci_matrix_layer_scatter(const laci_matrix_layer *l, const laci_network *network,
                               const laci_group_matrix *from, uint8_t *bytes, uint8_t *mask);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Layers whose output is added to another value, as at the end of a residual block: private to
 * calibrate.
 *
 * In the pruned network the other term has errors of the layers before it. The layer is fitted to
 * make up for them: to y_d + c in the place of y_d, where c = (o_d - o_p) / s. o_d and o_p are the
 * other term in the dense and in the pruned network, and s is the scale that a batch normalization
 * between the layer and the sum gives to the channel. So errors of a stream do not add up from
 * block to block. The sums over the layer's inputs that the fit needs are C = sum c x_p'. */
#ifndef LACI_CALIBRATE_RESIDUAL_IN_H
#define LACI_CALIBRATE_RESIDUAL_IN_H

#include "calibrate/grams_in.h"

typedef struct laci_walk_state laci_walk_state;

typedef struct laci_residual {
  int value; /* index of the other term; -1: the layer's output is added to nothing */
  const laci_matrix_layer *layer;
  laci_unfold outputs; /* c as the inputs of a product with one tap, whose positions are the
                          layer's */
  double *factor;      /* [groups * rows] 1 / s of each output channel; 0: the channel's c is 0 */
  double *sums;        /* [groups, rows, columns] C */
  float *correction;   /* c of a batch */
  float *lines;        /* [columns + rows, floats] input vectors, and c, of a block of positions */
} laci_residual;

/** Finds the value that is added to the layer's output, and allocates the sums. It must be stored
 * for all batches in both networks, and differ between them. Otherwise value is -1. grams: the
 * layer's sums. Fails LAC_NO_MEMORY. Call laci_residual_clear in any case. */
LAC_MUST_CHECK lac_status laci_residual_init(laci_residual *r, const laci_walk_state *w,
                                             const laci_matrix_layer *layer,
                                             const laci_grams *grams, lac_error *err);
void laci_residual_clear(laci_residual *r);

/** Returns the bytes that the sums take at most; 0: the layer's output is added to nothing. */
uint64_t laci_residual_memory_bytes(const laci_walk_state *w, const laci_matrix_layer *layer);

/** Adds one batch, which was added to grams just before: the same positions are summed. pruned: the
 * layer's input in the pruned network. The sums have the same bytes for any pool. Fails LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_residual_add(laci_residual *r, const laci_walk_state *w,
                                            const laci_grams *grams, const float *pruned,
                                            int64_t batch, lac_error *err);

/** Computes c of a batch, in the layout of the layer's output. Fails LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_residual_compute(const laci_residual *r, const laci_walk_state *w,
                                                int64_t batch, float *correction, lac_error *err);

#endif

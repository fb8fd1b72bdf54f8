/* SPDX-License-Identifier: Apache-2.0
 * Layers in training with masks: their weights change while their zeros stay. These functions find
 * and choose such layers, give their kernels the weights of each run, and compute the gradients of
 * their weights. */
#ifndef LACI_ENGINE_CPU_NATIVE_TRAIN_TRAIN_H
#define LACI_ENGINE_CPU_NATIVE_TRAIN_TRAIN_H

#include "engine/cpu/native/layer.h"

typedef struct laci_native_kernel laci_native_kernel;

/* ---- find.c ---- */

/** Returns the window of one phase of the layer. A phase is the results of even or of odd rows, and
 * of even or of odd columns; it has a kernel of its own. */
laci_sparse_window laci_native_phase_window(const laci_native_layer *layer, int phase);
/** Returns the mask of one phase, in the order of the weights of the transposed layer's product.
 * The caller frees it. NULL: no memory (recorded in the plan). */
uint8_t *laci_native_transpose_mask(laci_net *net, const laci_native_layer *layer, int phase);
/** Returns an array [n_kept]: the index, in the layer's weight tensor, of each weight in
 * `convolution`. The caller frees it. NULL: no memory (recorded in the plan). */
int32_t *laci_native_find_weight_indices(laci_net *net, const laci_native_layer *layer, int phase,
                                         const laci_sparse_convolution *convolution);

#endif

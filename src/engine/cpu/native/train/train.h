/* SPDX-License-Identifier: Apache-2.0
 * Layers under training with masks: their weights change while their zeros stay. How they are found
 * and chosen, how their kernels get the weights of each run, and the gradients of their weights. */
#ifndef LACI_ENGINE_CPU_NATIVE_TRAIN_TRAIN_H
#define LACI_ENGINE_CPU_NATIVE_TRAIN_TRAIN_H

#include "engine/cpu/native/layer.h"

typedef struct laci_native_kernel laci_native_kernel;

/* ---- find.c ---- */

/** Returns the window of one phase of the layer. The kernel of a phase writes the results of even
 * or of odd rows, and of even or of odd columns. */
laci_sparse_window laci_native_phase_window(const laci_native_layer *layer, int phase);
/** Returns the mask of one phase, in the order of the weights of the transposed layer's product.
 * The caller frees it. NULL: no memory (recorded in the plan). */
uint8_t *laci_native_transpose_mask(laci_net *net, const laci_native_layer *layer, int phase);
/** Returns an array [n_kept]: the index, in the layer's weight, of each kept element of the form.
 * The caller frees it. NULL: no memory (recorded in the plan). */
int32_t *laci_native_find_weight_indices(laci_net *net, const laci_native_layer *layer, int phase,
                                         const laci_sparse_form *form);

#endif

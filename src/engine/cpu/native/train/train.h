/* SPDX-License-Identifier: Apache-2.0
 * Layers whose weights change while their zeros stay: found and chosen, their kernels filled in
 * every run, and the gradients of their weights. */
#ifndef LACI_ENGINE_CPU_NATIVE_TRAIN_TRAIN_H
#define LACI_ENGINE_CPU_NATIVE_TRAIN_TRAIN_H

#include "engine/cpu/native/layer.h"

typedef struct laci_native_kernel laci_native_kernel;

/* ---- find.c ---- */

/** The window of one of the layer's kernels: results of (even, odd) rows and columns. */
laci_sparse_window laci_native_phase(const laci_native_layer *layer, int phase);
/** The mask as rows of the layer's product: the caller's to free. NULL: no memory (noted). */
uint8_t *laci_native_transposed_mask(laci_net *net, const laci_native_layer *layer, int phase);
/** What is kept of the form, as places in the weight: [n_kept], the caller's to free. NULL: no
 * memory (noted). */
int32_t *laci_native_weight_places(laci_net *net, const laci_native_layer *layer, int phase,
                                   const laci_sparse_form *form);

#endif

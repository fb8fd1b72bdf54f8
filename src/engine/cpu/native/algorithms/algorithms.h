/* SPDX-License-Identifier: Apache-2.0
 * How a chosen layer is computed: weights as kernels read them, kernels, and the steps that run
 * these. */
#ifndef LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHMS_H
#define LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHMS_H

#include "engine/cpu/native/layer.h"

typedef struct laci_sparse_code laci_sparse_code;

/* ---- weights.c ---- */

/** What is kept of a layer's weights, scaled, as rows of its product: the zeros of the constant are
 * the pattern. False: a failure (noted). Clear it in any case. */
bool laci_native_read_kept(laci_net *net, const laci_native_layer *layer, laci_sparse_kept *kept);
/** The same from the layer's packed rows, where there are any that fit: dense weights are then
 * never made. weight: its factors. False: none do, nothing was done; or a failure (noted).
 * packed.c */
bool laci_native_read_packed(laci_net *net, const laci_native_layer *layer,
                             const laci_net_weight *weight, laci_sparse_kept *kept);
/** Gives the net's scratch back. */
void laci_native_clear_scratch(struct laci_native_net *native);
/** A constant weight as it is, scaled, [channels_out][what a result reads], in scratch. NULL after
 * a failure (noted). */
const float *laci_native_read_dense(laci_net *net, const laci_native_layer *layer);
/** The same in a weight of the plan. -1 after a failure (noted). */
int laci_native_dense(laci_net *net, const laci_native_layer *layer);
/** The bias as a weight; zeros where there is none. */
int laci_native_bias(laci_net *net, const laci_native_layer *layer);

/** What is kept, floats, as integers, and bias and scales of the layer's rows. False: a
 * failure (noted). */
bool laci_native_quantize_kept(laci_net *net, const laci_native_layer *layer,
                               laci_sparse_kept *kept);

/* ---- kernel.c ---- */

typedef struct laci_native_kernel {
  laci_sparse_form form;           /* its tiles; all of it where there is no code */
  laci_sparse_code *code;          /* NULL: lists, or the compiled kernel */
  struct laci_native_lists *lists; /* NULL: none */
  laci_sparse_places places;       /* of a weight that changes: where its kept elements are, in the
                                      kernel's order; a constant has none */
  bool of_bf16_pairs;              /* code takes two places for each of its weights */
  int phase;
  struct laci_native_kernel *next;              /* of the same layer: its next phase; NULL: none */
  struct laci_native_weight_gradient *gradient; /* of a forward kernel whose weight's is wanted */
} laci_native_kernel;

/** The kernel of a chosen layer, which net->native owns. NULL after a failure, and where the
 * implementation declines. */
const laci_native_kernel *laci_native_make_kernel(laci_net *net, const laci_native_layer *layer);
/** The layout in which the kernel's results lie: the layer's output's, or some pixels of it. */
laci_sparse_layout laci_native_layer_out(const laci_net *net, const laci_native_layer *layer);

/* ---- rows.c ---- */

/** Into how many strips so many halves of tiles fall where a layer's rows are bundled; 0: they are
 * not. */
int64_t laci_native_grouped_strips(const laci_native_layer *layer, int64_t n_units);
/** Makes them of the kernel's product, of which tiles stay. */
LAC_MUST_CHECK lac_status laci_native_make_lists(laci_net *net, laci_native_kernel *kernel,
                                                 lac_error *err);
void laci_native_drop_lists(laci_native_kernel *kernel);
/** All that the kernel has to do, where it has lists. */
void laci_native_run_lists(laci_net *net, const laci_native_kernel *kernel,
                           const laci_sparse_operands *o);
/** Which ones these are, in a word. */
const char *laci_native_lists_name(const laci_native_kernel *kernel);

/* ---- generated.c ---- */

/** A product by its kernel: generated or compiled code, or rows. */
void laci_native_make_product(laci_net *net, const laci_native_layer *layer);

/* ---- Of training: weight_gradient.c, fill.c ---- */

/** What the gradient of the layer's weight needs, while the kernel has its product. False: a
 * failure (noted), or nobody wants it. */
bool laci_native_keep_gradient(laci_net *net, const laci_native_layer *layer,
                               laci_native_kernel *kernel);
void laci_native_drop_gradient(laci_native_kernel *kernel);
/** A step that puts the values of a layer's weight in the places of its kernels. */
void laci_native_fill(laci_net *net, const laci_native_layer *layer,
                      const laci_native_kernel *kernel);

#endif

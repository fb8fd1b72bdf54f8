/* SPDX-License-Identifier: Apache-2.0
 * How a chosen layer is computed: its step, weights as kernels read them, and the kernels of
 * products that skip zeros. */
#ifndef LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHMS_H
#define LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHMS_H

#include "engine/cpu/native/layer.h"

typedef struct laci_sparse_code laci_sparse_code;
typedef struct laci_csr laci_csr;
typedef struct laci_grouped_rows laci_grouped_rows;
typedef struct laci_algorithm laci_algorithm;

/* ---- step.c ---- */

/** A layer's step. What it reads and writes is the same for all algorithms; the rest is what the
 * record's `make` has prepared. */
typedef struct laci_native_step {
  const laci_native_layer *layer;
  const laci_algorithm *algorithm;
  laci_sparse_layout out; /* of the result, its size, and what is stored where it has no pixels */
  laci_sparse_size size;
  uint32_t around;
  laci_native_tensors tensors; /* after `make`; -1: none */
  int weights, scratch;        /* tensors; -1: none */
  size_t scratch_bytes;
  void *state; /* the algorithm's, in the plan's memory */
  const char *kernel;
  int64_t flops; /* of a dense product; 0: it is none */
} laci_native_step;

/** Where its operands are, after placing, and what follows the layer's sums; no weight. */
laci_sparse_operands laci_native_step_operands(const laci_net *net, const laci_native_step *step);

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

/** The product of a layer that skips zeros, or of one phase of it. */
typedef struct laci_native_kernel {
  laci_sparse_form form;      /* its tiles; all of it where there is no code */
  laci_sparse_code *code;     /* generated.c; NULL: none */
  laci_csr *csr;              /* csr.c; NULL: none */
  laci_grouped_rows *grouped; /* grouped_rows.c; NULL: none */
  /** Clears what the algorithm has made of the form; NULL: nothing. */
  void (*drop)(struct laci_native_kernel *kernel);
  laci_sparse_places places; /* of a weight that changes: where its kept elements are, in the
                                       kernel's order; a constant has none */
  bool of_bf16_pairs;        /* code takes two places for each of its weights */
  int phase;
  struct laci_native_kernel *next;              /* of the same layer: its next phase; NULL: none */
  struct laci_native_weight_gradient *gradient; /* of a forward kernel whose weight's is wanted */
} laci_native_kernel;

/** Makes of a kernel's form what the algorithm runs. */
typedef lac_status laci_native_finish(laci_net *net, const laci_native_layer *layer,
                                      laci_native_kernel *kernel, lac_error *err);
/** The kernel of the step's layer, of all phases, which net->native owns, as its state. A failure,
 * or that it declines, is noted in the plan. */
void laci_native_make_kernel(laci_net *net, laci_native_step *step, laci_native_finish *finish);
/** The layout in which the kernel's results are stored: the layer's output's, or some pixels of it.
 */
laci_sparse_layout laci_native_layer_out(const laci_net *net, const laci_native_layer *layer);
/** Writes zeros, or of int8 the zero point, where the result has no pixels. */
void laci_native_fill_around(laci_net *net, const laci_native_step *step, float *y);

/** Rows of a chunk, so that all threads have chunks where there are few strips of tiles. */
int64_t laci_native_chunk_rows(const laci_net *net, int64_t n_rows, int64_t strips);

/* ---- code.c, csr.c ---- */

/** Generates code; where no code can be, what the definition reads. */
laci_native_finish laci_native_finish_code;

/** Also of what grouped_rows.c finds no groups in. */
laci_native_finish laci_native_finish_csr;

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

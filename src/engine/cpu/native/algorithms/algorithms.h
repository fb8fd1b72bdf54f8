/* SPDX-License-Identifier: Apache-2.0
 * How a chosen layer is computed: its step, its weights in the form that kernels read, and the
 * kernels of products that skip zeros. */
#ifndef LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHMS_H
#define LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHMS_H

#include "engine/cpu/native/layer.h"

typedef struct laci_sparse_code laci_sparse_code;
typedef struct laci_csr laci_csr;
typedef struct laci_grouped_rows laci_grouped_rows;
typedef struct laci_amx_weights laci_amx_weights;
typedef struct laci_byte_pairs_weights laci_byte_pairs_weights;
typedef struct laci_algorithm laci_algorithm;

/* ---- step.c ---- */

/** The step that computes a native layer. What it reads and writes is the same for all algorithms;
 * the rest is set by the algorithm's `make`. */
typedef struct laci_native_layer_step {
  const laci_native_layer *layer;
  const laci_algorithm *algorithm;
  laci_sparse_layout out; /* layout of the result */
  laci_sparse_size size;  /* size of the result */
  uint32_t around; /* 32-bit word that is stored in the result's memory where there is no pixel */
  laci_native_tensors tensors; /* operands and result; set after `make` */
  int weights, scratch;        /* index of the tensor of weights, and of scratch memory; -1: none */
  size_t scratch_bytes;
  void *state;        /* the algorithm's own data for the step, in the plan's memory */
  const char *kernel; /* name of the kernel, for the plan's text */
  bool skips_zeros;   /* that of the algorithm, unless there are no zeros to skip */
  int64_t flops;      /* number of multiplications and additions of the dense product; 0: the layer
                         is not a product */
} laci_native_layer_step;

/** Returns the operands of a step: the addresses of its tensors, and what is computed after the
 * layer's sums. The weight is not set. Call it only after the tensors' memory has been placed. */
laci_sparse_operands laci_native_layer_step_operands(const laci_net *net,
                                                     const laci_native_layer_step *step);

/* ---- weights.c ---- */

/** Reads the kept (nonzero) weights of a layer, scaled, as rows of its product. Returns false after
 * a failure, which is recorded in the plan; clear `kept` in any case. */
bool laci_native_read_kept_weights(laci_net *net, const laci_native_layer *layer,
                                   laci_sparse_kept_weights *kept);
/** Reads the kept weights from packed rows (N:M packing), if the layer's weight has packed rows
 * that fit; no dense weights are then made. weight: the factors to apply. Returns false if there
 * are no such rows, or after a failure, which is recorded in the plan. Defined in packed.c. */
bool laci_native_read_packed_weights(laci_net *net, const laci_native_layer *layer,
                                     const laci_net_weight *weight, laci_sparse_kept_weights *kept);
/** Frees the scratch memory in which weights are read. */
void laci_native_clear_scratch(struct laci_native_net *native);
/** Returns all weights, scaled, of a layer with a constant weight, [channels_out][inputs of a
 * result], in scratch memory; NULL after a failure, which is recorded in the plan. */
const float *laci_native_read_dense_weights(laci_net *net, const laci_native_layer *layer);
/** Stores the weights of laci_native_read_dense_weights as a tensor of the plan, and returns its
 * index; -1 after a failure, which is recorded in the plan. */
int laci_native_store_dense_weights(laci_net *net, const laci_native_layer *layer);
/** Stores the bias as a tensor of the plan and returns its index; the bias is zeros if the layer
 * has none. -1 after a failure (recorded in the plan). */
int laci_native_store_bias(laci_net *net, const laci_native_layer *layer);

/** Quantizes the kept weights to integers in place, and sets the bias and scales of the layer's
 * rows. Returns false after a failure, which is recorded in the plan. */
bool laci_native_quantize_kept_weights(laci_net *net, const laci_native_layer *layer,
                                       laci_sparse_kept_weights *kept);
/** Does the same for all weights, [channels_out][inputs of a result]. */
bool laci_native_quantize_dense_weights(laci_net *net, const laci_native_layer *layer,
                                        float *weight);

/* ---- kernel.c ---- */

/** The kernel that computes a layer and skips zeros, or one phase of such a layer (of a strided
 * gradient). */
typedef struct laci_native_kernel {
  laci_sparse_convolution convolution; /* the product, its layouts and its tiles; once there is
                                          code, only the tiles are kept */
  laci_sparse_code *code;              /* generated code (code.c); NULL: none */
  laci_csr *csr;                       /* weights as compressed sparse rows (csr.c); NULL: none */
  laci_grouped_rows *grouped;     /* rows that are computed together (grouped_rows.c); NULL: none */
  laci_amx_weights *amx;          /* weights as registers of AMX (amx.c); NULL: none */
  laci_byte_pairs_weights *pairs; /* weights of bytes for AVX2 (byte_pairs.c); NULL: none */
  /** Frees `code`, `csr`, `grouped`, `amx` or `pairs`, whichever the algorithm made; NULL: there is
   * nothing to free. */
  void (*drop)(struct laci_native_kernel *kernel);
  laci_sparse_places places;       /* for a weight that training changes: index of the element that
                                      belongs in each place of the kernel's weights; empty for a
                                      constant */
  bool of_bf16_pairs;              /* `places` has two elements for each weight of the code: the two
                                      halves of a bf16 pair */
  int phase;                       /* index of the layer's phase that the kernel computes */
  struct laci_native_kernel *next; /* kernel of the next phase of the layer; NULL: none */
  struct laci_native_weight_gradient *gradient; /* in a forward kernel, the prepared gradient of its
                                                   weight; NULL: no node computes that gradient */
} laci_native_kernel;

/** A function that makes, from a kernel's form, the data that the algorithm runs: code, CSR or
 * grouped rows. */
typedef lac_status laci_native_finish(laci_net *net, const laci_native_layer *layer,
                                      laci_native_kernel *kernel, lac_error *err);
/** Makes the kernels of all phases of the step's layer, and sets the first as the step's state;
 * net->native owns them. A failure, or that the algorithm declines, is recorded in the plan. */
void laci_native_make_layer_kernels(laci_net *net, laci_native_layer_step *step,
                                    laci_native_finish *finish);
/** Returns the layout in which the kernel stores its results: that of the layer's output, or of
 * some of the output's pixels. */
laci_sparse_layout laci_native_output_layout(const laci_net *net, const laci_native_layer *layer);
/** Writes zeros, or for int8 the zero point, to those places of the result's memory that are no
 * pixels. */
void laci_native_fill_result_border(laci_net *net, const laci_native_layer_step *step, float *y);

/** Returns the number of rows (output channels) of a chunk of work, such that all threads have work
 * even if there are few strips of tiles. */
int64_t laci_native_chunk_rows(const laci_net *net, int64_t n_rows, int64_t strips);

/* ---- code.c, csr.c ---- */

/** Generates the kernel's code. If none can be generated, prepares the data that the scalar
 * reference reads. */
laci_native_finish laci_native_generate_code;

/** Stores the kernel's weights as CSR; also used for products in which grouped_rows.c finds too few
 * groups. */
laci_native_finish laci_native_make_csr;

/* ---- For training: weight_gradient.c, fill.c ---- */

/** Prepares the gradient of the layer's weight, while the kernel still has its product. Returns
 * false after a failure, which is recorded in the plan, or if no node computes that gradient. */
bool laci_native_prepare_gradient(laci_net *net, const laci_native_layer *layer,
                                  laci_native_kernel *kernel);
void laci_native_destroy_gradient(laci_native_kernel *kernel);
/** Adds a step that copies the elements of a layer's weight to their places in its kernels. */
void laci_native_add_fill_step(laci_net *net, const laci_native_layer *layer,
                               const laci_native_kernel *kernel);

#endif

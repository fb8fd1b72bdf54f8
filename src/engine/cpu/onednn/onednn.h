/* SPDX-License-Identifier: Apache-2.0
 * The library oneDNN as one provider of implementations: layouts, primitives and their memory.
 *
 * Only this folder knows its names and versions (tools/check_rooms). Everything here is opaque; a
 * call that the library refuses comes back as LAC_UNSUPPORTED, and LAC_NO_MEMORY is what it says.
 * Next: compat.h (two versions of the library under one set of names), onednn.c. */
#ifndef LACI_ENGINE_CPU_ONEDNN_H
#define LACI_ENGINE_CPU_ONEDNN_H

#include "engine/cpu/plan/plan.h"

typedef struct laci_onednn laci_onednn;       /* the library's engine and stream; a net has one */
typedef struct laci_layout laci_layout;       /* sizes, type of elements and where each one is */
typedef struct laci_primitive laci_primitive; /* a computation: described first, then made */
typedef struct laci_posts laci_posts;         /* what happens before a result is written */
typedef struct laci_memory laci_memory;       /* bytes in a layout */

/** What a tensor is to a primitive. */
typedef enum laci_arg {
  LACI_ARG_NONE,
  LACI_ARG_SRC,
  LACI_ARG_SRC_1,
  LACI_ARG_WEIGHTS,
  LACI_ARG_BIAS,
  LACI_ARG_DST,
  LACI_ARG_MEAN,
  LACI_ARG_VARIANCE,
  LACI_ARG_SCALE,
  LACI_ARG_SHIFT,
  LACI_ARG_WORKSPACE, /* what a forward primitive leaves for its gradient */
  LACI_ARG_SCRATCHPAD,
  LACI_ARG_DIFF_SRC,
  LACI_ARG_DIFF_WEIGHTS,
  LACI_ARG_DIFF_DST,
  LACI_ARG_DIFF_SCALE,
  LACI_ARG_DIFF_SHIFT,
  LACI_N_ARGS,
  LACI_ARG_MULTIPLE_SRC = 1024, /* + the source's number */
} laci_arg;

enum {
  LACI_MOST_SOURCES = 1024,
  LACI_MOST_AXES = 12, /* of a layout */
};

typedef enum laci_conv_algorithm { LACI_CONV_DIRECT, LACI_CONV_WINOGRAD } laci_conv_algorithm;
typedef enum laci_pool_kind {
  LACI_POOL_MAX,
  LACI_POOL_MEAN,
  LACI_POOL_MEAN_PADDED /* padding counts */
} laci_pool_kind;
typedef enum laci_binary_kind {
  LACI_BINARY_ADD,
  LACI_BINARY_SUB,
  LACI_BINARY_MUL,
  LACI_BINARY_DIV,
  LACI_BINARY_MAX,
  LACI_BINARY_MIN
} laci_binary_kind;
typedef enum laci_reduction_kind {
  LACI_REDUCTION_MEAN,
  LACI_REDUCTION_SUM,
} laci_reduction_kind;
typedef enum laci_norm_flags {
  LACI_NORM_GIVEN = 1, /* statistics come in */
  LACI_NORM_RELU = 2,  /* a Relu follows */
} laci_norm_flags;

/** The window of a convolution or pool primitive on its input; one number for each spatial axis. */
typedef struct laci_window {
  int n_spatial;
  int64_t kernel[LACI_MOST_AXES], strides[LACI_MOST_AXES];
  int64_t dilates[LACI_MOST_AXES]; /* 0 is dense */
  int64_t pads_begin[LACI_MOST_AXES], pads_end[LACI_MOST_AXES];
} laci_window;

/* ---- The library ---- */

/** Caps its instruction set like ours: before its first primitive, once a process. */
void laci_onednn_cap(void);
/** May it use instructions for bf16? */
bool laci_onednn_has_bf16(void);
LAC_MUST_CHECK lac_status laci_onednn_create(laci_onednn **made, lac_error *err);
void laci_onednn_destroy(laci_onednn *dnn); /* NULL is fine */
/** Waits until all that runs is done; false: something did not finish. */
bool laci_onednn_wait(const laci_onednn *dnn);

/* ---- Layouts: false where there is no memory, or no such layout ---- */

bool laci_layout_strided(laci_layout **made, int n, const int64_t *dims, laci_element element,
                         const int64_t *strides);
/** Whatever the primitive likes best. */
bool laci_layout_any(laci_layout **made, int n, const int64_t *dims, laci_element element);
/** Four axes; the second one in blocks of 8 or 16 channels, which are innermost. */
bool laci_layout_blocks(laci_layout **made, const int64_t *dims, int channels,
                        laci_element element);
bool laci_layout_copy(laci_layout **made, const laci_layout *of);
bool laci_layout_part(laci_layout **made, const laci_layout *of, int n, const int64_t *dims,
                      const int64_t *offsets);
/** Axis i of `of` becomes axis places[i]. */
bool laci_layout_permuted(laci_layout **made, const laci_layout *of, const int *places);
/** The same elements in the same order with other axes; false where that is another layout. */
bool laci_layout_reshaped(laci_layout **made, const laci_layout *of, int n, const int64_t *dims);
/** Elements from one index of an axis to the next, and before the first; false: there are blocks.
 */
bool laci_layout_strides(const laci_layout *of, int n, int64_t *strides, int64_t *offset);
/** Channels of a block, which are neighbours; 1: there are no blocks. */
int64_t laci_layout_block(const laci_layout *layout);
size_t laci_layout_bytes(const laci_layout *layout); /* with what pads its blocks */
bool laci_layout_equal(const laci_layout *a, const laci_layout *b);
void laci_layout_destroy(laci_layout *layout); /* NULL is fine */
size_t laci_element_bytes(laci_element element);

/* ---- Memory ---- */

/** data NULL: set later. */
LAC_MUST_CHECK lac_status laci_memory_create(const laci_onednn *dnn, const laci_layout *layout,
                                             void *data, laci_memory **made);
LAC_MUST_CHECK lac_status laci_memory_set(laci_memory *memory, void *data);
void laci_memory_destroy(laci_memory *memory); /* NULL is fine */

/** Copies from one layout to another, now. */
LAC_MUST_CHECK lac_status laci_layout_convert(const laci_onednn *dnn, const laci_layout *from,
                                              const void *data, const laci_layout *to, void *out);

/* ---- Primitives ---- */

/** One value to be added (its own, in place) where post.value >= 0, and functions. */
LAC_MUST_CHECK lac_status laci_posts_create(const laci_onednn *dnn, const laci_post *posts, int n,
                                            laci_posts **made);
void laci_posts_destroy(laci_posts *posts); /* NULL is fine */

/* Descriptions. posts NULL: none. Where a layout is `any`, the primitive chooses it. */
lac_status laci_primitive_reorder(laci_primitive **made, const laci_onednn *dnn,
                                  const laci_layout *from, const laci_layout *to);
/** source, weights, bias (or NULL), destination */
lac_status laci_primitive_conv(laci_primitive **made, const laci_onednn *dnn,
                               laci_conv_algorithm algorithm, const laci_layout *const md[4],
                               const laci_window *w, const laci_posts *posts);
lac_status laci_primitive_pool(laci_primitive **made, const laci_onednn *dnn, laci_pool_kind kind,
                               const laci_layout *const md[2], const laci_window *w);
lac_status laci_primitive_matmul(laci_primitive **made, const laci_onednn *dnn,
                                 const laci_layout *const md[4], const laci_posts *posts);
lac_status laci_primitive_function(laci_primitive **made, const laci_onednn *dnn,
                                   const laci_function *f, const laci_layout *md);
lac_status laci_primitive_binary(laci_primitive **made, const laci_onednn *dnn,
                                 laci_binary_kind kind, const laci_layout *const md[3],
                                 const laci_posts *posts);
lac_status laci_primitive_batch_norm(laci_primitive **made, const laci_onednn *dnn,
                                     const laci_layout *md, float epsilon, int flags);
lac_status laci_primitive_layer_norm(laci_primitive **made, const laci_onednn *dnn,
                                     const laci_layout *md, float epsilon);
lac_status laci_primitive_softmax(laci_primitive **made, const laci_onednn *dnn, bool log,
                                  const laci_layout *md, int axis);
lac_status laci_primitive_reduction(laci_primitive **made, const laci_onednn *dnn,
                                    laci_reduction_kind kind, const laci_layout *const md[2]);
lac_status laci_primitive_resample(laci_primitive **made, const laci_onednn *dnn, bool nearest,
                                   const laci_layout *const md[2]);
lac_status laci_primitive_concat(laci_primitive **made, const laci_onednn *dnn, int n, int axis,
                                 const laci_layout *const *sources);

/* Of training: a forward primitive that a gradient belongs to (its hint), and gradients. They agree
 * about layouts and about the workspace between the two. */

/** Batch norm's gradient has an operand for the shift in version 2, and does not look at it. */
bool laci_norm_gradient_reads_shift(void);
lac_status laci_primitive_conv_train(laci_primitive **made, const laci_onednn *dnn,
                                     laci_conv_algorithm algorithm, const laci_layout *const md[4],
                                     const laci_window *w);
/** md: source, weights, destination; each the gradient or the value, whichever it reads or
 * writes. */
lac_status laci_primitive_conv_input_gradient(laci_primitive **made, const laci_onednn *dnn,
                                              laci_conv_algorithm algorithm,
                                              const laci_layout *const md[3], const laci_window *w,
                                              const laci_primitive *hint);
lac_status laci_primitive_conv_weight_gradient(laci_primitive **made, const laci_onednn *dnn,
                                               laci_conv_algorithm algorithm,
                                               const laci_layout *const md[3], const laci_window *w,
                                               const laci_primitive *hint);
lac_status laci_primitive_batch_norm_train(laci_primitive **made, const laci_onednn *dnn,
                                           const laci_layout *md, float epsilon, int flags);
lac_status laci_primitive_batch_norm_gradient(laci_primitive **made, const laci_onednn *dnn,
                                              const laci_layout *md, float epsilon, int flags,
                                              const laci_primitive *hint);
lac_status laci_primitive_pool_train(laci_primitive **made, const laci_onednn *dnn,
                                     laci_pool_kind kind, const laci_layout *const md[2],
                                     const laci_window *w);
lac_status laci_primitive_pool_gradient(laci_primitive **made, const laci_onednn *dnn,
                                        laci_pool_kind kind, const laci_layout *const md[2],
                                        const laci_window *w, const laci_primitive *hint);
lac_status laci_primitive_function_train(laci_primitive **made, const laci_onednn *dnn,
                                         const laci_function *f, const laci_layout *md);
lac_status laci_primitive_function_gradient(laci_primitive **made, const laci_onednn *dnn,
                                            const laci_function *f, const laci_layout *md,
                                            const laci_primitive *hint);

/** The layout of an argument; NULL: it has none. Dies with the primitive. */
const laci_layout *laci_primitive_layout(const laci_primitive *p, laci_arg arg);
/** The library's name of the kernel; a view. */
const char *laci_primitive_kernel(const laci_primitive *p);
/** Is this the library's slow definition of right? */
bool laci_primitive_is_reference(const laci_primitive *p);
/** Does it add to what is there? */
bool laci_primitive_adds(const laci_primitive *p);
typedef enum laci_product_kind {
  LACI_PRODUCT_NONE,
  LACI_PRODUCT_CONV,
  LACI_PRODUCT_MATMUL
} laci_product_kind;
laci_product_kind laci_primitive_product(const laci_primitive *p);
/** From a description to what can run; layouts are no longer asked for. */
LAC_MUST_CHECK lac_status laci_primitive_make(laci_primitive *p);
/** Its n arguments; the memory stays the caller's. */
LAC_MUST_CHECK lac_status laci_primitive_bind(laci_primitive *p, int n, const int *args,
                                              laci_memory *const *memory);
/** status: the library's own answer, for reports; may be NULL. */
LAC_MUST_CHECK lac_status laci_primitive_run(const laci_primitive *p, const laci_onednn *dnn,
                                             int *status);
void laci_primitive_destroy(laci_primitive *p); /* NULL is fine */

#endif

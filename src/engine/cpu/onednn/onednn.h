/* SPDX-License-Identifier: Apache-2.0
 * Wraps the library oneDNN, one provider of implementations: layouts, primitives and their memory.
 *
 * Only this folder uses the library's names and versions (tools/check_rooms). All types here are
 * opaque. A call that the library refuses returns LAC_UNSUPPORTED, or LAC_NO_MEMORY where the
 * library reports that. Next: compat.h (two versions of the library under one set of names),
 * onednn.c. */
#ifndef LACI_ENGINE_CPU_ONEDNN_H
#define LACI_ENGINE_CPU_ONEDNN_H

#include "engine/cpu/plan/plan.h"

typedef struct laci_onednn laci_onednn;       /* the library's engine and stream; one for each
                                                 net */
typedef struct laci_layout laci_layout;       /* a tensor's sizes, element type and order of
                                                 elements in memory */
typedef struct laci_primitive laci_primitive; /* a computation: first described, then created */
typedef struct laci_posts laci_posts;         /* operations on a result before it is written */
typedef struct laci_memory laci_memory;       /* memory with a layout */

/** The role of a tensor in a primitive. */
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
  LACI_ARG_WORKSPACE, /* what a forward primitive stores for its gradient */
  LACI_ARG_SCRATCHPAD,
  LACI_ARG_DIFF_SRC,
  LACI_ARG_DIFF_WEIGHTS,
  LACI_ARG_DIFF_DST,
  LACI_ARG_DIFF_SCALE,
  LACI_ARG_DIFF_SHIFT,
  LACI_N_ARGS,
  LACI_ARG_MULTIPLE_SRC = 1024, /* source number k of several has the role LACI_ARG_MULTIPLE_SRC
                                   + k */
} laci_arg;

enum {
  LACI_MOST_SOURCES = 1024,
  LACI_MOST_AXES = 12, /* maximum number of axes of a layout */
};

typedef enum laci_conv_algorithm { LACI_CONV_DIRECT, LACI_CONV_WINOGRAD } laci_conv_algorithm;
typedef enum laci_pool_kind {
  LACI_POOL_MAX,
  LACI_POOL_MEAN,
  LACI_POOL_MEAN_PADDED /* the padding is counted in the mean */
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
  LACI_NORM_GIVEN = 1, /* mean and variance are inputs */
  LACI_NORM_RELU = 2,  /* a Relu is fused */
} laci_norm_flags;

/** The window of a convolution or pool primitive on its input; one number for each spatial axis. */
typedef struct laci_window {
  int n_spatial;
  int64_t kernel[LACI_MOST_AXES], strides[LACI_MOST_AXES];
  int64_t dilates[LACI_MOST_AXES]; /* dilation minus 1: 0 is a dense window */
  int64_t pads_begin[LACI_MOST_AXES], pads_end[LACI_MOST_AXES];
} laci_window;

/* ---- The library ---- */

/** Limits the library's instruction set to that of this library's own kernels. To be called once,
 * before the first primitive. */
void laci_onednn_limit_isa(void);
/** May the library use bf16 instructions? */
bool laci_onednn_has_bf16(void);
LAC_MUST_CHECK lac_status laci_onednn_create(laci_onednn **made, lac_error *err);
void laci_onednn_destroy(laci_onednn *dnn); /* NULL is fine */
/** Waits for all running primitives; false: one failed. */
bool laci_onednn_wait_for_all(const laci_onednn *dnn);

/* ---- Layouts: functions return false where there is no memory, or no such layout ---- */

bool laci_layout_create_strided(laci_layout **made, int n, const int64_t *dims,
                                laci_element element, const int64_t *strides);
/** Makes a descriptor that leaves the layout to the primitive. */
bool laci_layout_create_any(laci_layout **made, int n, const int64_t *dims, laci_element element);
/** Makes a layout of four axes with blocks of `channels` (8 or 16) elements of axis 1 innermost. */
bool laci_layout_create_blocks(laci_layout **made, const int64_t *dims, int channels,
                               laci_element element);
bool laci_layout_create_copy(laci_layout **made, const laci_layout *of);
bool laci_layout_create_part(laci_layout **made, const laci_layout *of, int n, const int64_t *dims,
                             const int64_t *offsets);
/** Makes a layout in which axis i of `of` is axis places[i]. */
bool laci_layout_create_permuted(laci_layout **made, const laci_layout *of, const int *places);
/** Makes a layout with other axes for the same elements in the same memory; false where no layout
 * describes that. */
bool laci_layout_create_reshaped(laci_layout **made, const laci_layout *of, int n,
                                 const int64_t *dims);
/** Gets the stride of each axis and the offset of the first element, in elements; false: the layout
 * has blocks.
 */
bool laci_layout_get_strides(const laci_layout *of, int n, int64_t *strides, int64_t *offset);
/** Returns the channels in a block, which are adjacent in memory; 1: there are no blocks. */
int64_t laci_layout_block_channels(const laci_layout *layout);
size_t laci_layout_bytes(const laci_layout *layout); /* padding of blocks included */
bool laci_layout_equal(const laci_layout *a, const laci_layout *b);
void laci_layout_destroy(laci_layout *layout); /* NULL is fine */
size_t laci_element_bytes(laci_element element);

/* ---- Memory ---- */

/** Creates memory over `data`; NULL: laci_memory_set_data gives it later. */
LAC_MUST_CHECK lac_status laci_memory_create(const laci_onednn *dnn, const laci_layout *layout,
                                             void *data, laci_memory **made);
LAC_MUST_CHECK lac_status laci_memory_set_data(laci_memory *memory, void *data);
void laci_memory_destroy(laci_memory *memory); /* NULL is fine */

/** Copies a tensor from one layout to another, and waits for the result. */
LAC_MUST_CHECK lac_status laci_layout_convert_data(const laci_onednn *dnn, const laci_layout *from,
                                                   const void *data, const laci_layout *to,
                                                   void *out);

/* ---- Primitives ---- */

/** Creates posts. A post whose value is >= 0 adds the content of the destination (at most one
 * does); any other post is an element-wise function. */
LAC_MUST_CHECK lac_status laci_posts_create(const laci_onednn *dnn, const laci_post *posts, int n,
                                            laci_posts **made);
void laci_posts_destroy(laci_posts *posts); /* NULL is fine */

/* The following functions describe primitives. posts NULL: none. Where a layout is `any`, the
 * primitive chooses it. */
lac_status laci_primitive_describe_reorder(laci_primitive **made, const laci_onednn *dnn,
                                           const laci_layout *from, const laci_layout *to);
/** Describes a convolution. md: layouts of source, weights, bias (or NULL) and destination. */
lac_status laci_primitive_describe_conv(laci_primitive **made, const laci_onednn *dnn,
                                        laci_conv_algorithm algorithm,
                                        const laci_layout *const md[4], const laci_window *w,
                                        const laci_posts *posts);
lac_status laci_primitive_describe_pool(laci_primitive **made, const laci_onednn *dnn,
                                        laci_pool_kind kind, const laci_layout *const md[2],
                                        const laci_window *w);
lac_status laci_primitive_describe_matmul(laci_primitive **made, const laci_onednn *dnn,
                                          const laci_layout *const md[4], const laci_posts *posts);
lac_status laci_primitive_describe_function(laci_primitive **made, const laci_onednn *dnn,
                                            const laci_function *f, const laci_layout *md);
lac_status laci_primitive_describe_binary(laci_primitive **made, const laci_onednn *dnn,
                                          laci_binary_kind kind, const laci_layout *const md[3],
                                          const laci_posts *posts);
lac_status laci_primitive_describe_batch_norm(laci_primitive **made, const laci_onednn *dnn,
                                              const laci_layout *md, float epsilon, int flags);
lac_status laci_primitive_describe_layer_norm(laci_primitive **made, const laci_onednn *dnn,
                                              const laci_layout *md, float epsilon);
lac_status laci_primitive_describe_softmax(laci_primitive **made, const laci_onednn *dnn, bool log,
                                           const laci_layout *md, int axis);
lac_status laci_primitive_describe_reduction(laci_primitive **made, const laci_onednn *dnn,
                                             laci_reduction_kind kind,
                                             const laci_layout *const md[2]);
lac_status laci_primitive_describe_resample(laci_primitive **made, const laci_onednn *dnn,
                                            bool nearest, const laci_layout *const md[2]);
lac_status laci_primitive_describe_concat(laci_primitive **made, const laci_onednn *dnn, int n,
                                          int axis, const laci_layout *const *sources);

/* Primitives of training: forward ones, and gradients. A gradient gets its forward primitive as the
 * hint, so that both agree about layouts and about the workspace that the forward one fills. */

/** Does batch norm's gradient take the shift as an operand? It does in version 2, which does not
 * read it. */
bool laci_norm_gradient_reads_shift(void);
lac_status laci_primitive_describe_conv_train(laci_primitive **made, const laci_onednn *dnn,
                                              laci_conv_algorithm algorithm,
                                              const laci_layout *const md[4], const laci_window *w);
/** Describes the gradient of a convolution's input. md: source, weights, destination; each is the
 * layout of the value or of its gradient, whichever the primitive reads or writes. */
lac_status laci_primitive_describe_conv_input_gradient(
    laci_primitive **made, const laci_onednn *dnn, laci_conv_algorithm algorithm,
    const laci_layout *const md[3], const laci_window *w, const laci_primitive *hint);
lac_status laci_primitive_describe_conv_weight_gradient(
    laci_primitive **made, const laci_onednn *dnn, laci_conv_algorithm algorithm,
    const laci_layout *const md[3], const laci_window *w, const laci_primitive *hint);
lac_status laci_primitive_describe_batch_norm_train(laci_primitive **made, const laci_onednn *dnn,
                                                    const laci_layout *md, float epsilon,
                                                    int flags);
lac_status laci_primitive_describe_batch_norm_gradient(laci_primitive **made,
                                                       const laci_onednn *dnn,
                                                       const laci_layout *md, float epsilon,
                                                       int flags, const laci_primitive *hint);
lac_status laci_primitive_describe_pool_train(laci_primitive **made, const laci_onednn *dnn,
                                              laci_pool_kind kind, const laci_layout *const md[2],
                                              const laci_window *w);
lac_status laci_primitive_describe_pool_gradient(laci_primitive **made, const laci_onednn *dnn,
                                                 laci_pool_kind kind,
                                                 const laci_layout *const md[2],
                                                 const laci_window *w, const laci_primitive *hint);
lac_status laci_primitive_describe_function_train(laci_primitive **made, const laci_onednn *dnn,
                                                  const laci_function *f, const laci_layout *md);
lac_status laci_primitive_describe_function_gradient(laci_primitive **made, const laci_onednn *dnn,
                                                     const laci_function *f, const laci_layout *md,
                                                     const laci_primitive *hint);

/** Returns the layout of an argument; NULL: the primitive has none. It lives as long as the
 * primitive. */
const laci_layout *laci_primitive_layout(const laci_primitive *p, laci_arg arg);
/** Returns the library's name of the kernel, as a view. */
const char *laci_primitive_kernel_name(const laci_primitive *p);
/** Is the implementation the library's slow reference? */
bool laci_primitive_is_reference(const laci_primitive *p);
/** Is the primitive a convolution that copies all windows into a matrix, and multiplies this
 * matrix? */
bool laci_primitive_copies_windows(const laci_primitive *p);
/** Does the primitive add to the content of its destination? */
bool laci_primitive_adds_to_result(const laci_primitive *p);
typedef enum laci_product_kind {
  LACI_PRODUCT_NONE,
  LACI_PRODUCT_CONV,
  LACI_PRODUCT_MATMUL
} laci_product_kind;
laci_product_kind laci_primitive_product_kind(const laci_primitive *p);
/** Creates the primitive from its description; laci_primitive_layout must not be called
 * afterwards. */
LAC_MUST_CHECK lac_status laci_primitive_create(laci_primitive *p);
/** Sets the primitive's n arguments (laci_arg); the memory stays the caller's. */
LAC_MUST_CHECK lac_status laci_primitive_bind(laci_primitive *p, int n, const int *args,
                                              laci_memory *const *memory);
/** Runs the primitive. status: receives the library's status code, for reports; may be NULL. */
LAC_MUST_CHECK lac_status laci_primitive_run(const laci_primitive *p, const laci_onednn *dnn,
                                             int *status);
void laci_primitive_destroy(laci_primitive *p); /* NULL is fine */

#endif

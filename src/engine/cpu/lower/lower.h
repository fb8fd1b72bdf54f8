/* SPDX-License-Identifier: Apache-2.0
 * Lowering makes steps of fused nodes. This file declares what an implementation is, and the
 * functions with which it lowers.
 *
 *   buffer   bytes with a lifetime: in the arena, a weight, or the caller's
 *   tensor   a view of a buffer in one layout; several may show the same content
 *   step     one primitive or one function over tensors
 *
 * Each operator has an ordered list of implementations (the table is in lower.c). The first one
 * that supports the fused node, with all that is fused to it, lowers it. If a library refuses it
 * during lowering, the implementation declines: its steps are removed and the next one is tried.
 * The last resort is the plain operator. Next: lower.c, then the operators' files; the functions
 * below are in tensors.c, values.c, weights.c and step.c. */
#ifndef LACI_ENGINE_CPU_LOWER_H
#define LACI_ENGINE_CPU_LOWER_H

#include "engine/cpu/plan/plan.h"

typedef struct laci_layout laci_layout;
typedef struct laci_memory laci_memory;
typedef struct laci_net laci_net;
typedef struct laci_native_layout laci_native_layout;
typedef struct laci_posts laci_posts;
typedef struct laci_primitive laci_primitive;

enum {
  LACI_NET_BLOCK = 16,         /* number of channels in a block of oneDNN's layout nChw16c */
  LACI_NET_RESERVE = 16 << 20, /* minimum bytes of free memory before oneDNN is called */
};

/* ---- Implementations ---- */

typedef void laci_lower_function(laci_net *net, const laci_fused *fused);
/** Can the implementation lower the fused node (add the steps that compute it)? If not, *why says
 * what is missing. Fusion asks this before any value has a tensor, and lowering asks again. */
typedef bool laci_lower_supports(laci_net *net, const laci_fused *fused, const char **why);

typedef struct laci_implementation {
  const char *name;              /* name of the implementation; NULL: the end of a list */
  int fusible;                   /* laci_fusible flags: what the implementation can fuse with its
                                    node */
  laci_lower_supports *supports; /* can the implementation lower the fused node? NULL: always */
  laci_lower_function *lower;
} laci_implementation;

/** Lists of implementations. Each is for one operator, or for several that are lowered alike. */
extern const laci_implementation laci_implementations_conv[], laci_implementations_conv_transpose[],
    laci_implementations_conv_grad_input[], laci_implementations_conv_grad_weight[];
extern const laci_implementation laci_implementations_gemm[], laci_implementations_matmul[];
extern const laci_implementation laci_implementations_pool[], laci_implementations_global_pool[],
    laci_implementations_max_pool_grad[], laci_implementations_average_pool_grad[];
extern const laci_implementation laci_implementations_function[], laci_implementations_accurate[],
    laci_implementations_arithmetic[], laci_implementations_pair[],
    laci_implementations_relu_grad[], laci_implementations_unary_grad[],
    laci_implementations_clip_grad[];
extern const laci_implementation laci_implementations_batch_norm[],
    laci_implementations_batch_norm_train[], laci_implementations_batch_norm_train_grad[],
    laci_implementations_layer_norm[], laci_implementations_softmax[],
    laci_implementations_reduce[];
extern const laci_implementation laci_implementations_concat[], laci_implementations_reshape[],
    laci_implementations_same[], laci_implementations_transpose[], laci_implementations_slice[],
    laci_implementations_slice_grad[], laci_implementations_split[], laci_implementations_pad[],
    laci_implementations_gather[], laci_implementations_gather_nd[], laci_implementations_resize[],
    laci_implementations_prelu[], laci_implementations_instance_norm[],
    laci_implementations_blocks[], laci_implementations_tile[];
extern const laci_implementation laci_implementations_logic[], laci_implementations_where[],
    laci_implementations_expand[], laci_implementations_cast[],
    laci_implementations_quantize_list[], laci_implementations_quantize_node[];
extern const laci_implementation laci_implementations_recurrent[];
extern const laci_implementation laci_implementations_cross_entropy[],
    laci_implementations_cross_entropy_grad[], laci_implementations_squared_error[],
    laci_implementations_squared_error_grad[];
/** Lists of implementations for patterns, several nodes that are lowered as one
 * (laci_fused_pattern). */
extern const laci_implementation laci_implementations_attention[],
    laci_implementations_layer_norm_nodes[], laci_implementations_relu_sum[],
    laci_implementations_quantize[], laci_implementations_duplicate[], laci_implementations_table[],
    laci_implementations_function_nodes[], laci_implementations_integer_product[],
    laci_implementations_dynamic_steps[];

/** Returns what can be fused to a node (laci_plan_ask_fusible). */
laci_plan_ask_fusible laci_lower_find_fusible;
/** Lowers all fused nodes in the order of the schedule, then the outputs. */
void laci_net_lower_graph(laci_net *net);
/** Lowers a node to a step that calls the operator's own eval; nothing can be fused to it.
 * plain.c */
laci_lower_function laci_lower_plain;
/** Declines the node, so that the next implementation is tried. An implementation calls this if it
 * finds only while lowering that it cannot lower the node. What can be known before belongs in
 * `supports`. */
void laci_net_decline_node(laci_net *net, const char *why);

/* ---- Tensors and steps ---- */

typedef struct laci_net_tensor {
  laci_shape shape;                 /* shape as oneDNN sees it: rank >= 1 */
  laci_element dt;                  /* type of the elements */
  laci_layout *md;                  /* the layout; NULL: a native layout, or row-major int64 or
                                       double */
  const laci_native_layout *native; /* the layout, if it is one of our own kernels
                                       (native/values.h); NULL: `md` is the layout */
  int buffer;                       /* index of the buffer that holds the bytes */
  int content;  /* tensors with the same number hold the same content in different layouts. It is
                   the index of the first of them, with which a chain of these tensors begins; -1:
                   the content is not shared */
  int next;     /* index of the next tensor in the chain; -1: none */
  int last;     /* in the first tensor of a chain, the index of the last one */
  bool partial; /* the tensor covers a part of its buffer, and is not dense */
  bool shared;  /* other values may use this copy, too: it must not be overwritten */
  laci_memory *memory;
} laci_net_tensor;

struct laci_net_step;
typedef lac_status laci_net_code(laci_net *net, struct laci_net_step *step, lac_error *err);

typedef struct laci_net_step {
  const laci_node *node; /* the node that the step computes; NULL: none of the graph */
  const char *what;      /* what the step computes, for the plan's text: "Conv + relu", "reorder" */
  const char *kernel;    /* oneDNN's name of the kernel, or the name of the exact engine */
  bool sparse;           /* the kernel skips zeros of the weight */
  bool plain;            /* the operator's own eval computes the step */
  bool recomputed;       /* the step is part of a recomputation */
  int shown;             /* index of the tensor whose shape the plan's text shows as that of the
                            result; -1: none */
  /* number of multiplications and additions of a step with `code`; that of a primitive follows from
   * its operands */
  int64_t flops;
  double predicted_seconds;  /* seconds that a table of costs predicts */
  laci_primitive *primitive; /* the oneDNN primitive to run; it is only described until the arena is
                                allocated, and then created */
  laci_net_code *code;       /* the function to run; NULL: `primitive` is run */
  void *context;             /* context of `code`, allocated from the plan's memory */
  int n_args;
  int *codes, *tensors; /* [n_args] role (laci_arg) and index of each tensor; the roles of a step
                           with `code` are LACI_ARG_NONE or LACI_ARG_SCRATCHPAD */
} laci_net_step;

/* ---- tensors.c, values.c: the functions with which implementations lower ----
 * Ids are -1 after a failure, and may be passed on. */

/** Returns the shape, or [1] for a scalar, since oneDNN has no scalars. */
static inline laci_shape laci_net_shape_with_axis(const laci_shape *shape) {
  return shape->rank > 0 ? *shape : laci_shape_of(1, (int64_t[]){1});
}

/** laci_net_dense_layout: returns a descriptor of a row-major tensor. laci_net_any_layout: returns
 * one that leaves the layout to the primitive. NULL after a failure. */
laci_layout *laci_net_dense_layout(laci_net *net, const laci_shape *shape, laci_element dt);
laci_layout *laci_net_any_layout(laci_net *net, const laci_shape *shape, laci_element dt);
/** Returns a descriptor of a tensor whose channels (axis 1) are innermost. NULL after a failure. */
laci_layout *laci_net_channels_last_layout(laci_net *net, const laci_shape *shape, laci_element dt);
/** Returns a descriptor of a tensor in blocks of 16 channels (nChw16c). NULL after a failure, or
 * unless there are four axes and a multiple of 16 channels. */
laci_layout *laci_net_blocks_layout(laci_net *net, const laci_shape *shape, laci_element dt);
/** Is the tensor in blocks of 16 channels, and of the net's element type? */
bool laci_net_is_in_blocks(laci_net *net, int tensor);
/** Is the tensor, which has a descriptor, row-major? */
bool laci_net_is_row_major(laci_net *net, int tensor);

int laci_net_buffer_new(laci_net *net, laci_place place, size_t bytes);
/** Adds a tensor that is stored in the buffer with that index. Takes ownership of md, also on
 * failure. */
int laci_net_tensor_new(laci_net *net, const laci_shape *shape, laci_element dt, laci_layout *md,
                        int buffer);
/** Adds a tensor that shares the buffer of another tensor. Takes ownership of md. */
int laci_net_view_new(laci_net *net, int tensor, const laci_shape *shape, laci_layout *md,
                      bool partial);

/** Records that the tensor holds the same content as the tensors whose field `content` is this
 * number. */
void laci_net_set_content(laci_net *net, int tensor, int content);
/** Returns the tensor whose field `content` is this number and whose layout is md; -1: there is
 * none. */
int laci_net_find_tensor(const laci_net *net, int content, const laci_layout *md);
/** Returns a tensor over the bytes of the tensor `found`, which has the content of the tensor
 * `like`, for a reader of `like`. Unless both have the same buffer, neither this reader nor a later
 * one may overwrite these bytes. */
int laci_net_reuse_tensor(laci_net *net, int found, int like);
/** Returns a tensor of the value, in any layout of oneDNN; a native layout (of our own kernels) is
 * converted. A constant becomes a weight. */
int laci_net_read_value(laci_net *net, int value);
/** Returns the tensor of a value in any layout, including native ones (of our own kernels). */
int laci_net_find_value_tensor(laci_net *net, int value);
/** Returns a tensor with the content of `tensor` in that layout and type: itself, an existing copy,
 * or the result of a reorder step that is added here. */
int laci_net_convert_tensor(laci_net *net, int tensor, const laci_layout *md, laci_element dt);
/** Returns a row-major tensor of that type with the content of `tensor`. */
int laci_net_convert_to_dense(laci_net *net, int tensor, laci_element dt);
/** Returns a tensor with the content of `tensor`, in any dense layout and of the net's element
 * type, that is not a part of another tensor's buffer. */
int laci_net_make_whole_tensor(laci_net *net, int tensor);
/** Returns a tensor with the elements of `tensor` in the same order and the axes of `shape`: the
 * tensor itself, a view if strides can describe it, or else a copy. */
int laci_net_reshape_tensor(laci_net *net, int tensor, const laci_shape *shape);
/** Returns a tensor of the value in blocks of 16 channels, of the net's element type. */
int laci_net_read_in_blocks(laci_net *net, int value);
/** Sets the tensor that holds a value. In a recomputation, a value whose memory was not freed keeps
 * its tensor. */
void laci_net_bind_value(laci_net *net, int value, int tensor);
/** Sets the tensor that holds a value, where the tensor has the same elements but perhaps other
 * axes. */
void laci_net_bind_reshaped(laci_net *net, int value, int tensor);
/** Records that all steps of one reader of the value have been added. */
void laci_net_note_read_done(laci_net *net, int value);
/** Is the read that is being lowered the last one of the tensor's buffer? Then the step may
 * overwrite the buffer. */
bool laci_net_is_last_read(const laci_net *net, int tensor);

/** Returns a tensor for a result with the shape and layout of `like`. It shares the bytes of `like`
 * if these may be overwritten and in_place is set. */
int laci_net_new_result_like(laci_net *net, int like, bool in_place);
/** Adds a tensor with a new buffer in the arena. md is copied. */
int laci_net_new_result(laci_net *net, const laci_shape *shape, laci_element dt,
                        const laci_layout *md);
/** Adds a scratch buffer for one step; returns its tensor. */
int laci_net_scratch_new(laci_net *net, size_t bytes);
/** Adds the workspace that the forward primitive of `node` fills for its gradient, and records it
 * in net->workspaces. Returns its tensor; -1: the primitive has none. */
int laci_net_workspace_new(laci_net *net, int node, const laci_primitive *pd);
/** Returns the element type of a result: the net's type, or f32 for gradients of parameters and
 * other outputs. */
laci_element laci_net_result_element(const laci_net *net, int value);
/** Adds a step that computes one element-wise function of `from`; returns the result's tensor. */
int laci_net_apply_function(laci_net *net, const laci_fused *fused, int from,
                            const laci_function *f);

/* ---- weights.c: makes tensors of constants while planning ---- */

/** A constant that is the weight of a product. Element i, in file order, is multiplied by factor *
 * scale[i / run % n_scale]. */
typedef struct laci_net_weight {
  int value;
  laci_shape shape;               /* shape of the weight as the product reads it */
  int64_t strides[LACI_MAX_RANK]; /* strides of `shape` over the constant's elements; each element
                                     is read exactly once */
  const float *scale;             /* [n_scale] scales; NULL: all are 1 */
  int64_t n_scale, run;           /* n_scale: number of scales; run: number of consecutive elements
                                     that share a scale */
  float factor;
} laci_net_weight;
/** Returns a tensor of the weight in the layout `wanted`. The constant is reordered now, in slices,
 * so that only the memory of one slice is needed in addition to the weight. */
int laci_net_weight_in_layout(laci_net *net, const laci_net_weight *weight,
                              const laci_layout *wanted);
/** A function that is called for one slice of a weight (along its slowest axis) after the other:
 * elements [first, first + n) in file order, scaled. Returns false to stop. */
typedef bool laci_net_slice(void *context, int64_t first, int64_t n, const float *x);
/** Calls `visit` for each slice of a weight, in file order. */
void laci_net_visit_weight_slices(laci_net *net, const laci_net_weight *weight,
                                  laci_net_slice *visit, void *context);
/** Writes all elements of a weight to `to`, in file order and scaled. False: a failure, which is
 * recorded in the plan. */
bool laci_net_read_weight_floats(laci_net *net, const laci_net_weight *weight, float *to);
/** Returns a new weight tensor of zeroed bytes, for a format of a kernel's own, in large pages if
 * the system has them. value: the value from which it is computed. */
int laci_net_weight_new(laci_net *net, size_t bytes, int value);
/** Copies a tensor's elements, which are at `data`, into a new weight of another layout and type;
 * returns its tensor. */
int laci_net_weight_from_tensor(laci_net *net, const laci_net_tensor *from, const void *data,
                                const laci_layout *wanted, laci_element dt);
/** Returns a weight tensor with a copy of n floats. */
int laci_net_weight_from_floats(laci_net *net, const float *floats, int64_t n);
/** Returns a row-major tensor of a constant, not scaled. */
int laci_net_constant_tensor(laci_net *net, int value);
/** Returns what the engine's options say about a constant weight; NULL: nothing. */
const laci_engine_weight *laci_net_find_weight_facts(const laci_net *net, int value);
/** Returns the fraction of nonzero elements of a constant, found from its packing or a sample of
 * its elements; 1 if the constant cannot be read. */
double laci_net_nonzero_share(const laci_net *net, int value);
/** Frees weights that no step reads: those of implementations that declined, and layouts that were
 * replaced. */
void laci_net_free_unused_weights(laci_net *net);

/* ---- Posts (operations on a result before it is stored), and steps (step.c) ---- */

/** Returns the fused node's posts for a primitive, which the caller destroys. *sum: the value to be
 * added (-1: none). NULL after a failure. */
laci_posts *laci_net_create_posts(laci_net *net, const laci_fused *fused, int *sum);
/** Returns the destination tensor for a primitive that adds its result to the destination's
 * content: a tensor in layout md with the content of the tensor `have`. */
int laci_net_make_sum_target(laci_net *net, int have, const laci_layout *md, laci_element dt);

/** Adds a step that runs the primitive pd, of which it takes ownership. args: n_args pairs
 * (laci_arg, index of a tensor). */
void laci_net_step_add(laci_net *net, const laci_fused *fused, laci_primitive *pd, int n_args,
                       const int (*args)[2]);
/** Returns the names of the fused node's operator and of all that is fused to it, for the plan's
 * text. */
const char *laci_net_describe_fused(laci_net *net, const laci_fused *fused);
/** Adds a step that runs the function `code` on n_tensors tensors; returns it, or NULL after a
 * failure. */
laci_net_step *laci_net_step_add_code(laci_net *net, const laci_node *node, laci_net_code *code,
                                      int n_tensors, const int *tensors);
/** Marks the operand with index `at` of a step with `code` as its scratch buffer. */
void laci_net_step_mark_scratch(laci_net_step *step, int at);
/** A position in the lists of steps and tensors. laci_net_remove_steps_after removes all steps that
 * were added after it, and the contents that they would have computed. */
typedef struct laci_net_mark {
  size_t n_steps, n_tensors;
} laci_net_mark;
laci_net_mark laci_net_mark_position(const laci_net *net);
void laci_net_remove_steps_after(laci_net *net, laci_net_mark mark);

/** Returns the address of a tensor's bytes. Call it only after buffers have been placed in the
 * arena. */
void *laci_net_tensor_data(const laci_net *net, int tensor);

#endif

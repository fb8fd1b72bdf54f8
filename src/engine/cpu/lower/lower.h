/* SPDX-License-Identifier: Apache-2.0
 * From fused nodes to steps: what an implementation is, and the functions with which it lowers.
 *
 *   buffer   bytes with a lifetime: in the arena, a weight, or the caller's
 *   tensor   a view of a buffer in one layout; several may show the same content
 *   step     one primitive or one function over tensors
 *
 * Each operator has an ordered list of implementations (lower.c has the table). The first one that
 * supports the fused node, with all that is fused to it, lowers it. Where a library refuses it
 * while it is lowered, the implementation declines: its steps are removed and the next one is
 * tried. The last of all is the plain operator. Next: lower.c, then the families; these functions
 * are in tensors.c, values.c, weights.c and step.c. */
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
  LACI_NET_BLOCK = 16,         /* channels of oneDNN's nChw16c */
  LACI_NET_RESERVE = 16 << 20, /* bytes that have to be there before oneDNN is asked for anything */
};

/* ---- Implementations ---- */

typedef void laci_lower_function(laci_net *net, const laci_fused *fused);
/** Can it lower this? If not, `why` says what it lacks. Asked by fusion, when no value has a tensor
 * yet, and again before lowering. */
typedef bool laci_lower_supports(laci_net *net, const laci_fused *fused, const char **why);

typedef struct laci_implementation {
  const char *name;              /* NULL: the end of a list */
  int takes;                     /* laci_takes */
  laci_lower_supports *supports; /* NULL: always */
  laci_lower_function *lower;
} laci_implementation;

/** The lists: one operator, or operators that are lowered alike. */
extern const laci_implementation laci_implementations_conv[],
    laci_implementations_conv_grad_input[], laci_implementations_conv_grad_weight[];
extern const laci_implementation laci_implementations_gemm[], laci_implementations_matmul[];
extern const laci_implementation laci_implementations_pool[], laci_implementations_global_pool[],
    laci_implementations_max_pool_grad[], laci_implementations_average_pool_grad[];
extern const laci_implementation laci_implementations_function[], laci_implementations_careful[],
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
    laci_implementations_gather[], laci_implementations_gather_nd[], laci_implementations_resize[];
extern const laci_implementation laci_implementations_logic[], laci_implementations_where[],
    laci_implementations_expand[], laci_implementations_cast[];
extern const laci_implementation laci_implementations_cross_entropy[],
    laci_implementations_cross_entropy_grad[], laci_implementations_squared_error[],
    laci_implementations_squared_error_grad[];
/** Of patterns. */
extern const laci_implementation laci_implementations_attention[],
    laci_implementations_layer_norm_nodes[], laci_implementations_relu_sum[],
    laci_implementations_quantize[], laci_implementations_again[];

/** Fusion's question (laci_plan_ask). */
laci_plan_ask laci_lower_takes;
/** All fused nodes in order; then the outputs. */
void laci_net_lower(laci_net *net);
/** The operator's own eval; it takes nothing in. plain.c */
laci_lower_function laci_lower_plain;
/** The implementation that is lowering cannot do it: the next one is tried. Only for what shows
 * while it is tried; `supports` says all else. */
void laci_net_decline(laci_net *net, const char *why);

/* ---- What tensors and steps are ---- */

typedef struct laci_net_tensor {
  laci_shape shape; /* as oneDNN sees it: rank >= 1 */
  laci_element dt;
  laci_layout *md;                  /* NULL: a native layout, or row-major int64 or double */
  const laci_native_layout *native; /* native/values.h; NULL: as md says */
  int buffer;
  int content;  /* equal numbers: the same content in another layout; -1: private. The number of the
                   first tensor that holds it; the others follow it in its chain */
  int next;     /* of the chain; -1: there is none */
  int last;     /* where the chain ends that begins here */
  bool partial; /* shows a part of its buffer: not dense */
  bool shared;  /* an existing copy, which other values may use: no reader owns it */
  laci_memory *memory;
} laci_net_tensor;

struct laci_net_step;
typedef lac_status laci_net_code(laci_net *net, struct laci_net_step *step, lac_error *err);

typedef struct laci_net_step {
  const laci_node *node;     /* NULL: not of the graph */
  const char *what;          /* for the plan's text: "Conv + relu", "reorder" */
  const char *kernel;        /* oneDNN's name of the implementation, or that of the exact engine */
  bool sparse;               /* code that skips zeros of the weight */
  bool plain;                /* by the exact engine's operator */
  bool recomputed;           /* of a recomputation */
  int shown;                 /* tensor whose shape the text shows: the result; -1: none */
  int64_t flops;             /* of code; primitives report theirs */
  laci_primitive *primitive; /* described; made when all memory is known and there */
  laci_net_code *code;       /* where there is no primitive */
  void *context;             /* code's own, of the net's memory */
  int n_args;
  int *codes, *tensors; /* [n_args]; laci_arg; of code: none, or a scratchpad */
} laci_net_step;

/* ---- tensors.c, values.c: the functions with which implementations lower ----
 * Ids are -1 after a failure, and may be passed on. */

/** oneDNN has no scalars: rank 0 becomes one axis of size 1. */
static inline laci_shape laci_net_with_axis(const laci_shape *shape) {
  return shape->rank > 0 ? *shape : laci_shape_of(1, (int64_t[]){1});
}

/** Descriptor of a row-major tensor, of any layout. NULL after a failure. */
laci_layout *laci_net_dense(laci_net *net, const laci_shape *shape, laci_element dt);
laci_layout *laci_net_any(laci_net *net, const laci_shape *shape, laci_element dt);
/** Row-major with the channels (axis 1) innermost. */
laci_layout *laci_net_channels_last(laci_net *net, const laci_shape *shape, laci_element dt);
/** Blocks of 16 channels, one block after the other (nChw16c). NULL where 16 does not divide the
 * channels of four axes, or after a failure. */
laci_layout *laci_net_blocks(laci_net *net, const laci_shape *shape, laci_element dt);
/** Has the tensor that layout, in the net's type? */
bool laci_net_in_blocks(laci_net *net, int tensor);

int laci_net_buffer_new(laci_net *net, laci_place place, size_t bytes);
/** Takes md (also on failure). */
int laci_net_tensor_new(laci_net *net, const laci_shape *shape, laci_element dt, laci_layout *md,
                        int buffer);
/** A tensor over the elements of another: same buffer. Takes md. */
int laci_net_view(laci_net *net, int tensor, const laci_shape *shape, laci_layout *md,
                  bool partial);

/** A tensor of that content in that layout, or -1. */
/** The tensor holds that content, too, from now on. */
void laci_net_same_content(laci_net *net, int tensor, int content);
int laci_net_find(const laci_net *net, int content, const laci_layout *md);
/** What was found instead of a copy of `like`, for one more reader. What is still to be read of its
 * buffer is other values, not the one that was copied. */
int laci_net_found(laci_net *net, int found, int like);
/** The value as a tensor, in whatever layout of the library's it has. Constants become weights. */
int laci_net_read(laci_net *net, int value);
/** The same, or in a native layout. */
int laci_net_tensor_of(laci_net *net, int value);
/** The same content in that layout and type: as it is, reordered before, or by a step now. */
int laci_net_as(laci_net *net, int tensor, const laci_layout *md, laci_element dt);
/** Row-major in that type. */
int laci_net_as_dense(laci_net *net, int tensor, laci_element dt);
/** Not as a part of another, in the type in which the net computes; any dense layout. */
int laci_net_whole(laci_net *net, int tensor);
/** The value in blocks of channels, in the type in which the net computes. */
int laci_net_as_blocks(laci_net *net, int value);
/** Binds a value to the tensor that holds it. In a recomputation, a value that was not dropped
 * stays where it is. */
void laci_net_bind(laci_net *net, int value, int tensor);
/** The same where the tensor's axes may be cut otherwise than the value's. */
void laci_net_bind_shaped(laci_net *net, int value, int tensor);
/** A reader of the value has its steps. */
void laci_net_read_done(laci_net *net, int value);
/** True where this is the last read of what lives in the tensor's buffer, so that it may be
 * overwritten. */
bool laci_net_dies(const laci_net *net, int tensor);

/** A tensor like `like` for a result; `like`'s own bytes where it dies and in_place is set. */
int laci_net_result_like(laci_net *net, int like, bool in_place);
/** A new tensor in the arena. */
int laci_net_result(laci_net *net, const laci_shape *shape, laci_element dt, const laci_layout *md);
/** Bytes that a step of ours writes and reads for itself. */
int laci_net_scratch(laci_net *net, size_t bytes);
/** What the forward primitive of `node` keeps for its gradient, as a tensor (in net->workspaces,
 * too); -1: nothing. */
int laci_net_workspace(laci_net *net, int node, const laci_primitive *pd);
/** The type of a result: parameters' gradients and all else that the caller gets stay f32. */
laci_element laci_net_result_dt(const laci_net *net, int value);
/** One element-wise function as a step; the result's tensor. */
int laci_net_apply(laci_net *net, const laci_fused *fused, int from, const laci_function *f);

/* ---- weights.c: what is constant, as tensors; done at once ---- */

/** A constant as a product's weight: element i of it, in the order of the file, times
 * factor * scale[i / run % n_scale]. */
typedef struct laci_net_weight {
  int value;
  laci_shape shape;               /* as the product sees it */
  int64_t strides[LACI_MAX_RANK]; /* of shape, over the constant's elements: each exactly once */
  const float *scale;             /* [n_scale]; NULL: ones */
  int64_t n_scale, run;
  float factor;
} laci_net_weight;
/** In that layout, reordered now, a slice after the other: the memory of one is all it takes in
 * addition to the weight itself. */
int laci_net_weight_as(laci_net *net, const laci_net_weight *weight, const laci_layout *wanted);
/** Elements [first, first + n) of a weight in the order of the file, scaled: a slice along its
 * slowest axis. False: no more of them. */
typedef bool laci_net_slice(void *context, int64_t first, int64_t n, const float *x);
/** Reads a weight slice after slice. */
void laci_net_weight_slices(laci_net *net, const laci_net_weight *weight, laci_net_slice *visit,
                            void *context);
/** All of it at once, in the order of the file, scaled. False: a failure (noted). */
bool laci_net_weight_floats(laci_net *net, const laci_net_weight *weight, float *to);
/** A weight of zeroed bytes that its step fills and knows how to read; value: what it is made of.
 * In large pages where the system has them. */
int laci_net_weight_new(laci_net *net, size_t bytes, int value);
/** A tensor's bytes as a weight in another layout and type. */
int laci_net_weight_from(laci_net *net, const laci_net_tensor *from, const void *data,
                         const laci_layout *wanted, laci_element dt);
/** A vector of f32 as a weight. */
int laci_net_vector(laci_net *net, const float *floats, int64_t n);
/** A constant as it is, row-major. */
int laci_net_constant_tensor(laci_net *net, int value);
/** What the options say of a constant; NULL: nothing. */
const laci_engine_weight *laci_net_known(const laci_net *net, int value);
/** The share of a constant's elements that are no zeros, as its packing or a sample says; 1 where
 * it cannot be read. */
double laci_net_kept_share(const laci_net *net, int value);
/** Weights that no step reads go: those of implementations that declined, and older layouts. */
void laci_net_drop_weights(laci_net *net);

/* ---- Posts, and steps (step.c) ---- */

/** Attributes with the fused node's posts; `sum` comes out as the value to be added (-1: none). The
 * caller destroys them. NULL after a failure. */
laci_posts *laci_net_posts(laci_net *net, const laci_fused *fused, int *sum);
/** dst of a primitive that adds to what is there: holds the content of `have` in layout md. */
int laci_net_sum_target(laci_net *net, int have, const laci_layout *md, laci_element dt);

/** A step that runs the primitive of pd (taken); args: pairs of oneDNN's argument and a tensor. */
void laci_net_step_add(laci_net *net, const laci_fused *fused, laci_primitive *pd, int n_args,
                       const int (*args)[2]);
/** The fused node with all that is fused to it, for the plan's text. */
const char *laci_net_describe(laci_net *net, const laci_fused *fused);
/** A step that runs a function. */
laci_net_step *laci_net_step_code(laci_net *net, const laci_node *node, laci_net_code *code,
                                  int n_tensors, const int *tensors);
/** The operand `at` of such a step is scratch of its own. */
void laci_net_step_scratch(laci_net_step *step, int at);
/** Forgets the steps that were added since, and the contents that they would have made. */
typedef struct laci_net_mark {
  size_t n_steps, n_tensors;
} laci_net_mark;
laci_net_mark laci_net_mark_now(const laci_net *net);
void laci_net_take_back(laci_net *net, laci_net_mark mark);

/** Where a tensor's bytes are; after placing. */
void *laci_net_data(const laci_net *net, int tensor);

#endif

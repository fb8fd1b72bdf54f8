/* SPDX-License-Identifier: Apache-2.0
 * What a plan is made of, for the files of this folder.
 *
 *   buffer   bytes with a lifetime: in the arena, a weight, or the caller's
 *   tensor   a view of a buffer in one layout; several may show the same content
 *   step     one primitive or one function over tensors
 *   layer    a node of the graph with those that melt into it
 *
 * Building is written without a check after each call: the first failure stays in net->status,
 * ids become -1, and what follows does nothing. Order of files: constants.c (types and constants),
 * layers.c (fusion), build.c (a builder a layer), ops_*.c (the builders), tensors.c (the words they
 * use), weights.c (constants as weights), place.c (the arena), net.c (create, run), text.c. */
#ifndef LACI_ENGINE_CPU_NET_IN_H
#define LACI_ENGINE_CPU_NET_IN_H

#include "engine/cpu/dnnl_compat.h"
#include "engine/cpu/net.h"
#include "cpu/pool.h"
#include "graph/op.h"

enum {
  LACI_NET_MAX_POSTS = 6,
  LACI_NET_MAX_READS = 5,
  LACI_NET_BLOCK = 16,      /* channels of oneDNN's nChw16c */
  LACI_NET_ROOM = 16 << 20, /* bytes that have to be there before oneDNN is asked for anything */
};

/** Content that does not depend on the inputs: a stored tensor's or a folded one's. Floats are kept
 * as f32; `f` of a stored tensor is filled when somebody asks (laci_net_floats). */
typedef struct laci_constant {
  int64_t count;
  const float *f; /* or NULL */
  int64_t *i;     /* or NULL; owned */
  float *owned;   /* f, unless a weight has it */
} laci_constant;

typedef struct laci_net_value {
  laci_type type;
  laci_constant *constant; /* NULL: computed in every run */
  int n_uses;              /* by nodes that are computed, and as graph outputs */
  int n_uses_once;         /* the same as if nothing were computed twice; laci_net_uses */
  int tensor;              /* -1: not there yet */
} laci_net_value;

typedef enum laci_place {
  LACI_PLACE_ARENA,
  LACI_PLACE_WEIGHT, /* filled while planning */
  LACI_PLACE_INPUT,  /* the caller's */
  LACI_PLACE_OUTPUT,
} laci_place;

typedef struct laci_net_buffer {
  laci_place place;
  size_t bytes;
  int first, last; /* steps that touch it; first < 0: nobody does */
  size_t offset;   /* in the arena */
  void *data;      /* weight: there from the start; caller's: set by every run */
  bool owned;
  bool loose;  /* a weight that only steps read: it goes where none does */
  int port;    /* of a caller's buffer */
  int pending; /* reads still to be planned, of all values that live here */
  int grows;   /* node + 1 of the Concat that goes on behind what is there: not to be overwritten;
                  0: none */
} laci_net_buffer;

typedef struct laci_net_tensor {
  laci_shape shape; /* as oneDNN sees it: rank >= 1 */
  dnnl_data_type_t dt;
  laci_md md; /* NULL: int64 or double elements, row-major */
  int buffer;
  int content;  /* equal numbers: the same content in another layout; -1: private */
  bool partial; /* shows a part of its buffer: not dense */
  bool lent;    /* a copy found again, which other values may lie in: not its reader's */
  dnnl_memory_t memory;
} laci_net_tensor;

struct laci_net_step;
typedef lac_status laci_net_code(laci_net *net, struct laci_net_step *step, lac_error *err);

typedef struct laci_net_step {
  const laci_node *node;    /* NULL: not of the graph */
  const char *what;         /* for people: "Conv + relu", "reorder" */
  const char *kernel;       /* oneDNN's name of the implementation, or "plain: why" */
  int shown;                /* tensor whose shape the text shows: the result; -1: none */
  int64_t flops;            /* of code; primitives tell theirs */
  dnnl_primitive_desc_t pd; /* until the primitive is made: when all memory is known and there */
  dnnl_primitive_t primitive;
  laci_net_code *code; /* where there is no primitive */
  void *context;       /* code's own, of the net's memory */
  int n_args;
  int *codes, *tensors; /* [n_args]; codes of code: 0, or oneDNN's for a scratchpad */
  dnnl_exec_arg_t *args;
} laci_net_step;

typedef struct laci_eltwise {
  dnnl_alg_kind_t alg;
  float alpha, beta;
} laci_eltwise;

/** What happens to a layer's result before it is written: + value, or an element-wise function. */
typedef struct laci_net_post {
  int value; /* >= 0: add this value */
  laci_eltwise eltwise;
} laci_net_post;

struct laci_net_layer;
typedef void laci_net_builder(laci_net *net, const struct laci_net_layer *layer);

typedef struct laci_net_layer {
  int node, tail;       /* tail: the last node that melted in; node itself if none */
  int output;           /* the value that comes out in the end */
  float *scale, *shift; /* [channels]: y = scale * y + shift before the posts; NULL: none */
  int64_t channels;
  int n_posts;
  laci_net_post posts[LACI_NET_MAX_POSTS];
  laci_net_builder *build; /* of several nodes as one (attention, a layer norm in pieces); it does
                              not decline. NULL: the node's own */
  void *pattern;           /* build's */
  int n_reads, reads[LACI_NET_MAX_READS]; /* values that build reads, as often as its nodes do */
} laci_net_layer;

/** A value that the observer wants to see. */
typedef struct laci_net_observed {
  int value;
  laci_engine_port port;
  bool built;
} laci_net_observed;

struct laci_net {
  const laci_graph *graph;
  laci_engine_fetch *fetch; /* of stored bytes; NULL: they are in memory */
  void *fetch_context;
  laci_arena memory; /* all small things */
  laci_pool *pool;   /* for plain operators */
  int n_threads;
  bool bf16;
  bool early_outputs;
  bool has_run;
  bool blocks; /* convolutions' values lie in blocks of 16 channels; laci_net_choose_blocks */
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_attr_t attr; /* scratchpads are ours */
  laci_net_value *values;     /* [n_values] */
  bool *computed;             /* [n_nodes] neither constant nor unused */
  laci_net_layer *layers;     /* [n_nodes]; output -1: melted into another, or nothing to do */
  int *layer_at;              /* [n_nodes] layer that is computed at this place; -1: none */
  int *workspaces; /* [n_nodes] tensor that a forward node leaves for its gradient; -1: none */
  size_t n_tensors, n_buffers, n_steps, tensor_room, buffer_room, step_room;
  laci_net_tensor *tensors;
  laci_net_buffer *buffers;
  laci_net_step *steps;
  uint8_t *arena;
  size_t arena_bytes, weight_bytes;
  int n_inputs, n_outputs;
  laci_engine_port *inputs, *outputs;
  int *output_tensors;
  laci_engine_observer observer; /* of no values: nobody looks */
  laci_net_observed *observed;   /* [observer.n_values] */
  char *text;
  laci_budget budget;    /* what others hold, and our ports; no limit without the caller's */
  size_t constant_bytes; /* of contents that only planning needs */
  lac_status status;     /* of building */
  lac_error *err;
};

/* ---- Failing ---- */

/** Keeps the first failure. */
void laci_net_fail(laci_net *net, lac_status status, const char *format, ...) LAC_PRINTF(3, 4);
void laci_net_no_memory(laci_net *net);
/** oneDNN's answer; true where it was success. `what` is unsupported otherwise. */
bool laci_net_did(laci_net *net, dnnl_status_t status, const char *what);
/** oneDNN ends the process where it gets no memory for its own small things (code, descriptors), so
 * it is not asked where there is none; that is then the failure. */
bool laci_net_has_room(laci_net *net);
/** May so many bytes more be taken now, for what planning holds? If not, that is the failure.
 * value: what they are for; -1: of no value. */
bool laci_net_may_take(laci_net *net, uint64_t bytes, int value);
/** Zeroed memory that lives as long as the net; NULL: no memory (noted). */
void *laci_net_new(laci_net *net, size_t n, size_t size);

/* ---- constants.c ---- */

LAC_MUST_CHECK lac_status laci_net_infer(laci_net *net, const laci_input_shape *fixed, int n_fixed,
                                         lac_error *err);
/** A constant as f32, or NULL: integers, no constant, no memory. */
const float *laci_net_floats(laci_net *net, int value);
/** Part of a constant of floats as f32: elements [first, first + n). */
LAC_MUST_CHECK lac_status laci_net_read_floats(const laci_net *net, int value, int64_t first,
                                               int64_t n, float *to, lac_error *err);
/** One element of a constant of any class. False where the value is none, or has more elements. */
bool laci_net_scalar(laci_net *net, int value, double *x);
/** A copy as the operators' eval wants it; destroy it. NULL: no memory, or no constant. */
laci_buf *laci_net_constant_buf(laci_net *net, int value);
void laci_constant_clear(laci_constant *constant);

/* ---- layers.c ---- */

LAC_MUST_CHECK lac_status laci_net_fuse(laci_net *net, lac_error *err);
/** The element-wise functions that a node is, one after the other on input 0 (a constant second
 * operand included); 0: it is none. */
int laci_eltwise_of(laci_net *net, const laci_node *node, int *input, laci_eltwise out[2]);
/** A Clip whose bounds are the inputs `port` and `port` + 1, or attributes; 0: not constant ones.
 */
int laci_net_clip(laci_net *net, const laci_node *node, int port, laci_eltwise *out);
/** How often the value is used, for what melts by that. Of one that is computed twice (remat.h),
 * both must melt as one would: what a twin's readers keep from melting counts as too many. */
int laci_net_uses(const laci_net *net, int value);
/** The value itself, or the one that it repeats. */
static inline int laci_net_original(const laci_net *net, int value) {
  int first = value >= 0 ? net->graph->values[value].repeats : -1;
  return first >= 0 ? first : value;
}
/** The computed node that alone reads the value, once, and has not melted; -1: none. */
int laci_net_only_reader(const laci_net *net, int value);
/** The computed node that makes the value, if it has not melted and is not the last of several that
 * became one; -1: none. */
int laci_net_maker(const laci_net *net, int value);
/** nodes[0 .. n - 1] become part of the layer of node `last`, which comes after them. */
void laci_net_absorb(laci_net *net, int last, const int *nodes, int n);
/** `next` melts into the layer as its new end. */
void laci_net_melt(laci_net *net, laci_net_layer *layer, int next);

/* ---- Several nodes as one: true where a layer was made of those around the node ---- */

bool laci_net_find_attention(laci_net *net, int node);  /* ops_attention.c; node: its Softmax */
bool laci_net_find_layer_norm(laci_net *net, int node); /* ops_norm.c; node: its first ReduceMean */
bool laci_net_find_relu_sum(laci_net *net, int node);   /* grad_relu.c; node: its ReluGrad */

/** The functions that an operator of this name and with this node's attributes is; 0: none. */
int laci_eltwise_named(const laci_node *node, const char *type, laci_eltwise out[2]);

/* ---- Shapes and types ---- */

static inline const laci_shape *laci_net_shape(const laci_net *net, int value) {
  return &net->values[value].type.shape;
}
static inline bool laci_net_is_float(const laci_net *net, int value) {
  return laci_dtype_is_float(net->values[value].type.dtype);
}
static inline bool laci_net_is_constant(const laci_net *net, int value) {
  return net->values[value].constant != NULL;
}
static inline dnnl_data_type_t laci_net_dt(const laci_net *net) {
  return net->bf16 ? dnnl_bf16 : dnnl_f32;
}
static inline bool laci_net_has(const laci_node *node, int port) {
  return port < node->n_inputs && node->inputs[port] >= 0;
}

/* ---- tensors.c: the words that builders speak. Ids are -1 after a failure, and may be passed on.
 * ---- */

/** Descriptor of a row-major tensor, of any layout. NULL after a failure. */
laci_md laci_net_dense(laci_net *net, const laci_shape *shape, dnnl_data_type_t dt);
laci_md laci_net_any(laci_net *net, const laci_shape *shape, dnnl_data_type_t dt);
/** Row-major with the channels (axis 1) innermost. */
laci_md laci_net_channels_last(laci_net *net, const laci_shape *shape, dnnl_data_type_t dt);
/** Planes of 16 channels, one after the other (nChw16c). NULL where 16 does not divide the channels
 * of four axes, or after a failure. */
laci_md laci_net_blocks(laci_net *net, const laci_shape *shape, dnnl_data_type_t dt);
/** Does the tensor lie so, in the net's type? */
bool laci_net_in_blocks(laci_net *net, int tensor);
/** Is this oneDNN's slow definition of right? */
bool laci_net_is_reference(const_dnnl_primitive_desc_t pd);

int laci_net_buffer_new(laci_net *net, laci_place place, size_t bytes);
/** Takes md (also on failure). */
int laci_net_tensor_new(laci_net *net, const laci_shape *shape, dnnl_data_type_t dt, laci_md md,
                        int buffer);
/** A tensor over the elements of another: same buffer. Takes md. */
int laci_net_view(laci_net *net, int tensor, const laci_shape *shape, laci_md md, bool partial);

/** The value as a tensor, in whatever layout it has. Constants become weights. */
int laci_net_read(laci_net *net, int value);
/** The same content in that layout and type: as it is, reordered before, or by a step now. */
int laci_net_as(laci_net *net, int tensor, laci_md_view md, dnnl_data_type_t dt);
/** Row-major in that type. */
int laci_net_as_dense(laci_net *net, int tensor, dnnl_data_type_t dt);
/** Whole, in the type in which the net computes; any dense layout. */
int laci_net_whole(laci_net *net, int tensor);
/** The value in blocks of channels, in the type in which the net computes. */
int laci_net_as_blocks(laci_net *net, int value);
/** Binds a value to the tensor that holds it. */
void laci_net_bind(laci_net *net, int value, int tensor);
/** The same where the tensor's axes may be cut otherwise than the value's. */
void laci_net_bind_shaped(laci_net *net, int value, int tensor);
/** True where this is the last read of what lives in the tensor's buffer, so that it may be
 * overwritten. */
bool laci_net_dies(const laci_net *net, int tensor);

/** A tensor like `like` for a result; `like`'s own bytes where it dies and in_place is set. */
int laci_net_result_like(laci_net *net, int like, bool in_place);
/** A new tensor in the arena. */
int laci_net_result(laci_net *net, const laci_shape *shape, dnnl_data_type_t dt, laci_md_view md);
/** Bytes that a step of ours writes and reads for itself. */
int laci_net_scratch(laci_net *net, size_t bytes);
/** What the forward primitive of `node` keeps for its gradient, as a tensor (in net->workspaces,
 * too); -1: nothing. */
int laci_net_workspace(laci_net *net, int node, const_dnnl_primitive_desc_t pd);
/** The type of a result: parameters' gradients and all else that the caller gets stay f32. */
dnnl_data_type_t laci_net_result_dt(const laci_net *net, int value);
/** One element-wise function as a step; the result's tensor. */
int laci_net_apply(laci_net *net, const laci_net_layer *layer, int from, const laci_eltwise *e);

/* ---- weights.c: what is constant, as tensors; done at once ---- */

/** A constant as a layer's weight: element i of it, in the order of the file, times
 * factor * scale[i / run % n_scale]. */
typedef struct laci_net_weight {
  int value;
  laci_shape shape;               /* as the layer sees it */
  int64_t strides[LACI_MAX_RANK]; /* of shape, over the constant's elements: each exactly once */
  const float *scale;             /* [n_scale]; NULL: ones */
  int64_t n_scale, run;
  float factor;
} laci_net_weight;
/** In that layout, reordered now, a slice after the other: the memory of one is all it takes beside
 * the weight itself. */
int laci_net_weight_as(laci_net *net, const laci_net_weight *weight, laci_md_view wanted);
/** A tensor's bytes as a weight in another layout and type. */
int laci_net_weight_from(laci_net *net, const laci_net_tensor *from, const void *data,
                         laci_md_view wanted, dnnl_data_type_t dt);
/** A vector of f32 as a weight. */
int laci_net_vector(laci_net *net, const float *floats, int64_t n);
/** A constant as it is, row-major. */
int laci_net_constant_tensor(laci_net *net, int value);
/** Weights that no step reads go: those of builders that gave up, and older layouts. */
void laci_net_drop_weights(laci_net *net);

/* ---- Posts and steps ---- */

/** Attributes with the layer's posts; `sum` comes out as the value to be added (-1: none). The
 * caller destroys them. NULL after a failure. */
dnnl_primitive_attr_t laci_net_posts(laci_net *net, const laci_net_layer *layer, int *sum);
/** dst of a primitive that adds to what is there: holds the content of `have` in layout md. */
int laci_net_sum_target(laci_net *net, int have, laci_md_view md, dnnl_data_type_t dt);

/** A step that runs the primitive of pd (taken); args: pairs of oneDNN's argument and a tensor. */
void laci_net_step_add(laci_net *net, const laci_net_layer *layer, dnnl_primitive_desc_t pd,
                       int n_args, const int (*args)[2]);
/** A step that runs a function. */
laci_net_step *laci_net_step_code(laci_net *net, const laci_node *node, laci_net_code *code,
                                  int n_tensors, const int *tensors);
/** Forgets the steps that were added since, and the contents that they would have made. */
typedef struct laci_net_mark {
  size_t n_steps, n_tensors;
} laci_net_mark;
laci_net_mark laci_net_mark_now(const laci_net *net);
void laci_net_take_back(laci_net *net, laci_net_mark mark);

/** Where a tensor's bytes are; after placing. */
void *laci_net_data(const laci_net *net, int tensor);

/* ---- build.c, ops_*.c, grad_*.c ---- */

/** All layers in order; then the outputs. */
void laci_net_build(laci_net *net);
/** Do all values of the node have elements? If not, it is the plain operator's, and melts with
 * nothing. */
bool laci_net_has_elements(const laci_net *net, const laci_node *node);
/** Could the node take posts and a folded scale? Decided before anything is built. */
bool laci_net_takes_posts(const laci_net *net, const laci_node *node);
bool laci_net_fits_conv(const laci_net *net, const laci_node *node);
/** Decides net->blocks: from shapes and instructions alone, so that a plan is the same every time.
 */
void laci_net_choose_blocks(laci_net *net);
/** 3x3, stride 1, whole blocks of channels: Winograd's algorithm needs 2.25 (tiles of 2x2) to 4
 * (4x4) times fewer products. */
bool laci_net_fits_winograd(const laci_net *net, const laci_shape *x, const laci_shape *y,
                            int64_t groups, const laci_dnnl_window *window);
/** Groups that blocks do not cut: depthwise ones, or of whole blocks. */
bool laci_net_fits_blocks(const laci_shape *x, const laci_shape *y, int64_t groups);
bool laci_net_fits_matmul(const laci_net *net, const laci_node *node);
bool laci_net_fits_binary(const laci_net *net, const laci_node *node);
bool laci_net_fits_batch_norm(const laci_net *net, const laci_node *node);

laci_net_builder laci_build_conv, laci_build_pool, laci_build_global_pool;
laci_net_builder laci_build_gemm, laci_build_matmul;
laci_net_builder laci_build_eltwise, laci_build_binary;
laci_net_builder laci_build_batch_norm, laci_build_layer_norm, laci_build_softmax,
    laci_build_reduce;
laci_net_builder laci_build_concat, laci_build_reshape, laci_build_transpose, laci_build_slice,
    laci_build_split, laci_build_same, laci_build_resize, laci_build_gather, laci_build_pad;
laci_net_builder laci_build_logic, laci_build_where, laci_build_expand, laci_build_cast;
laci_net_builder laci_build_gather_nd;
laci_net_builder laci_build_plain;

/* Training: operators over weights that change, and gradients (graph/gradient.h). */
laci_net_builder laci_build_conv_of_values, laci_build_gemm_of_values;
laci_net_builder laci_build_conv_grad_input, laci_build_conv_grad_weight;
laci_net_builder laci_build_batch_norm_train, laci_build_batch_norm_train_grad;
laci_net_builder laci_build_relu_grad, laci_build_unary_grad, laci_build_clip_grad;
laci_net_builder laci_build_max_pool_grad, laci_build_average_pool_grad;
laci_net_builder laci_build_cross_entropy, laci_build_cross_entropy_grad;
laci_net_builder laci_build_slice_grad;

/** A Slice with steps (not 0), as a step; starts and steps of every axis. grad_move.c */
void laci_net_slice_steps(laci_net *net, const laci_net_layer *layer, const int64_t *starts,
                          const int64_t *steps);
/** The 3x3 convolution values[0] * values[1] -> values[2] of bf16, or the gradient of one's input,
 * as a step of our own; false, and nothing done, where it is oneDNN's. window: of the convolution
 * itself. grad_winograd.c */
bool laci_net_winograd(laci_net *net, const laci_net_layer *layer, const int values[3],
                       const laci_dnnl_window *window, bool gradient);
/** A ConvGradWeight of bf16 as a step of our own; false, and nothing done, where it is oneDNN's.
 * grad_weight.c */
bool laci_net_weight_sums(laci_net *net, const laci_net_layer *layer,
                          const laci_dnnl_window *window);
/** The sum over all axes but the channels as a step, f32; false, and nothing done, where it is
 * none. grad_sum.c */
bool laci_net_channel_sums(laci_net *net, const laci_net_layer *layer, const bool *axes);
/** Kernel, strides, dilations and pads from the attributes; false: no window for oneDNN. */
bool laci_net_window(const laci_node *node, const laci_shape *x, const laci_shape *y,
                     const int64_t *kernel, laci_dnnl_window *window);
/** [g, out / g, in / g, kernel] where there are groups. */
laci_shape laci_net_grouped(const laci_shape *weight, int64_t groups);
/** The node whose gradient reads what MaxPool `node` leaves behind, or -1. */
int laci_net_max_pool_of(const laci_net *net, const laci_node *grad);
bool laci_net_has_pool_gradient(const laci_net *net, const laci_node *pool);
/** May a Relu after this BatchNormTrain melt into it? Where nobody's gradient reads the Relu, too.
 */
bool laci_net_norm_takes_relu(const laci_net *net, const laci_node *norm, const laci_node *relu);

/** The layer that reads the value is planned. build.c */
void laci_net_read_done(laci_net *net, int value);

/* ---- observe.c ---- */

/** Notes what is to be observed; observer NULL: nothing. */
LAC_MUST_CHECK lac_status laci_net_observe(laci_net *net, const laci_engine_observer *observer,
                                           lac_error *err);
/** Each observed value is used once more. */
void laci_net_observe_uses(laci_net *net);
/** Steps that show those observed values that are there by now and were not shown yet. */
void laci_net_build_observed(laci_net *net);
/** Fails where one was never there. */
void laci_net_check_observed(laci_net *net);

/* ---- place.c, text.c ---- */

/** Gives every arena buffer its offset. */
void laci_net_place(laci_net *net);
void laci_net_write_text(laci_net *net);

#endif

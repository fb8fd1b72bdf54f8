/* SPDX-License-Identifier: Apache-2.0
 * What planning decides before lowering: which values are constant, which nodes are computed, which
 * nodes are fused, and where every buffer is in the arena. It uses no type of a library.
 *
 *   fused node   a node of the graph with those that are computed together with it
 *   function     an element-wise function of one value
 *   post         what happens to a fused node's result before it is written
 *
 * Planning does not know what an implementation can fuse: it asks lowering (laci_plan_ask_fusible),
 * which answers from the list of implementations that it lowers by. Next: constants.c, pads.c,
 * functions.c, fuse.c, quantized.h, remat.c, memory.c. */
#ifndef LACI_ENGINE_CPU_PLAN_H
#define LACI_ENGINE_CPU_PLAN_H

#include "engine/engine.h"
#include "graph/graph.h"

enum {
  LACI_FUSED_MAX_POSTS = 6,
  LACI_FUSED_MAX_READS = 5,
  LACI_FUSED_MAX_NODES = 8, /* maximum number of nodes in a pattern, not counting its last node */
};

typedef struct laci_arena laci_arena;
typedef struct laci_budget laci_budget;
typedef struct laci_buf laci_buf;
typedef struct laci_cpu_plan laci_cpu_plan;
typedef struct laci_engine_reached laci_engine_reached;
typedef struct laci_fake_quantized laci_fake_quantized;

/* ---- Values ---- */

/** How an element of a tensor is stored. */
typedef enum laci_element {
  LACI_ELEMENT_NONE, /* none of the following: int64 or double */
  LACI_ELEMENT_F32,
  LACI_ELEMENT_BF16,
  LACI_ELEMENT_BYTE,
} laci_element;

/** Content that does not depend on the inputs: that of a stored tensor, or a folded result. Floats
 * are kept as f32; `f` of a stored tensor is filled on first use (laci_plan_constant_floats). */
typedef struct laci_constant {
  int64_t count;  /* number of elements */
  const float *f; /* [count] the elements as f32; NULL: not read yet, or the constant has
                     integers */
  int64_t *i;     /* [count] the elements of a constant of integers, owned; NULL: it has floats */
  float *owned;   /* the memory of `f`; NULL: `f` is in the buffer of a weight */
  double kept;    /* share of nonzero elements, estimated from a sample; 0: not sampled yet */
} laci_constant;

typedef struct laci_plan_value {
  laci_type type;
  laci_constant *constant; /* the content, if it is the same in every run; NULL: a run computes the
                              value */
  int n_uses;              /* how often computed nodes read the value, or the graph outputs it; if
                              the value is computed twice, how often its first copy is read */
  int n_copy_uses;         /* how often the second copy of the value is read; 0: there is none */
  int tensor;              /* index of the tensor that holds the value; -1: not lowered yet */
} laci_plan_value;

/* ---- Element-wise functions ---- */

typedef enum laci_function_kind {
  LACI_FUNCTION_RELU, /* alpha: the slope below 0 */
  LACI_FUNCTION_ELU,
  LACI_FUNCTION_LOGISTIC,
  LACI_FUNCTION_TANH,
  LACI_FUNCTION_EXP,
  LACI_FUNCTION_LOG,
  LACI_FUNCTION_SQRT,
  LACI_FUNCTION_ABS,
  LACI_FUNCTION_LINEAR, /* alpha * x + beta */
  LACI_FUNCTION_POW,    /* alpha * x ^ beta */
  LACI_FUNCTION_SOFTPLUS,
  LACI_FUNCTION_MISH,
  LACI_FUNCTION_SWISH,     /* x * sigmoid(alpha * x) */
  LACI_FUNCTION_HARDSWISH, /* x * min(max(alpha * x + beta, 0), 1) */
  LACI_FUNCTION_GELU_ERF,
  LACI_FUNCTION_GELU_TANH,
  LACI_FUNCTION_CLIP,           /* x clipped to [alpha, beta] */
  LACI_FUNCTION_CLIP_OPEN,      /* like LACI_FUNCTION_CLIP, but its slope is 0 at the bounds */
  LACI_FUNCTION_RELU_BY_RESULT, /* a RELU whose gradient reads the result, not the operand */
  LACI_N_FUNCTIONS
} laci_function_kind;

typedef struct laci_function {
  laci_function_kind kind;
  float alpha, beta;
} laci_function;

/** Writes the element-wise functions that the node is equal to, one after the other on input *input
 * (a constant second operand is taken into account); returns their number; 0: the node is no such
 * function. */
int laci_find_node_functions(laci_cpu_plan *plan, const laci_node *node, int *input,
                             laci_function out[2]);
/** Writes the functions that an operator named `type` with this node's attributes is equal to;
 * returns their number; 0: the operator is no such function. */
int laci_find_type_functions(const laci_node *node, const char *type, laci_function out[2]);
/** Writes the function of a Clip whose bounds are the inputs `port` and `port` + 1, or attributes;
 * returns 0 where they are not constant, else 1.
 */
int laci_function_from_clip(laci_cpu_plan *plan, const laci_node *node, int port,
                            laci_function *out);

/* ---- Fused nodes ---- */

/** An operation on a result before it is written: the sum with a value, or an element-wise
 * function. */
typedef struct laci_post {
  int value; /* the value to be added to the result; -1: `function` is applied instead */
  laci_function function;
} laci_post;

/** A pattern of several nodes that are computed as one operation. */
typedef enum laci_fused_pattern {
  LACI_PATTERN_NONE,
  LACI_PATTERN_ATTENTION,     /* laci_fused.details is a laci_attention_pattern */
  LACI_PATTERN_LAYER_NORM,    /* laci_fused.details is a laci_layer_norm_pattern */
  LACI_PATTERN_RELU_SUM,      /* reads two summands and the result of the Relu (laci_fused.reads) */
  LACI_PATTERN_QUANTIZE,      /* laci_fused.details is a laci_fake_quantized */
  LACI_PATTERN_QUANTIZE_LIST, /* laci_fused.details is a laci_quantize_list (quantized.h) */
  LACI_PATTERN_FUNCTION,      /* a function (laci_fused.posts) of one value, which it reads twice */
  LACI_PATTERN_INTEGER_PRODUCT, /* laci_fused.details is a laci_integer_product */
  LACI_PATTERN_DUPLICATE,       /* a quantization that changes nothing: the result equals another
                                   value, which is read, too */
  LACI_PATTERN_TABLE,           /* laci_fused.details is a laci_table_pattern (quantized.h) */
  LACI_N_PATTERNS
} laci_fused_pattern;

typedef struct laci_fused {
  int node, tail;       /* index of the node, and of the last node that was fused to it; without
                           any, tail is node */
  int n_nodes;          /* number of nodes that are computed together */
  bool recomputed;      /* the schedule also recomputes this fused node */
  int output;           /* the value that the fused node computes */
  float *scale, *shift; /* [channels] the result y becomes scale * y + shift, before the posts;
                           NULL: y is not scaled */
  int64_t channels;
  int n_posts;
  laci_post posts[LACI_FUSED_MAX_POSTS];
  laci_fused_pattern pattern;
  const void *details;                      /* data of the pattern: laci_attention_pattern,
                                               laci_layer_norm_pattern, laci_fake_quantized,
                                               laci_integer_product or laci_table_pattern */
  int n_reads, reads[LACI_FUSED_MAX_READS]; /* values that the nodes of a pattern read; a value is
                                               listed once for each read */
} laci_fused;

typedef struct laci_attention_pattern {
  int q, k, v, mask; /* values of the operands; k is transposed, [.., depth, n_keys]; mask -1:
                        none */
  float scale;
  bool zero_nan; /* a row of the result whose keys are all masked becomes zeros instead of NaN */
  int product;   /* index of the node of the second product */
  int places[LACI_MAX_RANK]; /* the axis of the fused node's output that each axis of the second
                                product becomes */
} laci_attention_pattern;

typedef struct laci_layer_norm_pattern {
  int x, scale, shift; /* values of the operand, and of the constants along its last axis that are
                          multiplied and added; -1: none */
  float epsilon;
} laci_layer_norm_pattern;

/** A product of integers that are found in each run (DynamicSteps) with a constant matrix of
 * integers, as floats: y = sum over k of x[row][k] * w[k][column] times the scales. */
typedef struct laci_integer_product {
  int node;         /* index of the node of the product */
  int x, x_scale;   /* values of the integers, and of their scale */
  int weight;       /* the constant matrix */
  int weight_scale; /* constant: the matrix divided by it is integers; -1: the matrix is
                                   integers */
  int scale;        /* constant that the scale of x is multiplied by; -1: none */
  int64_t rows, depth,
      columns; /* weight_scale and scale have one element, or one for each column */
} laci_integer_product;

/** What an implementation can fuse with its own node. */
typedef enum laci_fusible {
  LACI_FUSIBLE_NOTHING = 0,
  LACI_FUSIBLE_SCALE = 1,       /* a scale and a shift for each channel */
  LACI_FUSIBLE_FUNCTIONS = 2,   /* element-wise functions that follow */
  LACI_FUSIBLE_SUM = 4,         /* one sum with another value */
  LACI_FUSIBLE_SINGLE_NODE = 8, /* at most one node of the kinds above */
  LACI_FUSIBLE_RELU = 16,       /* only a Relu after a batch norm of training */
} laci_fusible;

/** Asks lowering what can be fused: returns the laci_fusible of the implementation that would be
 * chosen for the fused node as it is; -1: there is none. No value has been lowered yet. */
typedef int laci_plan_ask_fusible(void *lowering, const laci_fused *fused);

/** An entry of the schedule: a fused node is computed for the first time, or recomputed. A
 * recomputation computes again those values of the fused node that were dropped in between; the
 * other results keep their first copy. */
typedef struct laci_scheduled {
  int fused; /* index in plan->fused */
  bool recomputed;
} laci_scheduled;

/** A value that a run checks to be finite: finite.h. */
typedef struct laci_checked_value {
  int value;
  bool lowered;
} laci_checked_value;

/** Planning does not check after each call: the first failure stays in status, results become NULL
 * or -1, and later calls do nothing. */
struct laci_cpu_plan {
  const laci_graph *graph;
  laci_engine_fetch *fetch; /* fetches stored bytes; NULL: they are in memory */
  void *fetch_context;
  laci_engine_observer observer; /* the caller's observer; n_values 0: there is none */
  laci_plan_ask_fusible *ask;
  void *lowering;       /* first argument of `ask` */
  bool bf16;            /* values of floats are stored as bf16 between steps */
  bool careful;         /* nothing is fused, and everything but moves of data is computed by the
                           operators' own evaluation, so that NaN and infinity are kept */
  const char *careless; /* name of a node for which a careful plan is needed (finite.h); NULL: there
                           is none */
  laci_checked_value *checked; /* [n_checked] values that every run checks to be finite */
  int n_checked;
  bool reports_nan;              /* steps that find a NaN report it */
  laci_plan_value *values;       /* [n_values] what planning finds about each value */
  bool *computed;                /* [n_nodes] the node is neither constant nor unused */
  laci_fused *fused;             /* [n_nodes] the fused node that begins with each node; output -1:
                                    the node is fused to another, or not computed */
  int *joined;                   /* [n_nodes] index of the node whose fused node computes this node,
                                    too; its own index: it is not fused to another */
  int *fused_at;                 /* [n_nodes] index of the fused node whose last node this is; -1:
                                    none */
  int n_scheduled, n_recomputed; /* length of the schedule; number of graph nodes that are
                                    recomputed */
  laci_scheduled *schedule;      /* [n_scheduled] fused nodes in the order of their computation */
  laci_arena *memory;            /* holds all small objects of the plan; NULL: there is none yet */
  size_t arena_bytes, weight_bytes;
  size_t constant_bytes; /* bytes of constants that only planning needs */
  laci_budget *budget;   /* while planning: the memory limit, the memory that others hold, and the
                            ports; NULL: no limit */
  lac_status status;
  lac_error *err;
};

/** Fails the plan, unless it has failed already. */
void laci_plan_fail(laci_cpu_plan *plan, lac_status status, const char *format, ...)
    LAC_PRINTF(3, 4);
void laci_plan_fail_no_memory(laci_cpu_plan *plan);
/** Checks that the budget allows `bytes` more bytes for planning; else the plan fails, and false
 * is returned. value: the value for which they are needed; -1: none. */
bool laci_plan_check_budget(laci_cpu_plan *plan, uint64_t bytes, int value);
/** Does the budget allow `bytes` more bytes? If not, the plan does not fail. */
bool laci_plan_has_budget_for(const laci_cpu_plan *plan, uint64_t bytes);
/** Returns zeroed memory that lives as long as the plan; NULL: no memory (recorded in the plan). */
void *laci_plan_alloc(laci_cpu_plan *plan, size_t n, size_t size);
/** As laci_plan_alloc, but the plan does not fail. */
void *laci_plan_try_alloc(laci_cpu_plan *plan, size_t n, size_t size);
/** Returns a copy of a text that lives as long as the plan; NULL: no memory (recorded in the
 * plan). */
const char *laci_plan_copy_text(laci_cpu_plan *plan, const char *text);

static inline const laci_shape *laci_plan_shape(const laci_cpu_plan *plan, int value) {
  return &plan->values[value].type.shape;
}
bool laci_plan_is_float(const laci_cpu_plan *plan, int value);
static inline bool laci_plan_is_constant(const laci_cpu_plan *plan, int value) {
  return plan->values[value].constant != NULL;
}
static inline bool laci_plan_has_input(const laci_node *node, int port) {
  return port < node->n_inputs && node->inputs[port] >= 0;
}

/** Finds which nodes are computed and how often values are read. Types and constants must be
 * known. */
void laci_plan_find_computed_nodes(laci_cpu_plan *plan);
/** Finds which nodes are computed, and fuses them. */
LAC_MUST_CHECK lac_status laci_plan_fuse_nodes(laci_cpu_plan *plan, lac_error *err);
/** Returns how often the value is read, and listed as an output. */
int laci_plan_count_uses(const laci_cpu_plan *plan, int value);
/** Returns the only computed node that reads the value, if the node reads it once and has not been
 * fused; -1: there is none. */
int laci_plan_find_only_reader(const laci_cpu_plan *plan, int value);
/** Returns the computed node whose output is the value, if it is not fused into another node and is
 * not the last node of a pattern; -1: there is none. */
int laci_plan_find_producer(const laci_cpu_plan *plan, int value);
/** Returns the number of computed nodes that read the value, and writes the first two. */
int laci_plan_find_readers(const laci_cpu_plan *plan, int value, int readers[2]);
/** Returns the node with which the fused node begins that computes `node`. */
int laci_plan_find_computing_node(const laci_cpu_plan *plan, int node);
/** Is the node computed by the fused node of another node? */
bool laci_plan_is_fused(const laci_cpu_plan *plan, int node);
/** Appends the node to the fused node, whose new output is that of the node. */
void laci_fused_append(laci_cpu_plan *plan, laci_fused *fused, int node);
/** Returns how many values a fused node reads when it is computed, or when it is recomputed. */
int laci_fused_n_reads(const laci_cpu_plan *plan, const laci_fused *fused, bool recomputed);
/** Returns the value of read number `at` of a fused node; -1: none. */
int laci_fused_nth_read(const laci_cpu_plan *plan, const laci_fused *fused, int at);
/** Returns how many values a fused node computes. */
int laci_fused_n_writes(const laci_cpu_plan *plan, const laci_fused *fused);
/** Returns value number `at` of those that a fused node computes; -1: none. */
int laci_fused_nth_write(const laci_cpu_plan *plan, const laci_fused *fused, int at);
/** Is the fused node a batch norm of training whose statistics are results? A recomputation then
 * reads these statistics. */
bool laci_fused_has_statistics(const laci_cpu_plan *plan, const laci_fused *fused);
/** Do all values of the node have at least one element? If not, the plain operator computes the
 * node, and nothing is fused with it. */
bool laci_plan_has_elements(const laci_cpu_plan *plan, const laci_node *node);

/** Returns the axis of a node's result along which scales can be multiplied into its weights: the
 * channels of convolutions, the columns of products. */
int laci_plan_channel_axis(const laci_node *node, int rank);

/** Is the node a BatchNormalization with given statistics, one number for each channel, and with
 * one output? */
bool laci_plan_is_inference_norm(const laci_node *node);
/** Computes scales and shifts of a BatchNormalization with given statistics: y = scales[c] * x +
 * shifts[c], c < channels. False: its operands are not constants with `channels` elements. */
bool laci_plan_read_norm_scales(laci_cpu_plan *plan, const laci_node *node, int64_t channels,
                                float *scales, float *shifts);
/** Is the value a constant of floats along the last axis, whose size is `last`? */
bool laci_plan_is_vector_of_last_axis(const laci_cpu_plan *plan, int value, int64_t last);
/** Finds the axes of a reduction from its attribute or a constant input. False: they are not known
 * while planning. */
bool laci_plan_read_reduced_axes(laci_cpu_plan *plan, const laci_node *node, int rank,
                                 bool axes[LACI_MAX_RANK]);

/* ---- The order of fused nodes: remat.c ---- */

/** Fills plan->schedule with each fused node at the place of its last node. n_forward > 0: the
 * graph's first n_forward nodes are a forward part, whose values are either kept or recomputed for
 * later nodes, whichever takes less memory. */
LAC_MUST_CHECK lac_status laci_plan_make_schedule(laci_cpu_plan *plan, int n_forward,
                                                  lac_error *err);
/** Returns the forward node whose workspace a gradient reads instead of its input 1; -1: the
 * gradient reads the input. A workspace holds the positions of the maxima of a max pool, or a bit
 * for each element of a Relu after a batch norm. */
int laci_plan_workspace_producer(const laci_cpu_plan *plan, int node);

/* ---- Patterns of fuse.c's table ---- */

/** A pattern that was found: its nodes before the last one, and their fused node. */
typedef struct laci_match {
  int last;                                 /* index of the last node of the pattern */
  int n_nodes, nodes[LACI_FUSED_MAX_NODES]; /* the nodes of the pattern before its last one */
  laci_fused fused; /* the fused node; `pattern`, `details` and `reads` are set */
} laci_match;

typedef bool laci_pattern_find(laci_cpu_plan *plan, int node, laci_match *match);
/** Fuses nodes that follow the pattern, after it has become a fused node. */
typedef void laci_pattern_finish(laci_cpu_plan *plan, laci_fused *fused);
laci_pattern_find laci_find_attention, laci_find_layer_norm, laci_find_relu_sum,
    laci_find_quantize_pair, laci_find_quantize_list_pair, laci_find_repeated_dequantize,
    laci_find_integer_product;
laci_pattern_finish laci_finish_attention, laci_finish_layer_norm, laci_finish_repeated_dequantize;

/** A rule that appends one more node to a fused node, or several nodes that are one function.
 * Returns false, and changes nothing, where the rule does not apply. fuse_chain.c */
typedef bool laci_chain_rule(laci_cpu_plan *plan, laci_fused *fused);
/** Appends functions; two linear ones in a row become one. Returns false and changes nothing where
 * the fused node cannot take all of them. */
bool laci_fused_append_functions(laci_fused *fused, int n, const laci_function *functions);
laci_chain_rule laci_fuse_scale, laci_fuse_gate, laci_fuse_formula, laci_fuse_hard_swish,
    laci_fuse_function, laci_fuse_sum, laci_fuse_norm_relu;

/** Fuses the nodes of an element-wise function, which begins with this node, into a fused node of
 * their own, if none of them is fused yet. False: no such function begins here. fuse_function.c */
bool laci_fuse_lone_function(laci_cpu_plan *plan, int node);

/* ---- constants.c ---- */

LAC_MUST_CHECK lac_status laci_plan_infer_types(laci_cpu_plan *plan, const laci_input_shape *fixed,
                                                int n_fixed, lac_error *err);
/** Infers the types of a graph some of whose nodes may not be runnable. Such nodes, and nodes that
 * read results of unknown shape, are left out. Values whose types `reached` gives are treated
 * like inputs. Fails as laci_engine_row.reach. */
LAC_MUST_CHECK lac_status laci_plan_infer_runnable(laci_cpu_plan *plan,
                                                   const laci_input_shape *fixed, int n_fixed,
                                                   laci_engine_reached *reached, lac_error *err);
/** Returns the elements of a constant as f32. NULL: it has integers, is not constant, or there is
 * no memory. */
const float *laci_plan_constant_floats(laci_cpu_plan *plan, int value);
/** Reads elements [first, first + n) of a constant of floats as f32. */
LAC_MUST_CHECK lac_status laci_plan_read_floats(const laci_cpu_plan *plan, int value, int64_t first,
                                                int64_t n, float *to, lac_error *err);
/** Reads a constant with one element, of floats or integers, into *x. False: the value is not
 * constant, or has more elements. */
bool laci_plan_read_scalar(laci_cpu_plan *plan, int value, double *x);
/** Copies a constant for the operators' eval; the caller destroys the copy. NULL: no memory, or not
 * a constant. */
laci_buf *laci_plan_copy_constant(laci_cpu_plan *plan, int value);
/** Frees the constants that only planning needed: weights have their own bytes. */
void laci_plan_free_constants(laci_cpu_plan *plan);
/** Frees all that the plan has, `memory` included. */
void laci_plan_clear(laci_cpu_plan *plan);

/** Do both nodes (each a QuantizeLinear or DequantizeLinear) have equal constant scales and zero
 * points, one for the whole tensor? fuse_quantize.c */
bool laci_plan_is_same_quantization(laci_cpu_plan *plan, const laci_node *a, const laci_node *b);

/* ---- pads.c ---- */

/** Numbers of elements that are added before and after each axis; negative: so many are removed. */
typedef struct laci_pads {
  int64_t before[LACI_MAX_RANK], after[LACI_MAX_RANK];
} laci_pads;

/** Reads the pads of a Pad of any mode. False: they are not constant, or an input lists axes. */
bool laci_plan_read_pads(laci_cpu_plan *plan, const laci_node *node, laci_pads *pads);
/** Reads the pads of a Pad of floats. False: it does not fill with zeros, its pads are not
 * constant, or it has an input that lists axes. */
bool laci_plan_read_zero_pads(laci_cpu_plan *plan, const laci_node *node, laci_pads *pads);
/** May a window of the pool `node` cover nothing but padding? The result of such a window is no
 * element of the input. */
bool laci_plan_window_may_be_all_padding(const laci_cpu_plan *plan, const laci_node *node);
/** Merges Pads of zeros into the convolutions and pools that read them. plan->graph may become a
 * copy, which lives as long as the plan. */
LAC_MUST_CHECK lac_status laci_plan_merge_pads(laci_cpu_plan *plan, lac_error *err);

/* ---- memory.c ---- */

typedef enum laci_place {
  LACI_PLACE_ARENA,
  LACI_PLACE_WEIGHT, /* memory of a weight, filled while planning */
  LACI_PLACE_INPUT,  /* the caller's buffer */
  LACI_PLACE_OUTPUT,
} laci_place;

typedef struct laci_buffer {
  laci_place place;
  size_t bytes;
  int first, last; /* first and last step that uses the buffer; first < 0: no step does */
  size_t offset;   /* offset in the arena, in bytes */
  /* the bytes: those of a weight are set while planning, those of the caller by every run */
  void *data;
  bool owned;
  bool unreferenced; /* a weight that only steps may read: it is freed if no step does */
  int port;          /* number of the input or output whose buffer this is, for a caller's buffer */
  int pending;       /* number of reads that are not lowered yet, of all values in this buffer */
  int continued_by;  /* 1 + the index of the Concat node that appends to the content, so that no
                        step may overwrite it; 0: none */
} laci_buffer;

/** Gives every arena buffer its offset. */
void laci_plan_place_buffers(laci_cpu_plan *plan, laci_buffer *buffers, size_t n_buffers);

#endif

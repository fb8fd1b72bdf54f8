/* SPDX-License-Identifier: Apache-2.0
 * What a plan decides before anything is lowered: what is constant, which nodes are computed, which
 * of them are one fused node, and where every buffer is in the arena. No library's type is here.
 *
 *   fused node   a node of the graph with those that are computed together with it
 *   function     an element-wise function of one value
 *   post         what happens to a fused node's result before it is written
 *
 * What a fused node may take in is not decided here: lowering is asked (laci_plan_ask), from the
 * same list of implementations that it lowers by. Next: constants.c, pads.c, functions.c, fuse.c,
 * remat.c, memory.c. */
#ifndef LACI_ENGINE_CPU_PLAN_H
#define LACI_ENGINE_CPU_PLAN_H

#include "base/budget.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/graph.h"

enum {
  LACI_FUSED_MAX_POSTS = 6,
  LACI_FUSED_MAX_READS = 5,
  LACI_FUSED_MAX_NODES = 8, /* of a pattern, without its last one */
};

typedef struct laci_buf laci_buf;
typedef struct laci_cpu_plan laci_cpu_plan;
typedef struct laci_engine_reached laci_engine_reached;

/* ---- Values ---- */

/** How an element of a tensor is stored. */
typedef enum laci_element {
  LACI_ELEMENT_NONE, /* int64, double */
  LACI_ELEMENT_F32,
  LACI_ELEMENT_BF16,
  LACI_ELEMENT_BYTE,
} laci_element;

/** Content that does not depend on the inputs: a stored tensor's or a folded one's. Floats are kept
 * as f32; `f` of a stored tensor is filled when somebody asks (laci_plan_floats). */
typedef struct laci_constant {
  int64_t count;
  const float *f; /* or NULL */
  int64_t *i;     /* or NULL; owned */
  float *owned;   /* f, unless a weight has it */
  double kept;    /* share of elements that are no zeros, by a sample; 0: none was taken */
} laci_constant;

typedef struct laci_plan_value {
  laci_type type;
  laci_constant *constant; /* NULL: computed in every run */
  int n_uses;              /* by nodes that are computed, and as graph outputs; of one that is
                              computed twice, those of the first time */
  int n_uses_again;        /* those of the second time; 0: there is none */
  int tensor;              /* -1: not there yet */
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
  LACI_FUNCTION_CLIP,           /* to [alpha, beta] */
  LACI_FUNCTION_CLIP_OPEN,      /* the same; its slope is 0 at the bounds */
  LACI_FUNCTION_RELU_BY_RESULT, /* its gradient reads the result, not the operand */
  LACI_N_FUNCTIONS
} laci_function_kind;

typedef struct laci_function {
  laci_function_kind kind;
  float alpha, beta;
} laci_function;

/** The element-wise functions that a node is, one after the other on input 0 (a constant second
 * operand included); 0: it is none. */
int laci_functions_of(laci_cpu_plan *plan, const laci_node *node, int *input, laci_function out[2]);
/** The functions that an operator of this name and with this node's attributes is; 0: none. */
int laci_functions_named(const laci_node *node, const char *type, laci_function out[2]);
/** A Clip whose bounds are the inputs `port` and `port` + 1, or attributes; 0: not constant ones.
 */
int laci_function_clip(laci_cpu_plan *plan, const laci_node *node, int port, laci_function *out);

/* ---- Fused nodes ---- */

/** What happens to a result before it is written: + value, or an element-wise function. */
typedef struct laci_post {
  int value; /* >= 0: add this value */
  laci_function function;
} laci_post;

/** Several nodes that are one thing together. */
typedef enum laci_fused_pattern {
  LACI_PATTERN_NONE,
  LACI_PATTERN_ATTENTION,  /* details: laci_attention_pattern */
  LACI_PATTERN_LAYER_NORM, /* details: laci_layer_norm_pattern */
  LACI_PATTERN_RELU_SUM,   /* reads: two summands, and the Relu's result */
  LACI_PATTERN_QUANTIZE,   /* details: laci_fake_quantized */
  LACI_PATTERN_SAME,       /* reads: the value that it is, too */
  LACI_N_PATTERNS
} laci_fused_pattern;

typedef struct laci_fused {
  int node, tail;       /* tail: the last node that was fused; node itself if none */
  int n_nodes;          /* that are together in it */
  bool recomputed;      /* is recomputed later */
  int output;           /* the value that comes out in the end */
  float *scale, *shift; /* [channels]: y = scale * y + shift before the posts; NULL: none */
  int64_t channels;
  int n_posts;
  laci_post posts[LACI_FUSED_MAX_POSTS];
  laci_fused_pattern pattern;
  const void *details;                      /* of the pattern */
  int n_reads, reads[LACI_FUSED_MAX_READS]; /* values that a pattern reads, as often as its nodes */
} laci_fused;

typedef struct laci_attention_pattern {
  int q, k, v, mask; /* values; k as the product reads it: [.., depth, n_keys]; mask -1: none */
  float scale;
  bool zero_nan;
  int product;               /* the node of the second product */
  int places[LACI_MAX_RANK]; /* where the product's axes are in the fused node's output */
} laci_attention_pattern;

typedef struct laci_layer_norm_pattern {
  int x, scale, shift; /* values; scale and shift: constants along the last axis; -1: none */
  float epsilon;
} laci_layer_norm_pattern;

/** What an implementation can do together with its own node. */
typedef enum laci_takes {
  LACI_TAKES_NOTHING = 0,
  LACI_TAKES_SCALE = 1,     /* scales and shifts of channels */
  LACI_TAKES_FUNCTIONS = 2, /* element-wise functions that follow */
  LACI_TAKES_SUM = 4,       /* one sum with another value */
  LACI_TAKES_ONE = 8,       /* of all these only one node */
  LACI_TAKES_RELU = 16,     /* nothing but a Relu after a batch norm of training */
} laci_takes;

/** Lowering's answer: what the implementation takes that would be chosen for the fused node as it
 * is; -1: there is none. Nothing has been lowered yet. */
typedef int laci_plan_ask(void *lowering, const laci_fused *fused);

/** A fused node is computed at its place in the schedule. A second entry recomputes those of its
 * values that were dropped in between; its other results stay as they are. */
typedef struct laci_scheduled {
  int fused; /* of plan->fused */
  bool recomputed;
} laci_scheduled;

/** A value that a run looks at: finite.h. */
typedef struct laci_looked {
  int value;
  bool lowered;
} laci_looked;

/** Planning is written without a check after each call: the first failure stays in status, what is
 * asked for becomes NULL or -1, and what follows does nothing. */
struct laci_cpu_plan {
  const laci_graph *graph;
  laci_engine_fetch *fetch; /* of stored bytes; NULL: they are in memory */
  void *fetch_context;
  laci_engine_observer observer; /* none: no values */
  laci_plan_ask *ask;
  void *lowering;       /* whom to ask */
  bool bf16;            /* floats are kept so between steps */
  bool careful;         /* nothing is fused, and all but moves are the operators' own evaluations:
                           what is not finite stays so */
  const char *careless; /* the node that needs a careful plan; NULL: none does. finite.h */
  laci_looked *looked;  /* [n_looked] */
  int n_looked;
  bool looks;                    /* a step that meets a NaN says so */
  laci_plan_value *values;       /* [n_values] */
  bool *computed;                /* [n_nodes] neither constant nor unused */
  laci_fused *fused;             /* [n_nodes]; output -1: part of another, or nothing to do */
  int *fused_at;                 /* [n_nodes] fused node that is computed at this place; -1: none */
  int n_scheduled, n_recomputed; /* n_recomputed: nodes of those that are recomputed */
  laci_scheduled *schedule;      /* [n_scheduled] fused nodes in the order of their computation */
  laci_arena memory;             /* all small things */
  size_t arena_bytes, weight_bytes;
  size_t constant_bytes; /* of contents that only planning needs */
  laci_budget budget;    /* what others hold, and our ports; no limit without the caller's */
  lac_status status;
  lac_error *err;
};

/** Keeps the first failure. */
void laci_plan_fail(laci_cpu_plan *plan, lac_status status, const char *format, ...)
    LAC_PRINTF(3, 4);
void laci_plan_no_memory(laci_cpu_plan *plan);
/** May so many bytes more be taken now, for what planning holds? If not, that is the failure.
 * value: what they are for; -1: of no value. */
bool laci_plan_may_take(laci_cpu_plan *plan, uint64_t bytes, int value);
/** May they? For what can be done with less, too. */
bool laci_plan_has_room(const laci_cpu_plan *plan, uint64_t bytes);
/** Zeroed memory that lives as long as the plan; NULL: no memory (noted). */
void *laci_plan_new(laci_cpu_plan *plan, size_t n, size_t size);

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

/** Which nodes are computed, and how often values are used: once types and constants are known. */
void laci_plan_find_computed(laci_cpu_plan *plan);
/** The same, and by which fused nodes. */
LAC_MUST_CHECK lac_status laci_plan_fuse(laci_cpu_plan *plan, lac_error *err);
/** How often the value is used. */
int laci_plan_uses(const laci_cpu_plan *plan, int value);
/** The computed node that alone reads the value, once, and has not been fused; -1: none. */
int laci_plan_only_reader(const laci_cpu_plan *plan, int value);
/** The computed node that makes the value, if it is not fused to another and is not the last of
 * several that became one; -1: none. */
int laci_plan_producer(const laci_cpu_plan *plan, int value);
/** The computed nodes that read the value; the first two. */
int laci_plan_readers(const laci_cpu_plan *plan, int value, int readers[2]);
/** Is the node part of another's fused node? */
bool laci_plan_is_fused(const laci_cpu_plan *plan, int node);
/** The node becomes the new end of the fused node. */
void laci_fused_append(laci_cpu_plan *plan, laci_fused *fused, int node);
/** How many values a fused node reads in its first computation or its recomputation, and one of
 * them; -1: there is none at that place. */
int laci_fused_n_reads(const laci_cpu_plan *plan, const laci_fused *fused, bool recomputed);
int laci_fused_read(const laci_cpu_plan *plan, const laci_fused *fused, int at);
/** The values that it makes; -1: nothing is there. */
int laci_fused_n_writes(const laci_cpu_plan *plan, const laci_fused *fused);
int laci_fused_write(const laci_cpu_plan *plan, const laci_fused *fused, int at);
/** A batch norm of training whose statistics come out, so that a recomputation need not find
 * them. */
bool laci_fused_has_statistics(const laci_cpu_plan *plan, const laci_fused *fused);
/** Do all values of the node have elements? If not, it is the plain operator's, and is fused with
 * nothing. */
bool laci_plan_has_elements(const laci_cpu_plan *plan, const laci_node *node);

/** A BatchNormalization by constant statistics, one a channel, with one output. */
bool laci_plan_is_inference_norm(const laci_node *node);
/** What it does: scales[c] * x + shifts[c], c < channels. False: not by constants of so many. */
bool laci_plan_norm_scales(laci_cpu_plan *plan, const laci_node *node, int64_t channels,
                           float *scales, float *shifts);
/** A constant of floats with as many elements as the last axis, along it. */
bool laci_plan_along_last(const laci_cpu_plan *plan, int value, int64_t last);
/** Which axes a reduction takes: from the attribute, or from a constant input. False: not known
 * here. */
bool laci_plan_reduced_axes(laci_cpu_plan *plan, const laci_node *node, int rank,
                            bool axes[LACI_MAX_RANK]);

/* ---- The order of fused nodes: remat.c ---- */

/** Makes plan->schedule: every fused node at the place of its last node. n_forward > 0: the graph's
 * first n_forward nodes are a forward part. Its values are kept, or computed once more for later
 * nodes, whichever takes less memory. */
LAC_MUST_CHECK lac_status laci_plan_schedule(laci_cpu_plan *plan, int n_forward, lac_error *err);
/** The forward node whose workspace a gradient reads in place of its input 1: a max pool's places,
 * the bits of a Relu after a batch norm. -1: there is none, and it reads the value. */
int laci_plan_workspace_from(const laci_cpu_plan *plan, int node);

/* ---- Patterns of fuse.c's table ---- */

/** What a pattern found: the nodes before the last one, and what they are together. */
typedef struct laci_match {
  int last;
  int n_nodes, nodes[LACI_FUSED_MAX_NODES];
  laci_fused fused; /* pattern, details, reads */
} laci_match;

typedef bool laci_pattern_find(laci_cpu_plan *plan, int node, laci_match *match);
/** Fuses what may follow the pattern, once it is a fused node. */
typedef void laci_pattern_finish(laci_cpu_plan *plan, laci_fused *fused);
laci_pattern_find laci_find_attention, laci_find_layer_norm, laci_find_relu_sum, laci_find_quantize,
    laci_find_quantize_again;
laci_pattern_finish laci_finish_attention, laci_finish_layer_norm, laci_finish_quantize_again;

/** Fuses one more node to a fused node, or several that are one function; false, and nothing done,
 * where this rule does not apply. fuse_chain.c */
typedef bool laci_chain_rule(laci_cpu_plan *plan, laci_fused *fused);
laci_chain_rule laci_chain_scale, laci_chain_gate, laci_chain_gelu, laci_chain_function,
    laci_chain_sum, laci_chain_norm_relu;

/* ---- constants.c ---- */

LAC_MUST_CHECK lac_status laci_plan_infer(laci_cpu_plan *plan, const laci_input_shape *fixed,
                                          int n_fixed, lac_error *err);
/** The same as far as it goes: what cannot be run, and what reads results of unknown shape, is left
 * out, and results of known type are taken as inputs are. Fails as laci_engine_row.reach. */
LAC_MUST_CHECK lac_status laci_plan_reach(laci_cpu_plan *plan, const laci_input_shape *fixed,
                                          int n_fixed, laci_engine_reached *reached,
                                          lac_error *err);
/** A constant as f32, or NULL: integers, no constant, no memory. */
const float *laci_plan_floats(laci_cpu_plan *plan, int value);
/** Part of a constant of floats as f32: elements [first, first + n). */
LAC_MUST_CHECK lac_status laci_plan_read_floats(const laci_cpu_plan *plan, int value, int64_t first,
                                                int64_t n, float *to, lac_error *err);
/** One element of a constant of any class. False where the value is none, or has more elements. */
bool laci_plan_scalar(laci_cpu_plan *plan, int value, double *x);
/** A copy as the operators' eval reads it; destroy it. NULL: no memory, or no constant. */
laci_buf *laci_plan_constant_buf(laci_cpu_plan *plan, int value);
/** What only planning needed: weights have their own bytes. */
void laci_plan_drop_constants(laci_cpu_plan *plan);
/** Frees all that the plan has, `memory` included. */
void laci_plan_clear(laci_cpu_plan *plan);

/** Do both nodes, QuantizeLinear or DequantizeLinear, have the same constant scale and zero point,
 * one for all? fuse_quantize.c */
bool laci_plan_quantize_alike(laci_cpu_plan *plan, const laci_node *a, const laci_node *b);

/* ---- pads.c ---- */

/** Elements before and after each axis; negative: so many are left out. */
typedef struct laci_pads {
  int64_t before[LACI_MAX_RANK], after[LACI_MAX_RANK];
} laci_pads;

/** What a Pad puts around floats. False: not constant zeros, or along axes of its own. */
bool laci_plan_zero_pads(laci_cpu_plan *plan, const laci_node *node, laci_pads *pads);
/** May a window of the pool cover pads alone? Its result is no number of the input. */
bool laci_plan_window_misses(const laci_cpu_plan *plan, const laci_node *node);
/** Convolutions and pools take in the zeros that a Pad puts around their input. plan->graph may
 * become a copy that lives as long as the plan. */
LAC_MUST_CHECK lac_status laci_plan_join_pads(laci_cpu_plan *plan, lac_error *err);

/* ---- memory.c ---- */

typedef enum laci_place {
  LACI_PLACE_ARENA,
  LACI_PLACE_WEIGHT, /* filled while planning */
  LACI_PLACE_INPUT,  /* the caller's */
  LACI_PLACE_OUTPUT,
} laci_place;

typedef struct laci_buffer {
  laci_place place;
  size_t bytes;
  int first, last; /* steps that touch it; first < 0: none does */
  size_t offset;   /* in the arena */
  void *data;      /* weight: there from the start; caller's: set by every run */
  bool owned;
  bool unreferenced; /* a weight that only steps read: it goes where none does */
  int port;          /* of a caller's buffer */
  int pending;       /* reads still to be planned, of all values that live here */
  int continued_by;  /* node + 1 of the Concat that appends to what is there: not to be overwritten;
                        0: none */
} laci_buffer;

/** Gives every arena buffer its offset. */
void laci_plan_place(laci_cpu_plan *plan, laci_buffer *buffers, size_t n_buffers);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What an operator is: one const laci_op in one file of graph/ops, and one line in ops.def.
 *
 *   infer     shapes and types of the outputs: analysis asks with symbols, the plain engine with
 *             real sizes
 *   eval      the value, slow and plain, in double: the definition of right
 *   couple    how channels pass through (coupling.h)
 *   weights   which inputs could be prunable weights; returns how many. MatMul has up to two, of
 *             which one is a weight; LSTM, GRU and RNN have two
 *   gradient  the chain rule as nodes (gradient.h); or `slope`, a derivative element by element
 *
 * The other fields are facts that analysis and engines ask for; each is below with its meaning
 * where it is left out. An undeclared operator has op == NULL: it freezes every order that reaches
 * it. */
#ifndef LACI_GRAPH_OP_H
#define LACI_GRAPH_OP_H

#include "graph/graph.h"

struct laci_coupling;
struct laci_gradient_builder;

/** Role in plots and reports. */
typedef enum laci_role {
  LACI_ROLE_UNKNOWN, /* red */
  LACI_ROLE_ALLOW,   /* prunable and permutable: Conv, Gemm, MatMul, ConvTranspose, LSTM ... */
  LACI_ROLE_INFER,   /* has per-channel parameters that follow */
  LACI_ROLE_CLEAR,   /* passes an order through */
  LACI_ROLE_SKIP,    /* constants, shape arithmetic */
} laci_role;

/** What `infer` sees and fills. Inputs that are absent are NULL; in[i]->shape.rank may be -1 and
 * sizes may be symbols. known[i] is the content of the input where it is known (integers may hold
 * symbols), else NULL. out[i] comes with dtype NONE and rank -1: what stays so is unknown. */
typedef struct laci_infer {
  const laci_node *node;
  int n_in, n_out;
  const laci_type *const *in;
  const laci_buf *const *known;
  laci_type *out;
  int64_t (*new_symbol)(struct laci_infer *infer); /* a fresh size symbol (negative) */
  void *owner;
  lac_error *err;
} laci_infer;

/** Runs body(begin, end, context) over [0, n) in parts of any number; NULL-safe through
 * laci_eval_parallel. */
typedef void laci_range_body(int64_t begin, int64_t end, void *context);

/** What `eval` sees and fills: out[i] (NULL where absent) is allocated with the shape that infer
 * gave, zeroed. */
typedef struct laci_eval {
  const laci_node *node;
  int n_in, n_out;
  const laci_buf *const *in; /* NULL: absent */
  laci_buf *const *out;
  void (*parallel)(void *pool, int64_t n, laci_range_body *body, void *context);
  void *pool;
  /* A fresh symbol *element*; NULL: contents hold no symbols. */
  int64_t (*new_symbol)(const struct laci_eval *eval);
  void *owner;
  lac_error *err;
} laci_eval;

/** Splits [0, n) over the threads; each index is computed by exactly one call, so results do not
 * depend on how many. */
static inline void laci_eval_parallel(const laci_eval *eval, int64_t n, laci_range_body *body,
                                      void *context) {
  if (eval->parallel) eval->parallel(eval->pool, n, body, context);
  else body(0, n, context);
}

/** Rounds what an evaluation gave to the types of the results: that is what runtimes hold. Where an
 * operator jumps (Floor, Cast to an integer), another number comes of it. narrow_alone: results of
 * 16 bits and fewer, and f32 stays as it was computed. */
void laci_eval_round(const laci_eval *eval, bool narrow_alone);

/** An input that could be a prunable weight: its axes, in the weight's own order. Kernel axes are
 * all others. */
typedef struct laci_weight_axes {
  int port;
  int k_axis, c_axis;        /* output channels, input channels (the reduction axis) */
  int64_t groups;            /* convolution groups; 1 elsewhere */
  int scale_port, zero_port; /* of integers: inputs that are their scales, their zero points; 0:
                                none */
} laci_weight_axes;

/** Control flow (laci_body): the nodes between these may run never or many times. An engine that
 * does not know them refuses them. */
typedef enum laci_control {
  LACI_CONTROL_NONE,
  LACI_CONTROL_CHOICE, /* If */
  LACI_CONTROL_BEGIN,  /* LoopBegin, ScanBegin: evaluated, they begin the first iteration */
  LACI_CONTROL_END,    /* Loop, Scan */
} laci_control;

/** An attribute and its kind. */
typedef struct laci_attr_type {
  const char *name;
  laci_attr_kind kind;
} laci_attr_type;

/** The list of an operator's attributes, in the order of the alphabet: {"axis", LACI_ATTR_INT}, ...
 */
#define LACI_ATTRIBUTES(...) ((const laci_attr_type[]){__VA_ARGS__, {NULL, LACI_ATTR_OTHER}})

typedef struct laci_op {
  /* ---- What it is ---- */
  const char *name;
  const char *domain; /* NULL is ai.onnx */
  laci_role role;
  laci_control control;
  /* Of every version from opset 7 on; ends with a NULL name. NULL: it has none. */
  const laci_attr_type *attributes;

  /* ---- Its weights ---- */
  bool integer_weights; /* a weight may be of 32- or 64-bit integers, not only of floats */
  bool byte_weights;    /* a weight is of 8-bit integers */
  int packed_weight; /* an input that is a weight in packed blocks, of K input and N output channels
                        by its attributes; 0: none */
  bool each_weight;  /* all candidates are weights at once; else the first that is stored is */
  /* Candidates, and their axes. NULL: it is no layer. */
  int (*weights)(const laci_graph *graph, const laci_node *node, laci_weight_axes axes[2]);

  /* ---- What inference may do with it ---- */
  bool is_fold;         /* pure and cheap on small tensors: eval may tell contents of shapes */
  bool moves_data;      /* output elements are copies of input elements: symbols survive eval */
  bool symbol_safe;     /* eval looks for symbols itself where eval->new_symbol is set, as op_in.h's
                           elementwise helpers do. With neither this nor moves_data, symbols going
                           in make every integer coming out a fresh one */
  bool shape_only;      /* eval reads the shapes of its inputs, which may hold symbols; their f and
                           i may both be NULL */
  bool sizes_from_data; /* a shape of its outputs may depend on the floats in its inputs */
  uint32_t shape_inputs; /* bit k: of input k type and shape alone are read, the content never;
                            shape_only means all */

  /* ---- What analysis and verification may assume ---- */
  uint32_t aside; /* bit k: input k follows no channel of the node: lists of axes and sizes, places,
                     numbers. All others have to be described by couple (laci_couple) */
  bool jumps;     /* rounding of a float input may change an output by any amount: choices, ties,
                     comparisons, numbers that become integers */

  /* ---- What it does ---- */
  lac_status (*infer)(laci_infer *infer);
  /* The shape that input 0 must have, as far as other inputs tell: of a stored weight, its channels
     and on how many axes they are. Sizes still open are 0 or symbols. Asked before infer, where
     input 0 is open. False: nothing is known. NULL: never. */
  bool (*expect)(const laci_infer *infer, laci_shape *shape);
  lac_status (*eval)(laci_eval *eval); /* NULL: cannot be run by the plain engine */
  lac_status (*couple)(const laci_graph *graph, const laci_node *node,
                       struct laci_coupling *coupling);
  /* NULL with a slope: dX = dY * slope(X), element by element; NULL without: the operator has no
     gradient. */
  lac_status (*gradient)(struct laci_gradient_builder *builder, const laci_node *node);
  double (*slope)(const laci_node *node, double x); /* derivative of a function of input 0 */
} laci_op;

/** The operator of that name and domain ("" and "ai.onnx" are the same); NULL: it is not declared.
 */
const laci_op *laci_op_find(const char *name, const char *domain);
/** All operators that a file may use, in the order of ops.def, then of microsoft/ops.def: without
 * the internal ones of internal/ops.def. */
const laci_op *const *laci_op_all(int *n);

/** Does the same node of ai.onnx mean something else in one of two operator sets than in the other
 * (op_changes.def)? */
bool laci_op_differs(const char *type, int version, int other);

laci_control laci_node_control(const laci_node *node);

/** Is the node this operator of ONNX, this one of ONNX Runtime's own (com.microsoft), or this one
 * of the library's own (gradients)? */
bool laci_node_is(const laci_node *node, const char *type);
bool laci_node_is_microsoft(const laci_node *node, const char *type);
bool laci_node_is_ours(const laci_node *node, const char *type);

/** A node's attributes `saturate` and `round_mode`, as laci_float_round takes them (ops/cast.c). */
unsigned laci_node_rounding(const laci_node *node);

/** The type that QuantizeLinear divides in, of scales of that type: f32, or one of 16 bits. */
lac_dtype laci_node_precision(const laci_node *node, lac_dtype scales);

#endif

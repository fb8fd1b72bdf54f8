/* SPDX-License-Identifier: Apache-2.0
 * What an operator is: one const laci_op in one file of graph/ops, and one line in ops.def.
 *
 *   infer     shapes and types of the outputs: analysis asks with symbols, the plain engine with
 *             real sizes
 *   eval      the value, slow and plain, in double: the definition of right
 *   couple    which axes of inputs and outputs have the same channel order (coupling.h)
 *   weights   which inputs could be prunable weights; returns how many. MatMul has up to two, of
 *             which one is a weight; LSTM, GRU and RNN have two
 *   gradient  the chain rule as nodes (gradient.h); or `slope`, a derivative element by element
 *
 * The other fields are facts that analysis and engines ask for. Zero or NULL is the default of
 * each. An undeclared operator has op == NULL: it freezes every order that reaches it. */
#ifndef LACI_GRAPH_OP_H
#define LACI_GRAPH_OP_H

#include "graph/graph.h"

struct laci_coupling;
struct laci_gradient_builder;
struct laci_quantized_form;

/** The role of an operator in plots and reports. */
typedef enum laci_role {
  LACI_ROLE_UNKNOWN, /* the operator is not declared; drawn red */
  LACI_ROLE_ALLOW,   /* prunable and permutable: Conv, Gemm, MatMul, ConvTranspose, LSTM ... */
  /* the operator has per-channel parameters, which are reordered together with the channels of its
   * input */
  LACI_ROLE_INFER,
  LACI_ROLE_PASS_THROUGH, /* the operator passes the order of channels through */
  LACI_ROLE_SKIP,         /* the operator computes constants or shapes */
} laci_role;

/** What `infer` sees and fills. Inputs that are absent are NULL; in[i]->shape.rank may be -1 and
 * sizes may be symbols. known[i] is the content of the input where it is known (integers may hold
 * symbols), else NULL. out[i] has dtype NONE and rank -1 before the call; infer leaves unknown
 * types as they are. */
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

/** Computes indices [begin, end) of a range that laci_eval_parallel splits. */
typedef void laci_range_body(int64_t begin, int64_t end, void *context);

/** What `eval` sees and fills: out[i] (NULL where absent) is allocated with the shape that infer
 * gave, and filled with zeros. */
typedef struct laci_eval {
  const laci_node *node;
  int n_in, n_out;
  const laci_buf *const *in; /* [n_in] the contents of the inputs; NULL: the input is absent */
  laci_buf *const *out;
  void (*parallel)(void *pool, int64_t n, laci_range_body *body, void *context);
  void *pool;
  /* Returns a fresh symbol, to be written as an integer element. NULL: contents may hold no
   * symbols. */
  int64_t (*new_symbol)(const struct laci_eval *eval);
  void *owner;
  lac_error *err;
} laci_eval;

/** Splits [0, n) over the threads; each index is computed by exactly one call, so results do not
 * depend on the number of threads. Without a thread pool, body runs in the calling thread. */
static inline void laci_eval_parallel(const laci_eval *eval, int64_t n, laci_range_body *body,
                                      void *context) {
  if (eval->parallel) eval->parallel(eval->pool, n, body, context);
  else body(0, n, context);
}

/** Rounds the outputs of an evaluation to their element types, as runtimes store them. After this,
 * an operator that jumps (Floor, Cast to an integer) may return another number. narrow_alone: only
 * outputs of 16 bits and fewer are rounded, and f32 keeps the computed value. */
void laci_eval_round_outputs_to_types(const laci_eval *eval, bool narrow_alone);

/** An input that could be a prunable weight, and its axes. All axes that are not named here are
 * kernel axes. */
typedef struct laci_weight_axes {
  int port;
  int k_axis, c_axis; /* the axes of output channels, and of input channels (the reduction axis) */
  int64_t groups;     /* number of convolution groups; 1 for other operators */
  /* ports of the inputs that hold an integer weight's scales and zero points; 0: there is no such
   * input */
  int scale_port, zero_port;
} laci_weight_axes;

/** Control flow (laci_body): the nodes of a body may run never or many times. An engine that does
 * not know them refuses them. */
typedef enum laci_control {
  LACI_CONTROL_NONE,
  LACI_CONTROL_CHOICE, /* the node is an If, of whose two bodies one runs */
  LACI_CONTROL_BEGIN,  /* the node is a LoopBegin or ScanBegin, whose evaluation begins the first
                          iteration of a loop */
  LACI_CONTROL_END,    /* the node is a Loop or Scan, which ends an iteration */
} laci_control;

/** The name of an attribute, and the kind of value that it must have. */
typedef struct laci_attr_type {
  const char *name;
  laci_attr_kind kind;
} laci_attr_type;

/** A list of an operator's attributes, in alphabetical order: {"axis", LACI_ATTR_INT}, ... */
#define LACI_ATTRIBUTES(...) ((const laci_attr_type[]){__VA_ARGS__, {NULL, LACI_ATTR_OTHER}})

typedef struct laci_op {
  /* ---- Identity of the operator ---- */
  const char *name;
  const char *domain; /* NULL is ai.onnx */
  laci_role role;
  laci_control control;
  /* All attributes of any version from opset 7 on; the list ends with a NULL name. NULL: the
   * operator has none. */
  const laci_attr_type *attributes;

  /* ---- The operator's weights ---- */
  bool integer_weights; /* a weight may be of 32- or 64-bit integers, not only of floats */
  bool byte_weights;    /* a weight is of 8-bit integers */
  /* the input that is a weight in packed blocks; attributes K and N tell its input and output
   * channels; 0: none */
  int packed_weight;
  /* true: all candidates are weights; false: only the first candidate that is a stored tensor */
  bool each_weight;
  /* Fills in the inputs that could be weights, with their axes, and returns how many there are.
   * NULL: the operator has no weights. */
  int (*weights)(const laci_graph *graph, const laci_node *node, laci_weight_axes axes[2]);

  /* for an operator on quantized operands: the operator on floats that it stands for (quantized.h);
   * NULL: the operator takes no quantized operands */
  const struct laci_quantized_form *quantized;

  /* ---- What shape inference may do with the operator ---- */
  /* pure and cheap on small tensors: inference may call eval to learn the contents of tensors */
  bool is_fold;
  bool moves_data; /* output elements are copies of input elements: symbols survive eval */
  /* eval handles symbols itself where eval->new_symbol is set, as the elementwise helpers of
   * op_in.h do. If neither symbol_safe nor moves_data is set and an input holds symbols, every
   * integer of the outputs becomes a fresh symbol */
  bool symbol_safe;
  bool shape_only;      /* eval reads only the shapes of its inputs, which may hold symbols; the
                           inputs may have no elements (f and i of laci_buf are NULL) */
  bool sizes_from_data; /* a shape of its outputs may depend on the floats in its inputs */
  /* bit k: only type and shape of input k are read, never its content; shape_only implies all bits
   * */
  uint32_t shape_inputs;

  /* ---- What analysis and verification may assume of the operator ---- */
  /* bit k: input k does not follow the channels of the node: it is a list of axes, sizes, indices
   * or numbers. couple has to describe all other inputs (laci_couple_node) */
  uint32_t inputs_without_channels;
  /* rounding of a float input may change an output by any amount: selection, ties, comparisons,
   * conversion to integers */
  bool discontinuous;

  /* ---- The operator's functions ---- */
  lac_status (*infer)(laci_infer *infer);
  /* Fills in the shape that input 0 must have, as far as other inputs tell: a stored weight tells
   * the number of channels and often the rank. Unknown sizes are 0 or symbols. Called before infer
   * where the shape of input 0 is not known. Returns false where nothing is known. NULL: no such
   * rule. */
  bool (*expect)(const laci_infer *infer, laci_shape *shape);
  lac_status (*eval)(laci_eval *eval); /* computes the outputs in double; NULL: the plain engine
                                          cannot run the operator */
  lac_status (*couple)(const laci_graph *graph, const laci_node *node,
                       struct laci_coupling *coupling);
  /* The rule for the gradient. NULL: where slope is set, dX = dY * slope(X), element by element;
   * else the operator has no gradient. */
  lac_status (*gradient)(struct laci_gradient_builder *builder, const laci_node *node);
  double (*slope)(const laci_node *node, double x); /* the derivative at x of an element-wise
                                                       function of input 0 */
} laci_op;

/* Functions that can be the `couple` of an operator: */
lac_status laci_couple_first_input(
    const laci_graph *graph, const laci_node *node,
    struct laci_coupling *c); /* output 0 has the channel order of input 0 on every axis */
lac_status laci_couple_all_inputs_broadcast(
    const laci_graph *graph, const laci_node *node,
    struct laci_coupling *c); /* all inputs are read elementwise, with broadcasting */
lac_status laci_couple_nothing(const laci_graph *graph, const laci_node *node,
                               struct laci_coupling *c); /* all axes are FIXED: nothing may be
                                                            reordered */

/** Returns the operator of that name and domain ("" and "ai.onnx" are the same); NULL: it is not
 * declared. */
const laci_op *laci_op_find(const char *name, const char *domain);
/** Returns all operators that a file may use, in the order of ops.def, then of microsoft/ops.def,
 * and their number in *n. Those of internal/ops.def are left out. */
const laci_op *const *laci_op_all(int *n);

/** Does the operator compute each element of its only output from the elements at the same place?
 */
bool laci_op_is_elementwise(const laci_op *op);

/** Does a node of that ai.onnx type mean something else in operator set `version` than in operator
 * set `other` (op_changes.def)? */
bool laci_op_differs_between_versions(const char *type, int version, int other);

laci_control laci_node_control_flow_role(const laci_node *node);

/** Return the stored tensor of a value (-1: an absent input), or of input number `port` of a node.
 * NULL: there is none; for the last function also if its elements are no floats. */
const laci_stored *laci_value_find_stored(const laci_graph *graph, int value);
const laci_stored *laci_node_find_stored(const laci_graph *graph, const laci_node *node, int port);
const laci_stored *laci_node_find_stored_floats(const laci_graph *graph, const laci_node *node,
                                                int port);

/** Is the node of that type, in the domain of ONNX, of ONNX Runtime (com.microsoft), or of this
 * library (lacuna, for gradients)? */
bool laci_node_is(const laci_node *node, const char *type);
bool laci_node_is_microsoft(const laci_node *node, const char *type);
bool laci_node_is_internal(const laci_node *node, const char *type);

/** Returns a node's attributes `saturate` and `round_mode` as flags for laci_float_round
 * (ops/cast.c). */
unsigned laci_node_rounding_flags(const laci_node *node);

/** Returns the type in which QuantizeLinear divides, given the type of its scales: f32, or a 16-bit
 * type. */
lac_dtype laci_quantizer_precision(const laci_node *node, lac_dtype scales);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What authors of operators share: checking inputs, axes and integer lists, broadcasting, walking
 * over strided operands, and element-wise evaluation that respects symbols.
 *
 * infer, eval and couple all ask whether an operand is present, whether its content is known, and
 * what the content is. laci_ints answers this once for "attribute in old opsets, input in new
 * ones". Read relu.c or add.c as the smallest examples, slice.c as a full one; the code is in
 * op_in.c (checks), walk.c and elementwise.c. */
#ifndef LACI_GRAPH_OPS_SHARED_OP_IN_H
#define LACI_GRAPH_OPS_SHARED_OP_IN_H

#include <string.h>

#include "graph/op.h"

typedef struct laci_coupling laci_coupling;

/* ---- Failing and checking ---- */

/** Fails with `status`, and a text that names the node: "NODE (Operator): text". */
lac_status laci_node_fail(const laci_node *node, lac_error *err, lac_status status,
                          const char *format, ...) LAC_PRINTF(4, 5);

/** Checks that the first `min` inputs are present, and that there are at most `max` (max < 0: any
 * number). Fails LAC_BAD_FILE. */
LAC_MUST_CHECK lac_status laci_check_n_inputs(laci_infer *infer, int min, int max);

/** Checks that all inputs and outputs have a float type. Fails LAC_UNSUPPORTED. */
LAC_MUST_CHECK lac_status laci_check_floats(const laci_eval *eval);

/** Makes a negative axis count from the end and checks 0 <= *axis < rank. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_check_axis(const laci_node *node, int rank, int64_t *axis,
                                          lac_error *err);
/** Makes a negative index count from the end and checks 0 <= *index < size. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_check_index(const laci_eval *eval, int64_t size, int64_t *index);
/** Returns the axis as a number from 0 to rank - 1; a negative axis counts from the end. -1: there
 * is no such axis. Sets no error. */
int laci_axis_counted_from_first(int64_t axis, int rank);

/* ---- Operands ---- */

static inline bool laci_has_input(const laci_node *node, int port) {
  return port < node->n_inputs && node->inputs[port] >= 0;
}
static inline bool laci_has_output(const laci_node *node, int port) {
  return port < node->n_outputs && node->outputs[port] >= 0;
}

/** Returns the shape of an input; NULL if the input is absent or its rank unknown. */
const laci_shape *laci_in_shape(const laci_infer *infer, int port);
/** Returns the content of an input if inference knows it (it may contain symbols), else NULL. */
const laci_buf *laci_in_known_content(const laci_infer *infer, int port);
/** Returns the operand at an input port of the evaluated node; NULL if it is absent. */
static inline const laci_buf *laci_operand(const laci_eval *eval, int port) {
  return port < eval->n_in ? eval->in[port] : NULL;
}
static inline laci_buf *laci_result(const laci_eval *eval, int port) {
  return port < eval->n_out ? eval->out[port] : NULL;
}
/** For couple: returns the content of an input where it is known and has no symbols, or NULL. */
const laci_buf *laci_known_content(const laci_graph *graph, const laci_node *node, int port);
/** For couple: returns the content of any constant input, long stored tensors included, to be freed
 * by laci_buf_destroy; NULL where the input is not constant. */
laci_buf *laci_copy_constant_content(const laci_graph *graph, const laci_node *node, int port);

enum { LACI_INTS_ROOM = 2 * LACI_MAX_RANK };

/** A short list of integers: axes, sizes, pads. present: the node has the list; known: its elements
 * are in v (some are symbols where has_symbols is set); n: its length, which may be known without
 * the elements; -1: unknown. */
typedef struct laci_ints {
  bool present, known, has_symbols;
  int n;
  int64_t v[LACI_INTS_ROOM];
} laci_ints;

/** Reads the list from input `port` (port < 0: there is no such input), or else from attribute
 * `attr` (NULL: there is none). `content` is the content of the input, or NULL where it is not
 * known; it comes from laci_in_known_content(), laci_operand() or laci_known_content(). A list of
 * more than LACI_INTS_ROOM integers counts as unknown. */
laci_ints laci_read_int_list(const laci_node *node, const char *attr, int port,
                             const laci_buf *content);

/** Sets flags[axis] for each axis of the list; for all axes where the list is absent and `all` is
 * set. Fails LAC_BAD_SHAPE on an axis outside or given twice. */
LAC_MUST_CHECK lac_status laci_axes_to_flags(const laci_node *node, const laci_ints *axes, int rank,
                                             bool all, bool flags[LACI_MAX_RANK], lac_error *err);

/* ---- Shapes ---- */

/** Broadcasts two shapes by NumPy's rules, with symbols. An unknown rank gives an unknown rank.
 * Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_broadcast_shapes(laci_infer *infer, const laci_shape *a,
                                                const laci_shape *b, laci_shape *out);
/** Returns the product of the sizes of axes [from, to): a number where all are known, a symbol
 * where it is the only factor that is not 1, else a fresh symbol. */
int64_t laci_multiply_sizes(laci_infer *infer, const laci_shape *shape, int from, int to);

/* Functions that can be the `infer` of an operator (op.h): */
lac_status laci_infer_same_type(laci_infer *infer); /* output 0 has the type of input 0 */
/* output 0 has the shape of input 0, and type bool */
lac_status laci_infer_bool_like_input(laci_infer *infer);
lac_status laci_infer_broadcast(laci_infer *infer); /* infer of an operator on two inputs that are
                                                       broadcast; output 0 has the type of input
                                                       0 */
lac_status laci_infer_broadcast_bool(
    laci_infer *infer); /* infer of an operator on two inputs that are broadcast; output 0 is of
                           type bool */
lac_status laci_infer_broadcast_all(laci_infer *infer); /* infer of an operator on any number of
                                                           inputs that are broadcast */

/* ---- Element by element ---- */

/** The operand with which an integer operation returns its other operand x unchanged, even if x is
 * a symbol: 0 for x + 0, 0 + x and x - 0; 1 for x * 1, 1 * x and x / 1. Any other operation on a
 * symbol gives a fresh symbol. */
typedef enum laci_neutral {
  LACI_NEUTRAL_NONE,
  LACI_NEUTRAL_ZERO,       /* 0 as either operand */
  LACI_NEUTRAL_ZERO_RIGHT, /* 0 as the right operand */
  LACI_NEUTRAL_ONE,
  LACI_NEUTRAL_ONE_RIGHT,
} laci_neutral;

/** Operations that the compiler vectorizes, instead of calling f for each element. */
typedef enum laci_basic {
  LACI_BASIC_NONE,
  LACI_BASIC_ADD,
  LACI_BASIC_SUB,
  LACI_BASIC_MUL,
  LACI_BASIC_DIV,
} laci_basic;

/** An operation of two operands, as a function for each class of element types. A function that is
 * NULL: the operation does not take operands of that class. Integer results are wrapped to the
 * output's type. */
typedef struct laci_binary {
  double (*f)(double a, double b);       /* float -> float */
  int64_t (*i)(int64_t a, int64_t b);    /* integer -> integer or bool */
  uint64_t (*u)(uint64_t a, uint64_t b); /* the operation for elements of type u64; NULL: i gives
                                            the same bits for these */
  int64_t (*test)(double a, double b);   /* float -> bool */
  laci_neutral neutral;
  laci_basic basic; /* LACI_BASIC_ADD and so on where f computes just that operation, so that the
                       compiler's vectorized loop replaces calls of f; else LACI_BASIC_NONE */
} laci_binary;

/** An operation of one operand and parameters (context). A symbol operand gives a fresh symbol. */
typedef struct laci_unary {
  double (*f)(double x, const void *context);
  int64_t (*i)(int64_t x, const void *context);   /* integer -> integer or bool */
  uint64_t (*u)(uint64_t x, const void *context); /* the operation for elements of type u64; NULL: i
                                                     gives the same bits for these */
  int64_t (*test)(double x, const void *context); /* float -> bool */
} laci_unary;

/** Computes output 0 = f(input 0, input 1), broadcast. Fails LAC_UNSUPPORTED for a class that the
 * operation does not take. */
LAC_MUST_CHECK lac_status laci_eval_binary(laci_eval *eval, const laci_binary *binary);
/** Computes output 0 = f(... f(f(input 0, input 1), input 2) ..., input n - 1), broadcast. With one
 * input, output 0 is a copy of it. */
LAC_MUST_CHECK lac_status laci_eval_binary_over_inputs(laci_eval *eval, const laci_binary *binary);
/** Computes output 0 = f(input 0), element by element. */
LAC_MUST_CHECK lac_status laci_eval_unary(laci_eval *eval, const laci_unary *unary,
                                          const void *context);

/** Converts in to out's type, element by element (cast.c), by the node's attributes `saturate` and
 * `round_mode`. A float is rounded to in's type first, then to out's. Symbols are kept between
 * integer types, but not in bool. */
void laci_eval_convert_elements(const laci_eval *eval, const laci_buf *in, laci_buf *out);

/** Is this integer element a symbol? False outside of inference. */
static inline bool laci_eval_is_symbol(const laci_eval *eval, int64_t element) {
  return eval->new_symbol && laci_is_symbol(element);
}

/* ---- Coupling ---- */

enum { LACI_MAP_LIMIT = 1 << 26 };

/** Is the size of the axis known, and at most LACI_MAP_LIMIT? Maps have an int32 for each
 * position. */
bool laci_is_axis_mappable(const laci_coupling *c, int port, int axis);
/** Makes each axis of in_port share its channel order with the same axis of out_port (coupling.h),
 * except `axis`. Both have the same rank. */
void laci_couple_other_axes(laci_coupling *c, int in_port, int out_port, int axis);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What authors of operators share: checking inputs, axes and integer lists, broadcasting, walking
 * over strided operands, and element-wise evaluation that respects symbols.
 *
 * The same three questions come up in infer, eval and couple: is the operand there, is its content
 * known, what does it say. laci_ints answers them once for "attribute in old opsets, input in new
 * ones". Read relu.c or add.c for the smallest users, slice.c for a full one; the code is in
 * op_in.c (checks), walk.c and elementwise.c. */
#ifndef LACI_GRAPH_OPS_SHARED_OP_IN_H
#define LACI_GRAPH_OPS_SHARED_OP_IN_H

#include <string.h>

#include "graph/coupling.h"
#include "graph/op.h"
#include "tensor/buf.h"

/* ---- Failing and checking ---- */

/** Fails with "NODE (Operator): text". */
lac_status laci_node_fail(const laci_node *node, lac_error *err, lac_status status,
                          const char *format, ...) LAC_PRINTF(4, 5);

/** The first `min` inputs must be there, and at most `max` (max < 0: any number). Fails
 * LAC_BAD_FILE. */
LAC_MUST_CHECK lac_status laci_want_inputs(laci_infer *infer, int min, int max);

/** All inputs and outputs must be of a float type. Fails LAC_UNSUPPORTED. */
LAC_MUST_CHECK lac_status laci_want_floats(const laci_eval *eval);

/** Makes a negative axis count from the end and checks 0 <= *axis < rank. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_axis_check(const laci_node *node, int rank, int64_t *axis,
                                          lac_error *err);
/** Makes a negative index count from the end and checks 0 <= *index < size. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_index_check(const laci_eval *eval, int64_t size, int64_t *index);
/** The same for an axis without a message: the axis inside [0, rank), or -1. */
int laci_axis_of(int64_t axis, int rank);

/* ---- Operands ---- */

static inline bool laci_has_input(const laci_node *node, int port) {
  return port < node->n_inputs && node->inputs[port] >= 0;
}
static inline bool laci_has_output(const laci_node *node, int port) {
  return port < node->n_outputs && node->outputs[port] >= 0;
}

/** Shape of an input: NULL where it is absent or its rank unknown. */
const laci_shape *laci_in_shape(const laci_infer *infer, int port);
/** Known content of an input (symbols possible), or NULL. */
const laci_buf *laci_in_known(const laci_infer *infer, int port);
/** Operand of an evaluation, or NULL where absent. */
static inline const laci_buf *laci_operand(const laci_eval *eval, int port) {
  return port < eval->n_in ? eval->in[port] : NULL;
}
static inline laci_buf *laci_result(const laci_eval *eval, int port) {
  return port < eval->n_out ? eval->out[port] : NULL;
}
/** For couple: an input whose content is known without symbols, or NULL. */
const laci_buf *laci_contents(const laci_graph *graph, const laci_node *node, int port);
/** For couple: content of any constant input, long stored ones included; NULL where it is not
 * constant. Destroy it. */
laci_buf *laci_contents_copy(const laci_graph *graph, const laci_node *node, int port);

enum { LACI_INTS_ROOM = 2 * LACI_MAX_RANK };

/** A short list of integers: axes, sizes, pads. present: given at all; known: v holds it (elements
 * may be symbols where has_symbols says so); n: its length (also where only the length is known),
 * -1: unknown. */
typedef struct laci_ints {
  bool present, known, has_symbols;
  int n;
  int64_t v[LACI_INTS_ROOM];
} laci_ints;

/** From input `port` (port < 0: there is no such input) or else from the attribute (NULL: there is
 * none). `content` is the input's, or NULL: laci_in_known(), laci_operand() or laci_contents().
 * More than LACI_INTS_ROOM integers count as unknown. */
laci_ints laci_ints_of(const laci_node *node, const char *attr, int port, const laci_buf *content);

/** Axes as a set: sets flags[axis] for each, all where the list is absent and `all` is set. Fails
 * LAC_BAD_SHAPE on an axis outside or given twice. */
LAC_MUST_CHECK lac_status laci_axes_flags(const laci_node *node, const laci_ints *axes, int rank,
                                          bool all, bool flags[LACI_MAX_RANK], lac_error *err);

/* ---- Shapes ---- */

/** NumPy broadcasting of two shapes, with symbols. Unknown rank gives unknown rank. Fails
 * LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_broadcast(laci_infer *infer, const laci_shape *a,
                                         const laci_shape *b, laci_shape *out);
/** Product of sizes [from, to): a known number, a symbol where it is the only factor, else a fresh
 * symbol. */
int64_t laci_size_product(laci_infer *infer, const laci_shape *shape, int from, int to);

/* Ready-made infer functions. */
lac_status laci_infer_same(laci_infer *infer);      /* output 0 has the type of input 0 */
lac_status laci_infer_test(laci_infer *infer);      /* the shape of input 0; bool */
lac_status laci_infer_broadcast(laci_infer *infer); /* two inputs, broadcast; type of input 0 */
lac_status laci_infer_compare(laci_infer *infer);   /* two inputs, broadcast; bool */
lac_status laci_infer_variadic(laci_infer *infer);  /* any number of inputs, broadcast */

/* ---- Element by element ---- */

/** Where a symbol passes an integer operation unchanged: x + 0, 0 + x; x - 0; x * 1, 1 * x; x / 1.
 * Any other use of a symbol gives a fresh one. */
typedef enum laci_neutral {
  LACI_NEUTRAL_NONE,
  LACI_NEUTRAL_ZERO,       /* 0 on either side */
  LACI_NEUTRAL_ZERO_RIGHT, /* 0 on the right */
  LACI_NEUTRAL_ONE,
  LACI_NEUTRAL_ONE_RIGHT,
} laci_neutral;

/** What the compiler can do many at a time, instead of calling f for each. */
typedef enum laci_basic {
  LACI_BASIC_NONE,
  LACI_BASIC_ADD,
  LACI_BASIC_SUB,
  LACI_BASIC_MUL,
  LACI_BASIC_DIV,
} laci_basic;

/** An operation of two operands; NULL where the class is not taken. Integer results are wrapped to
 * the output's type. */
typedef struct laci_binary {
  double (*f)(double a, double b);       /* float -> float */
  int64_t (*i)(int64_t a, int64_t b);    /* integer -> integer or bool */
  uint64_t (*u)(uint64_t a, uint64_t b); /* the same for u64; NULL: i has the same bits */
  int64_t (*test)(double a, double b);   /* float -> bool */
  laci_neutral neutral;
  laci_basic basic; /* f is nothing but that */
} laci_binary;

/** An operation of one operand and parameters; a symbol becomes a fresh one. */
typedef struct laci_unary {
  double (*f)(double x, const void *context);
  int64_t (*i)(int64_t x, const void *context);   /* integer -> integer or bool */
  uint64_t (*u)(uint64_t x, const void *context); /* the same for u64; NULL: i has the same bits */
  int64_t (*test)(double x, const void *context); /* float -> bool */
} laci_unary;

/** out 0 = f(in 0, in 1), broadcast. Fails LAC_UNSUPPORTED for a class that the operation does not
 * take. */
LAC_MUST_CHECK lac_status laci_eval_binary(laci_eval *eval, const laci_binary *binary);
/** out 0 = f(... f(f(in 0, in 1), in 2) ..., in n-1), broadcast; with one input: in 0. */
LAC_MUST_CHECK lac_status laci_eval_nary(laci_eval *eval, const laci_binary *binary);
/** out 0 = f(in 0). */
LAC_MUST_CHECK lac_status laci_eval_unary(laci_eval *eval, const laci_unary *unary,
                                          const void *context);

/** out = in, element by element, in out's type (cast.c), by the node's attributes `saturate` and
 * `round_mode`. A float is read as an element of in's type and rounded to one of out's, once each.
 * Symbols survive among integers, not in bool. */
void laci_eval_convert(const laci_eval *eval, const laci_buf *in, laci_buf *out);

/** Is this integer element a symbol? Never outside of folding. */
static inline bool laci_eval_is_symbol(const laci_eval *eval, int64_t element) {
  return eval->new_symbol && laci_is_symbol(element);
}

/* ---- Coupling ---- */

enum { LACI_MAP_LIMIT = 1 << 26 };

/** The axis has a known size, not above LACI_MAP_LIMIT: maps have an int32 for each position. */
bool laci_mappable(const laci_coupling *c, int port, int axis);
/** Labels for all axes of in and out but `axis`, one to one (equal ranks). */
void laci_couple_others(laci_coupling *c, int in_port, int out_port, int axis);

#endif

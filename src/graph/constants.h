/* SPDX-License-Identifier: Apache-2.0
 * Values that follow from stored tensors alone and are the same in every run: which values these
 * are, and their contents.
 *
 * A value is constant where it is stored, or where a known operator computes it from constants.
 * Values that If, Loop and Scan compute or carry are not constant. */
#ifndef LACI_GRAPH_CONSTANTS_H
#define LACI_GRAPH_CONSTANTS_H

#include "graph/graph.h"

/** What is known of a value: a set of flags. */
enum {
  LACI_CONSTANT = 1, /* the value follows from stored tensors alone */
  /* the value depends on a stored tensor that a caller may replace (laci_stored.overridable) */
  LACI_REPLACEABLE = 2,
  /* one of the nodes that compute the value, directly or not, rounds to a quantized type */
  LACI_QUANTIZED = 4,
  /* the value is computed in the body of an If, a Loop or a Scan, so never, once or many times */
  LACI_IN_BODY = 8,
};

/** Returns the flags above for each value, [n_values], to be freed by laci_free. NULL: no memory.
 * The graph must be finished. */
uint8_t *laci_graph_find_constants(const laci_graph *graph);

/** Returns, for each value [n_values], why it is not constant; to be freed by laci_free. NULL: no
 * memory. For a value that depends on stored tensors alone but is not constant: 1 + the index of
 * the first node before it whose result is not known (an undeclared operator, a random one, an If).
 * For all others: 0. The output of a node without inputs may be data, so values computed from it
 * are 0 too. constants: the result of laci_graph_find_constants. */
int *laci_graph_find_unknown_nodes(const laci_graph *graph, const uint8_t *constants);

/** Computes the content of a constant value (laci_graph_find_constants) by the operators' eval in
 * float64 and int64. Results of each node are rounded to their types, as in runtimes. `most`: the
 * limit of bytes in memory at any time, above which it fails LAC_MEMORY_LIMIT. Fails
 * LAC_UNSUPPORTED (an operator without eval, an element type that nothing computes with),
 * LAC_BAD_SHAPE (operands do not fit), LAC_NO_MEMORY, and as laci_stored_acquire does; the text
 * names the node. */
LAC_MUST_CHECK lac_status laci_graph_evaluate_constant(const laci_graph *graph, int value,
                                                       uint64_t most, laci_buf **buf,
                                                       lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What follows from stored tensors alone, and is the same in every run: which values, and what is
 * in them.
 *
 * A value is constant where it is stored, or where a known operator makes it of constants. What If,
 * Loop and Scan make or carry is not. */
#ifndef LACI_GRAPH_CONSTANTS_H
#define LACI_GRAPH_CONSTANTS_H

#include "graph/graph.h"

/** What is known of a value. */
enum {
  LACI_CONSTANT = 1,    /* it follows from stored tensors alone */
  LACI_REPLACEABLE = 2, /* a caller may replace one of these (laci_stored.overridable) */
  LACI_QUANTIZED = 4,   /* one of its producers rounds, or takes what was rounded */
  LACI_IN_BODY = 8,     /* it is made in the body of an If, a Loop or a Scan: never, or again */
};

/** Of each value, [n_values]; to be freed by laci_free. NULL: no memory. The graph is finished. */
uint8_t *laci_graph_constants(const laci_graph *graph);

/** Of each value, [n_values]; to be freed by laci_free. NULL: no memory. For a value that depends
 * on stored tensors alone but is not constant: 1 + the first node before it whose result is not
 * known (an operator that is not declared, a random one, an If). Else 0. The output of a node
 * without inputs may be data, so a layer's result from it is 0, too. constants:
 * laci_graph_constants. */
int *laci_graph_unknown(const laci_graph *graph, const uint8_t *constants);

/** The content of a constant value (laci_graph_constants), by the operators' own evaluation in
 * float64 and int64; results of each node are rounded to their types, as runtimes hold them.
 * `most`: of the bytes that are held meanwhile; above it LAC_MEMORY_LIMIT. Fails LAC_UNSUPPORTED
 * (an operator without evaluation, an element type that nothing computes with), LAC_BAD_SHAPE
 * (operands do not fit), as laci_stored_hold does, and LAC_NO_MEMORY; the text names the node. */
LAC_MUST_CHECK lac_status laci_graph_evaluate(const laci_graph *graph, int value, uint64_t most,
                                              laci_buf **buf, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Shape inference over a graph: types of all values, and contents of small tensors as far as they
 * are known. */
#ifndef LACI_GRAPH_INFER_H
#define LACI_GRAPH_INFER_H

#include "tensor/shape.h"

typedef struct laci_graph laci_graph;

/** A size that the caller fixes: NAME=1x3x224x224. A dim of -1 stays as it is. */
typedef struct laci_input_shape {
  const char *name;
  laci_shape shape;
} laci_input_shape;

/** Infers all values of a finished graph. What cannot be inferred stays unknown (that is no error);
 * what contradicts itself is: LAC_BAD_SHAPE naming node, found and expected. Declared types of
 * values are kept where inference knows less. Contents of stored tensors and of everything computed
 * from them up to 4096 elements are kept in value->known. Fails LAC_NOT_FOUND for an unknown input
 * name. */
LAC_MUST_CHECK lac_status laci_graph_infer(laci_graph *graph, const laci_input_shape *fixed,
                                           int n_fixed, lac_error *err);

/** Infers the outputs of one node, whose inputs are inferred: for nodes added to an inferred graph.
 */
LAC_MUST_CHECK lac_status laci_graph_infer_node(laci_graph *graph, int node, lac_error *err);

#endif

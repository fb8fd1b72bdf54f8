/* SPDX-License-Identifier: Apache-2.0
 * Shape inference over a graph: types of all values, and contents of small tensors as far as they
 * are known. */
#ifndef LACI_GRAPH_INFER_H
#define LACI_GRAPH_INFER_H

#include "tensor/shape.h"

typedef struct laci_graph laci_graph;

/** The shape that the caller fixes for an input, as in NAME=1x3x224x224. A dim of -1 is not fixed.
 * */
typedef struct laci_input_shape {
  const char *name;
  laci_shape shape;
} laci_input_shape;

/** Infers types of all values of a finished graph. Types that cannot be inferred stay unknown,
 * which is no error. A contradiction fails LAC_BAD_SHAPE, with the node, the shape found and the
 * shape expected. Declared types of values are kept where inference knows less. Contents of stored
 * tensors and of values computed from them are kept in value->known, up to 4096 elements. Fails
 * LAC_NOT_FOUND for an unknown input name. */
LAC_MUST_CHECK lac_status laci_graph_infer(laci_graph *graph, const laci_input_shape *fixed,
                                           int n_fixed, lac_error *err);

/** Infers the outputs of one node whose inputs are inferred already. Used for nodes added to an
 * inferred graph. */
LAC_MUST_CHECK lac_status laci_graph_infer_node(laci_graph *graph, int node, lac_error *err);

#endif

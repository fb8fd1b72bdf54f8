/* SPDX-License-Identifier: Apache-2.0
 * The float form of a graph: operators on quantized operands (quantized.h) become DequantizeLinear,
 * the operator on floats that they stand for, and QuantizeLinear. An engine that plans floats, and
 * pairs of QuantizeLinear and DequantizeLinear, then plans all quantized files alike. */
#ifndef LACI_GRAPH_FLOAT_FORM_H
#define LACI_GRAPH_FLOAT_FORM_H

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;
typedef struct laci_graph laci_graph;
typedef struct laci_node laci_node;

/** Makes *form, the float form of a graph; the graph itself where it has no such operators. Values
 * and stored tensors keep their indices, and new values follow. The form is allocated in the arena;
 * it shares texts and bytes with `graph`, which must live as long.
 *
 * Products of integers (MatMulInteger, ConvInteger) are floats in the form where one Cast to f32
 * reads them: their sums are then rounded as floats are. Fails LAC_NO_MEMORY, and as
 * laci_stored_acquire. */
LAC_MUST_CHECK lac_status laci_graph_make_float_form(laci_arena *arena, const laci_graph *graph,
                                                     const laci_graph **form, lac_error *err);

/** Returns the node of `graph` that a node of its float form, or of a part of it, belongs to; -1:
 * none. Nodes are asked for in the order of the form: *from is 0 at first, and then where the last
 * one was found. */
int laci_float_form_find_original_node(const laci_graph *graph, const laci_node *node, int *from);

#endif

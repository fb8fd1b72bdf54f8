/* SPDX-License-Identifier: Apache-2.0
 * The size of every value for given sizes of the inputs, before anything is computed; memory is
 * planned by these. */
#ifndef LACI_GRAPH_SIZES_H
#define LACI_GRAPH_SIZES_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;
typedef struct laci_input_shape laci_input_shape;
typedef struct laci_type laci_type;

/** Infers the type of every value into *types, [n_values], to be freed by laci_free; the graph is
 * not changed. Values that cannot be inferred (an unknown operator, a shape that depends on data)
 * have an unknown shape. Fails as laci_graph_infer does. */
LAC_MUST_CHECK lac_status laci_graph_infer_types(const laci_graph *graph,
                                                 const laci_input_shape *inputs, int n_inputs,
                                                 laci_type **types, lac_error *err);

/** Writes a description of the value into text: "pad_3 (output of Pad 'p'): 1x3000000x1x512 f32".
 * */
void laci_value_describe(const laci_graph *graph, int value, const laci_type *type, char *text,
                         size_t size);

#endif

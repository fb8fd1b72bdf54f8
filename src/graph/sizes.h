/* SPDX-License-Identifier: Apache-2.0
 * The size of every value for given sizes of the inputs, before anything is computed: what memory
 * is planned by. */
#ifndef LACI_GRAPH_SIZES_H
#define LACI_GRAPH_SIZES_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;
typedef struct laci_input_shape laci_input_shape;
typedef struct laci_type laci_type;

/** The type of every value, [n_values], to be freed by laci_free; the graph stays as it is. What
 * is not known beforehand (an unknown operator, a shape that depends on data) has no known shape.
 * Fails as laci_graph_infer does. */
LAC_MUST_CHECK lac_status laci_graph_sizes(const laci_graph *graph, const laci_input_shape *inputs,
                                           int n_inputs, laci_type **types, lac_error *err);

/** "pad_3 (output of Pad 'p'): 1x3000000x1x512 f32" into the buffer. */
void laci_value_text(const laci_graph *graph, int value, const laci_type *type, char *text,
                     size_t size);

#endif

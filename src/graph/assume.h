/* SPDX-License-Identifier: Apache-2.0
 * What a user declares about an operator that is not in ops.def: my.Op=same. */
#ifndef LACI_GRAPH_ASSUME_H
#define LACI_GRAPH_ASSUME_H

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

/** "OP=same" or "DOMAIN.OP=same": nodes of that type pass every channel order from inputs to
 * outputs, element by element. Only for operators that are not in ops.def. Fails LAC_BAD_ARGUMENT
 * for another text, LAC_NOT_FOUND where the graph has no such node. */
LAC_MUST_CHECK lac_status laci_graph_assume_same_channels(laci_graph *graph, const char *text,
                                                          lac_error *err);

#endif

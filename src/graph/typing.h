/* SPDX-License-Identifier: Apache-2.0
 * Whether nodes are typed as ONNX has it: attributes of the kinds that their operators' tables
 * name, weights of element types that the operators take. What an operator would silently read as
 * absent, or as no weight, shows here, once, before anything relies on it. */
#ifndef LACI_GRAPH_TYPING_H
#define LACI_GRAPH_TYPING_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

/** Looks at every node whose operator is declared; one of a custom domain may hold anything. Fails
 * LAC_BAD_FILE naming node and attribute (or weight), what was found and what was expected.
 * lenient: such a node becomes an unknown one (op NULL, its `fault` says why), which freezes all
 * that reaches it, and a warning is logged. Attributes that no version of an operator has are
 * reported at LAC_LOG_DEBUG: the next version may have them. */
LAC_MUST_CHECK lac_status laci_graph_check_typing(laci_graph *graph, bool lenient, lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Checks that nodes are typed as ONNX prescribes: attributes have the kinds that the operator
 * declares, weights have element types that the operator takes. Without this check, an operator
 * would silently treat a wrong attribute as absent, and a wrong weight as no weight. */
#ifndef LACI_GRAPH_TYPING_H
#define LACI_GRAPH_TYPING_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

/** Checks every node whose operator is declared; nodes of a custom domain may hold anything. Fails
 * LAC_BAD_FILE with the node, the attribute or weight, what was found and what was expected.
 * lenient: instead of failing, makes such a node unknown (op NULL, `fault` says why), which freezes
 * every channel order that reaches it, and logs a warning. Attributes that no version of an
 * operator has are only logged, at LAC_LOG_DEBUG: the next version may have them. */
LAC_MUST_CHECK lac_status laci_graph_check_attr_and_weight_types(laci_graph *graph, bool lenient,
                                                                 lac_error *err);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A view is a copy of a graph with other contents in its stored tensors; it shares all else with
 * the graph.
 */
#ifndef LACI_GRAPH_VIEW_H
#define LACI_GRAPH_VIEW_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

/** Creates a view of `graph`, which must outlive the view and not change meanwhile. weights:
 * [n_stored] the bytes to use instead of the graph's, which must outlive the view too; a NULL
 * entry, or weights NULL, keeps the graph's bytes. Stored tensors of the view may be modified
 * (laci_stored_writable_bytes: the view's own copy), nothing else. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_graph_view_create(const laci_graph *graph,
                                                 const uint8_t *const *weights, laci_graph **view,
                                                 lac_error *err);
/** Frees a view and the modified copies of its stored tensors. To keep such a copy, take its
 * `owned` and set that field to NULL before. view may be NULL. */
void laci_graph_view_destroy(laci_graph *view);

#endif

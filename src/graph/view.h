/* SPDX-License-Identifier: Apache-2.0
 * A graph with other contents in its stored tensors: all else is that of the graph it is a view of.
 */
#ifndef LACI_GRAPH_VIEW_H
#define LACI_GRAPH_VIEW_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

/** A view of `graph`, which must outlive it and not change meanwhile. weights: [n_stored] bytes in
 * the place of the graph's, which outlive it, too; entries and all may be NULL: as they are. Stored
 * tensors of the view may be modified (laci_stored_mut: the view's own copy), nothing else. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_graph_view_create(const laci_graph *graph,
                                                 const uint8_t *const *weights, laci_graph **view,
                                                 lac_error *err);
/** What was modified goes, too: `owned` of a stored tensor that is set to NULL before is the
 * caller's. NULL is fine. */
void laci_graph_view_destroy(laci_graph *view);

#endif

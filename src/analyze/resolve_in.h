/* SPDX-License-Identifier: Apache-2.0
 * Reading one node's coupling into tracks: shared by the resolve_*.c files.
 *
 * resolve.c walks the nodes; for each, maps are lifted first (resolve_maps.c), then labels are
 * joined (resolve_labels.c); reshaped axes have a file of their own (resolve_reshape.c).
 * ports.c: what all of them ask of the node. */
#ifndef LACI_ANALYZE_RESOLVE_IN_H
#define LACI_ANALYZE_RESOLVE_IN_H

#include "analyze/tracks_in.h"
#include "graph/coupling.h"
#include "graph/graph.h"

typedef struct laci_resolve {
  laci_tracks *t;
  const laci_coupling *c;
  const laci_node *node;
  int node_id;
  int cause;      /* of this node; -1: not made yet */
  int part_cause; /* the same for parts of a composite */
} laci_resolve;

/** This node as a cause, made on first use. */
int laci_resolve_cause(laci_resolve *r);
/** Likewise where the outer part of a composite (heads) stays, because the operator sees it apart
 * from the rest. */
int laci_resolve_part_cause(laci_resolve *r);

static inline int laci_port_value(const laci_resolve *r, int port) {
  return port >= 0 ? r->node->inputs[port] : r->node->outputs[~port];
}
static inline const laci_port_labels *laci_port_labels_of(const laci_resolve *r, int port) {
  return port >= 0 ? &r->c->in[port] : &r->c->out[~port];
}
/** NULL: the port is absent, or its value's rank is unknown. */
laci_layout *laci_port_layout(const laci_resolve *r, int port);
const laci_shape *laci_port_value_shape(const laci_resolve *r, int port);
/** The axis set that holds an axis of the port; NULL: none. */
const laci_axis_set *laci_port_axis_set(const laci_resolve *r, int port, int axis);
bool laci_is_grouped_axis(const laci_resolve *r, int port, int axis);

/** State of a fresh output axis: LACI_AXIS_PENDING until something is said about it. */
enum { LACI_AXIS_PENDING = -3 };

void laci_resolve_maps(laci_resolve *r);          /* MAPPED output axes */
void laci_resolve_labels(laci_resolve *r);        /* labels */
void laci_resolve_labelled_maps(laci_resolve *r); /* maps whose output axis is labelled too */
void laci_resolve_reshape(laci_resolve *r);       /* out 0 is in 0 with other axes */

#endif

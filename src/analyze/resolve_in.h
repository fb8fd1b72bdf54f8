/* SPDX-License-Identifier: Apache-2.0
 * Reading one node's coupling into tracks: shared by the resolve_*.c files.
 *
 * resolve.c visits the nodes. For each, maps are resolved first (resolve_maps.c), then axes with
 * the same label are joined (resolve_labels.c); graph/coupling.h defines both. resolve_reshape.c
 * handles reshaped axes. ports.c has queries of a node's ports for all of them. */
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
  int cause;      /* index of the cause that this node gives for frozen axes; -1: not created yet */
  int part_cause; /* index of the cause that this node gives if only the outer ones of
                     combined axes (heads of heads x size) are frozen; -1: not created yet */
} laci_resolve;

/** Returns the cause of this node, which is created on first use. */
int laci_node_freeze_cause(laci_resolve *r);
/** Returns the cause of this node for combined axes (heads x size) whose outer part (heads) is
 * frozen, because the operator treats that part separately. It is created on first use. */
int laci_node_parts_freeze_cause(laci_resolve *r);

static inline int laci_port_value(const laci_resolve *r, int port) {
  return port >= 0 ? r->node->inputs[port] : r->node->outputs[~port];
}
static inline const laci_port_labels *laci_port_labels_of(const laci_resolve *r, int port) {
  return port >= 0 ? &r->c->in[port] : &r->c->out[~port];
}
/** Return layout and shape of a port's value. NULL: the port is absent, or its value's rank is
 * unknown. */
laci_layout *laci_port_layout(const laci_resolve *r, int port);
const laci_shape *laci_port_value_shape(const laci_resolve *r, int port);
/** Returns the axis set that contains an axis of the port; NULL: none. */
const laci_axis_set *laci_port_axis_set(const laci_resolve *r, int port, int axis);
bool laci_port_is_grouped_axis(const laci_resolve *r, int port, int axis);

/** The state of an output axis that is not resolved yet. */
enum { LACI_AXIS_PENDING = -3 };

void laci_resolve_axis_maps(laci_resolve *r);   /* resolves the output axes that the operator
                                                   declares as MAPPED (graph/coupling.h) */
void laci_resolve_axis_labels(laci_resolve *r); /* joins axes that have the same label */
/* resolves maps whose output axis also has a label */
void laci_resolve_labelled_axis_maps(laci_resolve *r);
void laci_resolve_reshape(laci_resolve *r); /* output 0 is input 0, reshaped */

#endif

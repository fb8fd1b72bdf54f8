/* SPDX-License-Identifier: Apache-2.0
 * Queries of a node for the resolve_*.c files: layouts of its ports, and the causes that it
 * creates. */
#include <stdio.h>

#include "analyze/resolve_in.h"

laci_layout *laci_port_layout(const laci_resolve *r, int port) {
  int value = laci_port_value(r, port);
  if (value < 0 || r->t->layouts[value].rank < 0) return NULL;
  return &r->t->layouts[value];
}

const laci_shape *laci_port_value_shape(const laci_resolve *r, int port) {
  return &r->t->graph->values[laci_port_value(r, port)].type.shape;
}

const laci_axis_set *laci_port_axis_set(const laci_resolve *r, int port, int axis) {
  const laci_layout *layout = laci_port_layout(r, port);
  return layout && layout->set[axis] >= 0 ? &layout->axis_sets[layout->set[axis]] : NULL;
}

bool laci_port_is_grouped_axis(const laci_resolve *r, int port, int axis) {
  for (size_t i = 0; i < r->c->n_grouped; i++) {
    if (r->c->grouped[i].port == port && r->c->grouped[i].axis == axis) return true;
  }
  return false;
}

int laci_node_freeze_cause(laci_resolve *r) {
  if (r->cause >= 0) return r->cause;
  char text[512];
  if (r->node->fault) {
    (void)snprintf(text, sizeof text, "%s: %s, so nothing that reaches it may move", r->node->name,
                   r->node->fault);
  } else if (!r->node->op) {
    (void)snprintf(text, sizeof text,
                   "%s: operator %s%s%s is not known, so nothing that reaches it may move",
                   r->node->name, r->node->domain, r->node->domain[0] ? "." : "", r->node->type);
  } else {
    const char *why = r->c && r->c->why ? r->c->why : NULL;
    (void)snprintf(text, sizeof text, "%s: %s%s", r->node->name, why ? why : "order matters to ",
                   why ? "" : r->node->type);
  }
  r->cause = laci_freeze_cause_create(r->t, r->node_id, -1, text);
  return r->cause;
}

int laci_node_parts_freeze_cause(laci_resolve *r) {
  if (r->part_cause >= 0) return r->part_cause;
  char text[512];
  (void)snprintf(
      text, sizeof text,
      "%s: %s sees a part of split channels (such as heads) by itself, and that part stays",
      r->node->name, r->node->type);
  r->part_cause = laci_freeze_cause_create(r->t, r->node_id, -1, text);
  return r->part_cause;
}

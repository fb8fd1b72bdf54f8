/* SPDX-License-Identifier: Apache-2.0
 * Reading a node: its attributes, with defaults for absent ones, its stored inputs, and which
 * operator it is. */
#include <string.h>

#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

const laci_attr *laci_node_attr(const laci_node *node, const char *name) {
  for (int at = 0; at < node->n_attrs; at++) {
    if (strcmp(node->attrs[at].name, name) == 0) return &node->attrs[at];
  }
  return NULL;
}

int64_t laci_node_int(const laci_node *node, const char *name, int64_t otherwise) {
  const laci_attr *attr = laci_node_attr(node, name);
  return attr && attr->kind == LACI_ATTR_INT ? attr->i : otherwise;
}

float laci_node_float(const laci_node *node, const char *name, float otherwise) {
  const laci_attr *attr = laci_node_attr(node, name);
  return attr && attr->kind == LACI_ATTR_FLOAT ? attr->f : otherwise;
}

const char *laci_node_text(const laci_node *node, const char *name, const char *otherwise) {
  const laci_attr *attr = laci_node_attr(node, name);
  return attr && attr->kind == LACI_ATTR_TEXT && attr->text ? attr->text : otherwise;
}

const int64_t *laci_node_ints(const laci_node *node, const char *name, size_t *n) {
  const laci_attr *attr = laci_node_attr(node, name);
  *n = 0;
  if (!attr || attr->kind != LACI_ATTR_INTS) return NULL;
  *n = attr->n;
  /* An empty list is not absent, so its array must not be NULL. */
  static const int64_t empty;
  return attr->ints ? attr->ints : &empty;
}

laci_end_ports laci_node_loop_end_ports(const laci_node *node) {
  int before = node->n_inputs > 0 && strcmp(node->type, "Loop") == 0;
  int more = node->n_inputs - before - node->n_outputs, n = more / 2;
  /* the number of ports contradicts the node's attributes */
  if (more < 0 || n > node->n_outputs) return (laci_end_ports){0};
  return (laci_end_ports){.n_carried = n,
                          .n_slices = node->n_outputs - n,
                          .first = before,
                          .in = before + n,
                          .out = before + 2 * n,
                          .slices = before + 3 * n};
}

int laci_node_slice_axis(const laci_node *node, const char *name, int k, int rank) {
  size_t n;
  const int64_t *axes = laci_node_ints(node, name, &n);
  bool is_loop = strcmp(node->type, "Loop") == 0; /* slices of a Loop are along axis 0 */
  int64_t axis = is_loop || !axes || (size_t)k >= n ? 0 : axes[k];
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? (int)axis : -1;
}

laci_control laci_node_control_flow_role(const laci_node *node) {
  return node->op ? node->op->control : LACI_CONTROL_NONE;
}

const laci_stored *laci_value_find_stored(const laci_graph *graph, int value) {
  const int stored = value < 0 ? -1 : graph->values[value].stored;
  return stored < 0 ? NULL : &graph->stored[stored];
}

const laci_stored *laci_node_find_stored(const laci_graph *graph, const laci_node *node, int port) {
  return port < node->n_inputs ? laci_value_find_stored(graph, node->inputs[port]) : NULL;
}

const laci_stored *laci_node_find_stored_floats(const laci_graph *graph, const laci_node *node,
                                                int port) {
  const laci_stored *stored = laci_node_find_stored(graph, node, port);
  return stored && laci_dtype_is_float(stored->dtype) ? stored : NULL;
}

bool laci_node_is(const laci_node *node, const char *type) {
  return node->op && !node->op->domain && strcmp(node->type, type) == 0;
}

static bool has_type_in_domain(const laci_node *node, const char *type, const char *domain) {
  const char *own = node->op ? node->op->domain : NULL;
  return own && strcmp(own, domain) == 0 && strcmp(node->type, type) == 0;
}

bool laci_node_is_microsoft(const laci_node *node, const char *type) {
  return has_type_in_domain(node, type, "com.microsoft");
}

bool laci_node_is_internal(const laci_node *node, const char *type) {
  return has_type_in_domain(node, type, "lacuna");
}

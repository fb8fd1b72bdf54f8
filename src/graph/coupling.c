/* SPDX-License-Identifier: Apache-2.0
 * Functions that build a coupling: labels, maps, parts, and ready-made descriptions of elementwise
 * operators.
 *
 * Every helper fails softly: it sets no_memory, and laci_coupling_status() returns the status at
 * the end, so couple() functions need no checks in between. Users: the operators in ops/; `analyze`
 * reads the result. */
#include "graph/coupling.h"
#include "base/memory.h"
#include "graph/content.h"
#include "graph/graph.h"
#include "graph/op.h"

#include <string.h>

lac_status laci_coupling_init(laci_coupling *c, const laci_graph *graph, const laci_node *node) {
  *c = (laci_coupling){.graph = graph, .node = node, .arena = laci_alloc(1, sizeof *c->arena)};
  if (!c->arena) return LAC_NO_MEMORY;
  c->in = laci_arena_alloc(c->arena, (size_t)node->n_inputs, sizeof *c->in);
  c->out = laci_arena_alloc(c->arena, (size_t)node->n_outputs, sizeof *c->out);
  if (c->in && c->out) return LAC_OK;
  laci_coupling_clear(c);
  return LAC_NO_MEMORY;
}

void laci_coupling_clear(laci_coupling *c) {
  laci_free(c->normalized);
  laci_free(c->maps);
  laci_free(c->parts);
  laci_free(c->grouped);
  laci_free(c->holds);
  if (c->arena) laci_arena_clear(c->arena);
  laci_free(c->arena);
  *c = (laci_coupling){0};
}

/** Could elements of the value follow channels? True if it has more than one element, or unknown
 * sizes. */
static bool may_follow_channels(const laci_coupling *c, int value) {
  return laci_shape_count(&c->graph->values[value].type.shape) != 1;
}

/** Can input `port` be left undescribed? It can if its content is not read, or if the operator says
 * that it holds no channels (inputs_without_channels). */
static bool is_port_without_channels(const laci_node *node, int port) {
  return !laci_node_reads_port_content(node, port) ||
         (port < 32 && (node->op->inputs_without_channels >> port & 1));
}

/** Has every connected port that can have channels a known shape? */
static bool has_known_shapes(const laci_coupling *c) {
  const laci_node *node = c->node;
  for (int port = 0; port < node->n_inputs; port++) {
    int value = node->inputs[port];
    if (value >= 0 && !is_port_without_channels(node, port) &&
        c->graph->values[value].type.shape.rank < 0)
      return false;
  }
  for (int out = 0; out < node->n_outputs; out++) {
    int value = node->outputs[out];
    if (value >= 0 && c->graph->values[value].type.shape.rank < 0) return false;
  }
  return true;
}

/** Did the operator's function `couple` describe every connected input that could follow
 * channels? */
static bool has_described_all_inputs(const laci_coupling *c) {
  const laci_node *node = c->node;
  bool any = false, missed = false;
  for (int out = 0; out < node->n_outputs; out++) any |= c->out[out].described;
  for (int port = 0; port < node->n_inputs; port++) {
    int value = node->inputs[port];
    any |= c->in[port].described;
    missed |= value >= 0 && !c->in[port].described && !is_port_without_channels(node, port) &&
              may_follow_channels(c, value);
  }
  return !(any && missed) || c->reshape;
}

lac_status laci_couple_node(laci_coupling *c, const laci_graph *graph, const laci_node *node) {
  lac_status st = laci_coupling_init(c, graph, node);
  if (st || !node->op || !node->op->couple) return st;
  bool groups = laci_node_control_flow_role(node) != LACI_CONTROL_NONE;
  if (!groups && !has_known_shapes(c)) {
    c->why = "the shape of what it reads or makes is not known";
    return LAC_OK;
  }
  st = node->op->couple(graph, node, c);
  if (st || groups || has_described_all_inputs(c)) return st;
  const char *why = c->why;
  laci_coupling_clear(c);
  st = laci_coupling_init(c, graph, node);
  c->why = why;
  return st;
}

lac_status laci_coupling_status(laci_coupling *c) { return c->no_memory ? LAC_NO_MEMORY : LAC_OK; }

/** Returns the labels of a port; NULL: the node has no such port, or it is absent. */
static laci_port_labels *labels_of_port(const laci_coupling *c, int port) {
  const laci_node *node = c->node;
  if (port >= 0) return port < node->n_inputs && node->inputs[port] >= 0 ? &c->in[port] : NULL;
  int out = LACI_OUT(port);
  return out < node->n_outputs && node->outputs[out] >= 0 ? &c->out[out] : NULL;
}

const laci_shape *laci_port_shape(const laci_coupling *c, int port) {
  if (!labels_of_port(c, port)) return NULL;
  int value = port >= 0 ? c->node->inputs[port] : c->node->outputs[LACI_OUT(port)];
  const laci_shape *shape = &c->graph->values[value].type.shape;
  return shape->rank >= 0 ? shape : NULL;
}

int laci_coupling_new_label(laci_coupling *c) {
  size_t wanted = (size_t)c->n_labels + 2; /* labels count from 1 */
  while (c->normalized_capacity < wanted) {
    void *array = c->normalized;
    if (!laci_grow(&array, c->normalized_capacity, &c->normalized_capacity,
                   sizeof *c->normalized)) {
      c->no_memory = true;
      return 0;
    }
    c->normalized = array;
  }
  return ++c->n_labels;
}

void laci_coupling_mark_described(laci_coupling *c, int port) {
  laci_port_labels *labels = labels_of_port(c, port);
  if (labels) labels->described = true;
}

/** Returns the axis of the port, counted from the first one; -1: there is no such axis. */
static int resolve_axis(const laci_coupling *c, int port, int axis) {
  const laci_shape *shape = laci_port_shape(c, port);
  if (!shape) return -1;
  if (axis < 0) axis += shape->rank;
  return axis >= 0 && axis < shape->rank ? axis : -1;
}

void laci_coupling_set_label(laci_coupling *c, int port, int axis, int label) {
  axis = resolve_axis(c, port, axis);
  if (axis < 0) return;
  laci_port_labels *labels = labels_of_port(c, port);
  labels->described = true;
  labels->label[axis] = label;
}

int laci_coupling_get_label(const laci_coupling *c, int port, int axis) {
  axis = resolve_axis(c, port, axis);
  return axis < 0 ? LACI_FIXED : labels_of_port(c, port)->label[axis];
}

void laci_coupling_set_fresh_labels(laci_coupling *c, int port, int from, int to) {
  laci_coupling_mark_described(c, port);
  for (int axis = from; axis < to; axis++)
    laci_coupling_set_label(c, port, axis, laci_coupling_new_label(c));
}

void laci_couple_equal_ports(laci_coupling *c, const int *ports, int n) {
  const laci_shape *first = NULL;
  for (int at = 0; at < n; at++) {
    if (!labels_of_port(c, ports[at])) continue;
    const laci_shape *shape = laci_port_shape(c, ports[at]);
    if (!shape || (first && first->rank != shape->rank)) return;
    if (!first) first = shape;
  }
  for (int axis = 0; first && axis < first->rank; axis++) {
    bool equal = true;
    for (int at = 0; at < n; at++) {
      if (labels_of_port(c, ports[at]))
        equal &= laci_port_shape(c, ports[at])->dims[axis] == first->dims[axis];
    }
    int label = equal ? laci_coupling_new_label(c) : LACI_FIXED;
    for (int at = 0; at < n; at++) laci_coupling_set_label(c, ports[at], axis, label);
  }
}

void laci_coupling_mark_output_fresh(laci_coupling *c, int port) {
  laci_port_labels *labels = labels_of_port(c, port);
  if (labels) labels->fresh = true;
}

void laci_coupling_mark_label_normalized(laci_coupling *c, int label) {
  if (label > 0 && label <= c->n_labels) c->normalized[label] = 1;
}

/** Returns the label of an output axis, given `label` and the size of the input axis that is
 * broadcast to it; LACI_FIXED (0) where the two axes may differ. */
static int label_of_broadcast_axis(laci_coupling *c, int64_t in_size, int64_t out_size, int label) {
  if (in_size == out_size) return label;
  return in_size == 1 ? laci_coupling_new_label(c) : LACI_FIXED;
}

/** Forbids reordering (FIXED) along the axis that is `back` from the last one, in every port that
 * has `label` there, because the sizes may differ. */
static void fix_axes_with_label(laci_coupling *c, const int *ports, int n, int back, int label) {
  for (int at = 0; at < n; at++) {
    if (laci_coupling_get_label(c, ports[at], -back) == label)
      laci_coupling_set_label(c, ports[at], -back, LACI_FIXED);
  }
  laci_coupling_set_label(c, LACI_OUT(0), -back, LACI_FIXED);
}

void laci_couple_broadcast_ports(laci_coupling *c, const int *ports, int n) {
  const laci_shape *out = laci_port_shape(c, LACI_OUT(0));
  if (!out) return;
  for (int at = 0; at < n; at++) {
    if (labels_of_port(c, ports[at]) && !laci_port_shape(c, ports[at]))
      return; /* the rank is not known: all axes stay FIXED */
  }
  laci_coupling_mark_described(c, LACI_OUT(0));
  for (int at = 0; at < n; at++) laci_coupling_mark_described(c, ports[at]);
  for (int back = 1; back <= out->rank; back++) {
    int64_t out_size = out->dims[out->rank - back];
    int label = laci_coupling_new_label(c);
    bool sure = true;
    laci_coupling_set_label(c, LACI_OUT(0), -back, label);
    for (int at = 0; at < n; at++) {
      const laci_shape *in = laci_port_shape(c, ports[at]);
      if (!in || back > in->rank) continue;
      int met = label_of_broadcast_axis(c, in->dims[in->rank - back], out_size, label);
      laci_coupling_set_label(c, ports[at], -back, met);
      sure &= met != LACI_FIXED;
    }
    if (!sure) fix_axes_with_label(c, ports, n, back, label);
  }
}

void laci_couple_equal_axes(laci_coupling *c, int in_port, int out_port) {
  const laci_shape *in = laci_port_shape(c, in_port), *out = laci_port_shape(c, out_port);
  if (!in || !out || in->rank != out->rank) return;
  laci_coupling_mark_described(c, in_port);
  laci_coupling_mark_described(c, out_port);
  for (int axis = 0; axis < in->rank; axis++) {
    if (in->dims[axis] >= 0 && out->dims[axis] >= 0 && in->dims[axis] != out->dims[axis]) continue;
    int label = laci_coupling_get_label(c, in_port, axis);
    if (label <= 0) label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, in_port, axis, label);
    laci_coupling_set_label(c, out_port, axis, label);
  }
}

laci_axis_map *laci_coupling_add_map_of_run(laci_coupling *c, laci_axis_map map) {
  void *array = c->maps;
  map.from = laci_arena_alloc(c->arena, (size_t)map.n, sizeof *map.from);
  if (!map.from || !laci_grow(&array, c->n_maps, &c->map_capacity, sizeof *c->maps)) {
    c->no_memory = true;
    return NULL;
  }
  c->maps = array;
  for (int64_t at = 0; at < map.n; at++) map.from[at] = -1;
  if (map.out_axis >= 0) laci_coupling_set_label(c, map.out_port, map.out_axis, LACI_MAPPED);
  laci_coupling_set_label(c, map.in_port, map.in_axis, LACI_MAPPED);
  c->maps[c->n_maps] = map;
  return &c->maps[c->n_maps++];
}

laci_axis_map *laci_coupling_add_map(laci_coupling *c, int out_port, int out_axis, int in_port,
                                     int in_axis, int64_t n_out) {
  return laci_coupling_add_map_of_run(c, (laci_axis_map){.out_port = out_port,
                                                         .out_axis = out_axis,
                                                         .in_port = in_port,
                                                         .in_axis = in_axis,
                                                         .n_out = n_out,
                                                         .n = n_out});
}

void laci_coupling_add_map_of_consecutive(laci_coupling *c, laci_axis_map map, int64_t from) {
  laci_axis_map *run = laci_coupling_add_map_of_run(c, map);
  for (int64_t at = 0; run && at < run->n; at++) run->from[at] = (int32_t)(from + at);
}

bool laci_coupling_add_axis_parts(laci_coupling *c, int port, int axis, int64_t n_parts) {
  void *array = c->parts;
  if (!laci_grow(&array, c->n_parts, &c->part_capacity, sizeof *c->parts)) {
    c->no_memory = true;
    return false;
  }
  c->parts = array;
  c->parts[c->n_parts++] = (laci_axis_parts){.port = port, .axis = axis, .n_parts = n_parts};
  return true;
}

bool laci_coupling_add_axis_hold(laci_coupling *c, laci_axis_hold hold) {
  void *array = c->holds;
  if (!laci_grow(&array, c->n_holds, &c->hold_capacity, sizeof *c->holds)) {
    c->no_memory = true;
    return false;
  }
  c->holds = array;
  c->holds[c->n_holds++] = hold;
  laci_coupling_set_label(c, hold.port, hold.axis, LACI_MAPPED);
  return true;
}

bool laci_coupling_add_grouped_axis(laci_coupling *c, laci_grouped_axis grouped) {
  void *array = c->grouped;
  if (!laci_grow(&array, c->n_grouped, &c->grouped_capacity, sizeof *c->grouped)) {
    c->no_memory = true;
    return false;
  }
  c->grouped = array;
  c->grouped[c->n_grouped++] = grouped;
  return true;
}

lac_status laci_couple_first_input(const laci_graph *graph, const laci_node *node,
                                   laci_coupling *c) {
  (void)graph;
  (void)node;
  laci_couple_broadcast_ports(c, (const int[]){0}, 1);
  return laci_coupling_status(c);
}

lac_status laci_couple_all_inputs_broadcast(const laci_graph *graph, const laci_node *node,
                                            laci_coupling *c) {
  (void)graph;
  int *ports = laci_arena_alloc(c->arena, (size_t)node->n_inputs, sizeof *ports);
  if (!ports) return LAC_NO_MEMORY;
  for (int port = 0; port < node->n_inputs; port++) ports[port] = port;
  laci_couple_broadcast_ports(c, ports, node->n_inputs);
  return laci_coupling_status(c);
}

lac_status laci_couple_nothing(const laci_graph *graph, const laci_node *node, laci_coupling *c) {
  (void)graph;
  (void)node;
  return laci_coupling_status(c);
}

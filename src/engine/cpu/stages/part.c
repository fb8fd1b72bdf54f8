/* SPDX-License-Identifier: Apache-2.0
 * Parts of graphs: part.h. */
#include "engine/cpu/stages/part.h"

#include "base/error.h"
#include "base/memory.h"

/** Where nodes and values of a graph go. */
typedef struct places {
  bool *wanted; /* [n_values] */
  int *node;    /* [n_nodes] the node's number in the part; -1: not there */
} places;

static bool makes_wanted(const laci_node *node, int input, const bool *wanted) {
  for (int at = 0; at < node->n_outputs; at++) {
    const int value = node->outputs[at];
    if (value >= 0 && value != input && wanted[value]) return true;
  }
  return false;
}

/** Marks what is needed, from the end on; how many nodes that are. */
static int mark(const laci_graph *graph, int input, const places *to) {
  int n_marked = 0, place = 0;
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    to->node[n] = makes_wanted(node, input, to->wanted) ? 0 : -1;
    if (to->node[n] < 0) continue;
    n_marked++;
    for (int at = 0; at < node->n_inputs; at++) {
      if (node->inputs[at] >= 0) to->wanted[node->inputs[at]] = true;
    }
  }
  for (int n = 0; n < graph->n_nodes; n++) {
    if (to->node[n] == 0) to->node[n] = place++;
  }
  return n_marked;
}

static bool needs_others(const laci_graph *graph, const laci_stage_ends *ends, const places *to) {
  for (int at = 0; at < graph->n_inputs; at++) {
    const int value = graph->inputs[at];
    if (value != ends->input && value != ends->shaped && to->wanted[value]) return true;
  }
  return false;
}

static bool copy_nodes(laci_arena *arena, const laci_graph *graph, const places *to,
                       laci_graph *part) {
  part->nodes = laci_arena_alloc(arena, (size_t)part->n_nodes, sizeof *part->nodes);
  for (int n = 0; part->nodes && n < graph->n_nodes; n++) {
    if (to->node[n] >= 0) part->nodes[to->node[n]] = graph->nodes[n];
  }
  return part->nodes != NULL;
}

/** With makers and readers by their new numbers. */
static bool copy_values(laci_arena *arena, const laci_graph *graph, const places *to,
                        laci_graph *part) {
  part->values = laci_arena_alloc(arena, (size_t)graph->n_values, sizeof *part->values);
  for (int v = 0; part->values && v < graph->n_values; v++) {
    const laci_value *from = &graph->values[v];
    laci_value *copy = &part->values[v];
    int *readers = laci_arena_alloc(arena, (size_t)from->n_readers, sizeof *readers);
    if (!readers) return false;
    *copy = *from;
    copy->is_input = copy->is_output = false;
    copy->producer = from->producer >= 0 ? to->node[from->producer] : -1;
    copy->readers = readers;
    copy->n_readers = 0;
    for (int at = 0; at < from->n_readers; at++) {
      const int reader = to->node[from->readers[at]];
      if (reader >= 0) readers[copy->n_readers++] = reader;
    }
  }
  return part->values != NULL;
}

/** NULL: no memory. */
static laci_graph *copy_part(laci_arena *arena, const laci_graph *graph, int n_nodes,
                             const places *to) {
  laci_graph *part = laci_arena_alloc(arena, 1, sizeof *part);
  if (!part) return NULL;
  *part = *graph;
  part->n_nodes = n_nodes;
  return copy_nodes(arena, graph, to, part) && copy_values(arena, graph, to, part) ? part : NULL;
}

static void set_input(laci_graph *part, int value, const laci_type *type) {
  part->inputs[part->n_inputs++] = value;
  part->values[value].is_input = true;
  part->values[value].producer = -1;
  part->values[value].type = *type;
}

/** False: no memory. */
static bool set_ends(laci_arena *arena, laci_graph *part, const laci_stage_ends *ends,
                     bool asks_shaped) {
  part->inputs = laci_arena_alloc(arena, 2, sizeof *part->inputs);
  part->outputs = laci_arena_alloc(arena, (size_t)ends->n_outputs, sizeof *part->outputs);
  if (!part->inputs || !part->outputs) return false;
  part->n_inputs = 0;
  set_input(part, ends->input, &ends->type);
  if (asks_shaped) set_input(part, ends->shaped, &ends->shaped_type);
  part->n_outputs = ends->n_outputs;
  for (int at = 0; at < ends->n_outputs; at++) {
    part->outputs[at] = ends->outputs[at];
    part->values[ends->outputs[at]].is_output = true;
  }
  return true;
}

lac_status laci_stage_part(laci_arena *arena, const laci_graph *graph, const laci_stage_ends *ends,
                           laci_graph **part, lac_error *err) {
  places to = {.wanted = laci_alloc((size_t)graph->n_values, sizeof *to.wanted),
               .node = laci_alloc((size_t)graph->n_nodes, sizeof *to.node)};
  bool failed = !to.wanted || !to.node;
  *part = NULL;
  for (int at = 0; at < ends->n_outputs && !failed; at++) to.wanted[ends->outputs[at]] = true;
  const int n_nodes = failed ? 0 : mark(graph, ends->input, &to);
  if (!failed && !needs_others(graph, ends, &to)) {
    const bool asks_shaped = ends->shaped >= 0 && to.wanted[ends->shaped];
    laci_graph *copy = copy_part(arena, graph, n_nodes, &to);
    failed = !copy || !set_ends(arena, copy, ends, asks_shaped);
    if (!failed) *part = copy;
  }
  laci_free(to.wanted);
  laci_free(to.node);
  return failed ? laci_fail_memory(err, "a part of the network") : LAC_OK;
}

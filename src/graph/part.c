/* SPDX-License-Identifier: Apache-2.0
 * Parts of graphs: part.h. */
#include "graph/part.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"

/** Fills place[n_nodes], the index of each node in the part; -1: it is not in the part. Returns the
 * number of nodes in the part. */
static int number_chosen_nodes(const laci_graph *graph, const bool *chosen, int *place) {
  int n_chosen = 0;
  for (int n = 0; n < graph->n_nodes; n++) place[n] = chosen[n] ? n_chosen++ : -1;
  return n_chosen;
}

/** Returns the number in the part of the innermost body around `body`, itself included, that is in
 * the part; 0: there is none. numbers: [n_bodies] number of each body in the part; 0: it is not. */
static int find_body_in_part(const laci_graph *graph, const int *numbers, int body) {
  while (body && !numbers[body - 1]) body = graph->bodies[body - 1].outer;
  return body ? numbers[body - 1] : 0;
}

/** Copies the bodies whose end is in the part. numbers: [n_bodies] filled with their numbers
 * there. */
static bool copy_bodies(laci_arena *arena, const laci_graph *graph, const int *place, int *numbers,
                        laci_graph *part) {
  part->bodies = laci_arena_alloc(arena, (size_t)graph->n_bodies, sizeof *part->bodies);
  part->n_bodies = 0;
  for (int b = 0; part->bodies && b < graph->n_bodies; b++) {
    numbers[b] = 0;
    if (place[graph->bodies[b].end] < 0) continue;
    laci_body *copy = &part->bodies[part->n_bodies];
    numbers[b] = ++part->n_bodies;
    *copy = graph->bodies[b];
    copy->end = place[copy->end];
    if (copy->begin >= 0) copy->begin = place[copy->begin];
    copy->outer = find_body_in_part(graph, numbers, copy->outer);
  }
  return part->bodies != NULL;
}

static bool copy_nodes(laci_arena *arena, const laci_graph *graph, const int *place,
                       const int *numbers, laci_graph *part) {
  part->nodes = laci_arena_alloc(arena, (size_t)part->n_nodes, sizeof *part->nodes);
  for (int n = 0; part->nodes && n < graph->n_nodes; n++) {
    if (place[n] < 0) continue;
    laci_node *copy = &part->nodes[place[n]];
    *copy = graph->nodes[n];
    copy->body = find_body_in_part(graph, numbers, copy->body);
    copy->frames = copy->frames ? numbers[copy->frames - 1] : 0;
  }
  return part->nodes != NULL;
}

/** Copies the values, with producers and readers renumbered by `place`. */
static bool copy_values(laci_arena *arena, const laci_graph *graph, const int *place,
                        laci_graph *part) {
  part->values = laci_arena_alloc(arena, (size_t)graph->n_values, sizeof *part->values);
  for (int v = 0; part->values && v < graph->n_values; v++) {
    const laci_value *from = &graph->values[v];
    laci_value *copy = &part->values[v];
    int *readers = laci_arena_alloc(arena, (size_t)from->n_readers, sizeof *readers);
    if (!readers) return false;
    *copy = *from;
    copy->is_input = copy->is_output = false;
    copy->producer = from->producer >= 0 ? place[from->producer] : -1;
    copy->readers = readers;
    copy->n_readers = 0;
    for (int at = 0; at < from->n_readers; at++) {
      const int reader = place[from->readers[at]];
      if (reader >= 0) readers[copy->n_readers++] = reader;
    }
  }
  return part->values != NULL;
}

static void set_subgraph_input(laci_graph *part, int value, const laci_type *type) {
  part->inputs[part->n_inputs++] = value;
  part->values[value].is_input = true;
  part->values[value].producer = -1;
  part->values[value].type = *type;
}

static bool set_subgraph_inputs_and_outputs(laci_arena *arena, laci_graph *part,
                                            const laci_part_ports *ports) {
  part->inputs = laci_arena_alloc(arena, (size_t)ports->n_inputs, sizeof *part->inputs);
  part->outputs = laci_arena_alloc(arena, (size_t)ports->n_outputs, sizeof *part->outputs);
  if (!part->inputs || !part->outputs) return false;
  part->n_inputs = 0;
  for (int at = 0; at < ports->n_inputs; at++)
    set_subgraph_input(part, ports->inputs[at], &ports->types[at]);
  part->n_outputs = ports->n_outputs;
  for (int at = 0; at < ports->n_outputs; at++) {
    part->outputs[at] = ports->outputs[at];
    part->values[ports->outputs[at]].is_output = true;
  }
  return true;
}

lac_status laci_graph_build_subgraph(laci_arena *arena, const laci_graph *graph, const bool *chosen,
                                     const laci_part_ports *ports, laci_graph **part,
                                     lac_error *err) {
  int *place = laci_alloc((size_t)graph->n_nodes, sizeof *place);
  int *numbers = laci_alloc((size_t)graph->n_bodies, sizeof *numbers);
  laci_graph *made = laci_arena_alloc(arena, 1, sizeof *made);
  bool whole = place && numbers && made;
  *part = NULL;
  if (whole) {
    *made = *graph;
    made->n_nodes = number_chosen_nodes(graph, chosen, place);
    whole = copy_bodies(arena, graph, place, numbers, made) &&
            copy_nodes(arena, graph, place, numbers, made) &&
            copy_values(arena, graph, place, made) &&
            set_subgraph_inputs_and_outputs(arena, made, ports);
  }
  laci_free(place);
  laci_free(numbers);
  if (!whole) return laci_fail_memory(err, "a part of the network");
  *part = made;
  return LAC_OK;
}

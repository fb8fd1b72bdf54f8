/* SPDX-License-Identifier: Apache-2.0
 * Inlines Ifs of known condition: inline.h. A result of such an If that is an output of the network
 * becomes the output of an Identity, so that outputs keep their names. */
#include "engine/auto/inline.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/engine.h"
#include "graph/branches.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "graph/part.h"
#include "tensor/buf.h"

static bool has_choice(const laci_graph *graph) {
  for (int b = 0; b < graph->n_bodies; b++) {
    if (graph->bodies[b].branch >= 0) return true;
  }
  return false;
}

/* Copies the values of the graph. Shapes that the file declares for results are left out: they need
 * not be true, and a condition must not follow from them. */
static laci_value *copy_values(const laci_graph *graph) {
  const size_t n = (size_t)graph->n_values;
  laci_value *values = laci_alloc(n, sizeof *values);
  for (size_t v = 0; values && v < n; v++) {
    values[v] = graph->values[v];
    values[v].known = NULL; /* the graph keeps its contents */
    if (values[v].producer >= 0) values[v].type.shape = laci_shape_unknown();
  }
  return values;
}

/* Frees what inference found, and restores what the graph says of its values. */
static void restore_values(const laci_graph *graph, laci_value *values) {
  for (int v = 0; v < graph->n_values; v++) {
    laci_buf_destroy(values[v].known);
    values[v].known = graph->values[v].known;
    values[v].type = graph->values[v].type;
  }
}

/* ---- Outputs ---- */

/* Makes `reader` one more reader of the value. */
static bool add_reader(laci_arena *arena, laci_value *value, int reader) {
  int *readers = laci_arena_alloc(arena, (size_t)value->n_readers + 1, sizeof *readers);
  if (!readers) return false;
  if (value->n_readers) {
    memcpy(readers, value->readers, (size_t)value->n_readers * sizeof *readers);
  }
  readers[value->n_readers++] = reader;
  value->readers = readers;
  return true;
}

/* Adds the node output = Identity(from) to copy->nodes, which has memory for it. */
static bool add_identity(laci_arena *arena, laci_graph *copy, const laci_node *choice, int from,
                         int output) {
  int *ports = laci_arena_alloc(arena, 2, sizeof *ports);
  if (!ports || !add_reader(arena, &copy->values[from], copy->n_nodes)) return false;
  ports[0] = from;
  ports[1] = output;
  copy->values[output].producer = copy->n_nodes;
  copy->nodes[copy->n_nodes++] = (laci_node){.name = choice->name,
                                             .type = "Identity",
                                             .domain = "",
                                             .version = choice->version,
                                             .op = &laci_op_identity,
                                             .n_inputs = 1,
                                             .n_outputs = 1,
                                             .inputs = ports,
                                             .outputs = ports + 1};
  return true;
}

static bool was_added(const laci_graph *graph, const laci_graph *copy, int output) {
  return copy->values[output].producer >= graph->n_nodes;
}

/* Makes an Identity of each output of `graph` that is the result of an inlined If. */
static lac_status keep_outputs(laci_arena *arena, const laci_graph *graph, laci_graph *copy,
                               lac_error *err) {
  const size_t n = (size_t)copy->n_nodes;
  laci_node *nodes = laci_arena_alloc(arena, n + (size_t)graph->n_outputs, sizeof *nodes);
  if (!nodes) return laci_fail_memory(err, "the branches of the network");
  memcpy(nodes, copy->nodes, n * sizeof *nodes);
  copy->nodes = nodes;
  for (int at = 0; at < graph->n_outputs; at++) {
    const int output = graph->outputs[at], from = copy->outputs[at];
    if (from == output || was_added(graph, copy, output)) continue;
    const laci_node *choice = &graph->nodes[graph->values[output].producer];
    if (!add_identity(arena, copy, choice, from, output))
      return laci_fail_memory(err, "the branches of the network");
  }
  return LAC_OK;
}

/* ---- The graph ---- */

static lac_status build_without_cleared_nodes(laci_arena *arena, const laci_graph *graph,
                                              const laci_graph *copy, const laci_graph **inlined,
                                              lac_error *err) {
  bool *chosen = laci_alloc((size_t)copy->n_nodes, sizeof *chosen);
  laci_type *types = laci_alloc((size_t)graph->n_inputs, sizeof *types);
  laci_graph *made = NULL;
  lac_status st = chosen && types ? LAC_OK : laci_fail_memory(err, "the branches of the network");
  for (int n = 0; n < copy->n_nodes && !st; n++) chosen[n] = copy->nodes[n].n_outputs > 0;
  for (int at = 0; at < graph->n_inputs && !st; at++)
    types[at] = graph->values[graph->inputs[at]].type;
  if (!st) {
    const laci_part_ports ports = {.inputs = graph->inputs,
                                   .types = types,
                                   .n_inputs = graph->n_inputs,
                                   .outputs = graph->outputs,
                                   .n_outputs = graph->n_outputs};
    st = laci_graph_build_subgraph(arena, copy, chosen, &ports, &made, err);
  }
  laci_free(chosen);
  laci_free(types);
  if (!st) *inlined = made;
  return st;
}

lac_status laci_auto_inline_branches(const laci_graph *graph, const laci_engine_options *options,
                                     laci_arena *arena, const laci_graph **inlined,
                                     lac_error *err) {
  *inlined = graph;
  if (!has_choice(graph)) return LAC_OK;
  laci_graph copy = *graph;
  const int *alias = NULL;
  copy.values = copy_values(graph);
  if (!copy.values) return laci_fail_memory(err, "the sizes of values");
  lac_status st = laci_graph_infer(&copy, options->shapes, options->n_shapes, NULL);
  const bool fails = st && st != LAC_NO_MEMORY; /* creating the engine tells why */
  if (st == LAC_NO_MEMORY) st = laci_fail_memory(err, "the sizes of values");
  if (!st) st = laci_graph_inline_branches(&copy, arena, &alias, err);
  restore_values(graph, copy.values);
  if (!st && alias) st = keep_outputs(arena, graph, &copy, err);
  if (!st && alias) st = build_without_cleared_nodes(arena, graph, &copy, inlined, err);
  laci_free(copy.values);
  return fails ? LAC_OK : st;
}

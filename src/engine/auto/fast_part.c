/* SPDX-License-Identifier: Apache-2.0
 * Parts of a network that the fast engine plans: which values a part reads and computes, and its
 * engine (builder_in.h). */
#include <string.h>

#include "base/error.h"
#include "engine/auto/builder_in.h"
#include "graph/graph.h"
#include "graph/part.h"

/* ---- The inputs and outputs of a part ---- */

static bool is_fast_node_of_phase(const laci_auto *a, int node, int phase) {
  return a->cut.phase[node] == phase && a->cut.fast[node];
}

/* Producers come before their readers, so one pass backward is enough. */
void laci_auto_choose_constant_nodes(laci_auto_builder *m) {
  const laci_graph *graph = m->a->graph;
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *reader = &graph->nodes[n];
    for (int at = 0; at < reader->n_inputs && m->chosen[n]; at++) {
      int value = reader->inputs[at];
      int producer = value >= 0 ? graph->values[value].producer : -1;
      if (producer >= 0 && m->a->cut.constant[producer]) m->chosen[producer] = true;
    }
  }
}

/* Chooses the nodes of a phase for the current part; returns true if there are any. */
static bool choose_phase_nodes(laci_auto_builder *m, int phase) {
  bool any = false;
  for (int n = 0; n < m->a->graph->n_nodes; n++) {
    m->chosen[n] = is_fast_node_of_phase(m->a, n, phase);
    any = any || m->chosen[n];
  }
  laci_auto_choose_constant_nodes(m);
  return any;
}

void laci_auto_add_part_input(laci_auto_builder *m, laci_auto_part *part, int value) {
  const laci_value *v = &m->a->graph->values[value];
  bool inside = v->stored >= 0 || (v->producer >= 0 && m->chosen[v->producer]);
  if (inside || m->listed[value]) return;
  m->listed[value] = true;
  part->inputs[part->n_inputs++] = value;
}

/* Does a node of another phase, or the caller, read the value, which this phase computes? Parts
 * have their own copies of constants. */
static bool is_read_elsewhere(const laci_auto *a, int value, int phase) {
  const laci_value *v = &a->graph->values[value];
  bool copied = a->cut.constant[v->producer];
  for (int at = 0; at < v->n_readers; at++) {
    int reader = v->readers[at];
    if (!a->cut.fast[reader] || (a->cut.phase[reader] != phase && !copied)) return true;
  }
  return v->is_output;
}

lac_status laci_auto_begin_part(laci_auto_builder *m, laci_auto_part *part, lac_error *err) {
  laci_auto *a = m->a;
  const size_t n = (size_t)a->graph->n_values;
  part->n_inputs = part->n_outputs = 0;
  part->inputs = laci_arena_alloc(&a->memory, n, sizeof *part->inputs);
  part->outputs = laci_arena_alloc(&a->memory, n, sizeof *part->outputs);
  memset(m->listed, 0, n * sizeof *m->listed);
  return part->inputs && part->outputs ? LAC_OK : laci_fail_memory(err, "a part of the network");
}

static void list_inputs_and_outputs(laci_auto_builder *m, laci_auto_part *part, int phase) {
  const laci_graph *graph = m->a->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_inputs && m->chosen[n]; at++) {
      if (node->inputs[at] >= 0) laci_auto_add_part_input(m, part, node->inputs[at]);
    }
    for (int at = 0; at < node->n_outputs && is_fast_node_of_phase(m->a, n, phase); at++) {
      int value = node->outputs[at];
      if (value >= 0 && is_read_elsewhere(m->a, value, phase))
        part->outputs[part->n_outputs++] = value;
    }
  }
}

/* ---- A fast part ---- */

/* Allocates buffers for values that go from part to part; the network's inputs and outputs are in
 * the caller's buffers. */
static lac_status allocate_values(laci_auto *a, const int *values, const laci_engine_port *ports,
                                  int n, lac_error *err) {
  for (int at = 0; at < n; at++) {
    const laci_value *v = &a->graph->values[values[at]];
    if (v->is_input || v->is_output || a->at[values[at]]) continue;
    a->at[values[at]] = laci_alloc(ports[at].size_bytes, 1);
    if (!a->at[values[at]]) return laci_fail_memory(err, v->name);
    a->ours[values[at]] = true;
  }
  return LAC_OK;
}

lac_status laci_auto_make_engine(laci_auto_builder *m, const char *name, laci_auto_part *part,
                                 lac_error *err) {
  laci_auto *a = m->a;
  laci_graph *graph;
  laci_engine_options o = *m->options;
  laci_type *types = laci_arena_alloc(&a->memory, (size_t)part->n_inputs, sizeof *types);
  part->in = laci_arena_alloc(&a->memory, (size_t)part->n_inputs, sizeof *part->in);
  part->out = laci_arena_alloc(&a->memory, (size_t)part->n_outputs, sizeof *part->out);
  if (!types || !part->in || !part->out) return laci_fail_memory(err, "a part of the network");
  for (int at = 0; at < part->n_inputs; at++) types[at] = a->cut.types[part->inputs[at]];
  const laci_part_ports ports = {.inputs = part->inputs,
                                 .types = types,
                                 .n_inputs = part->n_inputs,
                                 .outputs = part->outputs,
                                 .n_outputs = part->n_outputs};
  lac_status st = laci_graph_build_subgraph(&a->memory, a->graph, m->chosen, &ports, &graph, err);
  if (st) return st;
  o.engine = name;
  o.shapes = NULL;
  o.n_shapes = 0;
  o.recompute = 0;
  o.early_outputs = false;
  o.budget = &m->budget;
  if (o.extent == LACI_EXTENT_PARTIAL) o.extent = LACI_EXTENT_OUTLINE; /* a part needs its ports */
  st = laci_engine_create(graph, &o, &part->engine, err);
  if (st) return st;
  const laci_engine_memory planned = laci_engine_planned_memory(part->engine);
  a->planned.arena_bytes += planned.arena_bytes;
  a->planned.weight_bytes += planned.weight_bytes;
  part->n_steps = laci_engine_step_count(part->engine);
  (void)laci_engine_inputs(part->engine, &part->input_ports);
  (void)laci_engine_outputs(part->engine, &part->output_ports);
  return allocate_values(a, part->inputs, part->input_ports, part->n_inputs, err);
}

/* Plans the part by the fast engine, and allocates the buffers of its outputs. */
static lac_status make_fast_engine(laci_auto_builder *m, laci_auto_part *part, lac_error *err) {
  lac_status st = laci_auto_make_engine(m, LACI_ENGINE_FAST, part, err);
  return st ? st : allocate_values(m->a, part->outputs, part->output_ports, part->n_outputs, err);
}

lac_status laci_auto_make_fast_part(laci_auto_builder *m, int phase, lac_error *err) {
  laci_auto *a = m->a;
  laci_auto_part *part = &a->parts[a->n_parts];
  if (!choose_phase_nodes(m, phase)) return LAC_OK;
  lac_status st = laci_auto_begin_part(m, part, err);
  if (st) return st;
  list_inputs_and_outputs(m, part, phase);
  if (part->n_outputs == 0) { /* no other part reads a value of this part */
    part->n_inputs = 0;
    return LAC_OK;
  }
  lac_error why = {0};
  st = make_fast_engine(m, part, &why);
  if (st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE) {
    m->refused = phase;
    m->why = why;
  }
  if (st) {
    laci_engine_destroy(part->engine);
    part->engine = NULL;
    return laci_fail(err, st, "%s", why.text);
  }
  a->n_parts++;
  return LAC_OK;
}

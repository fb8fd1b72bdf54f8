/* SPDX-License-Identifier: Apache-2.0
 * Creates the engines of an If's branches: choice.h. */
#include "engine/auto/choice.h"

#include <string.h>

#include "base/error.h"
#include "engine/auto/builder_in.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

enum { THEN, ELSE, N_BRANCHES };

/* ---- The nodes of a branch ---- */

static bool is_in_branch(const laci_graph *graph, int node, int choice, int branch) {
  for (int body = graph->nodes[node].body; body; body = graph->bodies[body - 1].outer) {
    const laci_body *b = &graph->bodies[body - 1];
    if (b->end == choice && b->branch == (branch == THEN)) return true;
  }
  return false;
}

bool laci_auto_is_in_choice(const laci_graph *graph, const laci_auto_choice *choice, int node) {
  return is_in_branch(graph, node, choice->node, THEN) ||
         is_in_branch(graph, node, choice->node, ELSE);
}

bool laci_auto_is_exact_step(const laci_auto *a, const laci_auto_part *part, int node) {
  const laci_auto_choice *choice = part->choice;
  if (a->delegated[node]) return false;
  return !choice || choice->node != node || !choice->branches[THEN].part.engine ||
         !choice->branches[ELSE].part.engine;
}

static bool has_result_of_unknown_size(const laci_auto *a, int node) {
  const laci_node *n = &a->graph->nodes[node];
  for (int at = 0; at < n->n_outputs; at++) {
    if (n->outputs[at] >= 0 && !laci_shape_is_known(&a->cut.types[n->outputs[at]].shape))
      return true;
  }
  return false;
}

/* Chooses the nodes of the branch; returns whether they are enough work for an engine, as far as
 * their sizes are known. */
static bool choose_branch_nodes(laci_auto_builder *m, int choice, int branch) {
  const laci_graph *graph = m->a->graph;
  int64_t work = 0;
  bool any = false, unknown = false;
  for (int n = 0; n < graph->n_nodes; n++) {
    m->chosen[n] = is_in_branch(graph, n, choice, branch);
    if (!m->chosen[n]) continue;
    any = true;
    unknown = unknown || has_result_of_unknown_size(m->a, n);
    work += laci_auto_cut_count_operations(&m->a->cut, n);
  }
  laci_auto_choose_constant_nodes(m);
  return any && (unknown || work >= m->least_work);
}

/* ---- Inputs and outputs of a branch ---- */

static int result_of_branch(const laci_node *node, int branch, int at) {
  return node->inputs[1 + at + branch * node->n_outputs];
}

static bool is_made_by_chosen_node(const laci_auto_builder *m, int value) {
  const laci_value *v = &m->a->graph->values[value];
  return v->producer >= 0 && m->chosen[v->producer];
}

static int find_in_list(const int *list, int n, int value) {
  for (int at = 0; at < n; at++) {
    if (list[at] == value) return at;
  }
  return -1;
}

/* Lists what the branch reads from outside and what the If reads of it. Returns false if a result
 * is missing. */
static bool list_branch_ports(laci_auto_builder *m, const laci_node *node, int branch,
                              laci_auto_part *part, int *result_ports) {
  const laci_graph *graph = m->a->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *inner = &graph->nodes[n];
    for (int at = 0; at < inner->n_inputs + inner->n_captures && m->chosen[n]; at++) {
      const int value =
          at < inner->n_inputs ? inner->inputs[at] : inner->captures[at - inner->n_inputs];
      if (value >= 0) laci_auto_add_part_input(m, part, value);
    }
  }
  for (int at = 0; at < node->n_outputs; at++) {
    const int result = result_of_branch(node, branch, at);
    result_ports[at] = -1;
    if (node->outputs[at] < 0) continue;
    if (result < 0) return false;
    if (!is_made_by_chosen_node(m, result)) laci_auto_add_part_input(m, part, result);
    int port = find_in_list(part->outputs, part->n_outputs, result);
    if (port < 0) {
      port = part->n_outputs++;
      part->outputs[port] = result;
    }
    result_ports[at] = port;
  }
  return true;
}

/* ---- Buffers ---- */

/* Does a run write the If's output to a buffer: is it of known shape, and read by the caller or a
 * fast node? */
static bool is_buffered(const laci_auto *a, int value) {
  const laci_value *v = &a->graph->values[value];
  if (!laci_shape_is_known(&a->cut.types[value].shape)) return false;
  for (int at = 0; at < v->n_readers; at++) {
    if (a->cut.fast[v->readers[at]]) return true;
  }
  return v->is_output;
}

/* Describes the buffers of the If's outputs, and allocates those that are not the caller's. */
static lac_status make_output_buffers(laci_auto *a, laci_auto_choice *choice, lac_error *err) {
  const laci_node *node = &a->graph->nodes[choice->node];
  choice->ports = laci_arena_alloc(&a->memory, (size_t)node->n_outputs, sizeof *choice->ports);
  if (!choice->ports) return laci_fail_memory(err, "a part of the network");
  for (int at = 0; at < node->n_outputs; at++) {
    const int value = node->outputs[at];
    if (value < 0 || !is_buffered(a, value)) continue;
    lac_status st =
        laci_engine_port_init(a->graph, value, &a->cut.types[value], &choice->ports[at], err);
    if (st) return st;
    a->buffered[value] = true;
    if (a->graph->values[value].is_output || a->at[value]) continue;
    a->at[value] = laci_alloc(choice->ports[at].size_bytes, 1);
    if (!a->at[value]) return laci_fail_memory(err, choice->ports[at].name);
    a->ours[value] = true;
  }
  return LAC_OK;
}

/* Returns the first output of the If that is buffered, gets the result of that port, and has its
 * shape; -1: there is none. */
static int find_output_of_port(const laci_auto *a, const laci_auto_choice *choice, int branch,
                               int port) {
  const laci_node *node = &a->graph->nodes[choice->node];
  const laci_engine_port *from = &choice->branches[branch].part.output_ports[port];
  for (int at = 0; at < node->n_outputs; at++) {
    if (choice->result_ports[branch][at] != port || !a->buffered[node->outputs[at]]) continue;
    if (laci_shape_equal(&from->type.shape, &choice->ports[at].type.shape))
      return node->outputs[at];
  }
  return -1;
}

/* Chooses where the engine of a branch writes its results. */
static lac_status make_result_buffers(laci_auto *a, laci_auto_choice *choice, int branch,
                                      lac_error *err) {
  laci_auto_branch *b = &choice->branches[branch];
  const size_t n = (size_t)b->part.n_outputs;
  b->buffers = laci_arena_alloc(&a->memory, n, sizeof *b->buffers);
  b->own = laci_arena_alloc(&a->memory, n, sizeof *b->own);
  if (!b->buffers || !b->own) return laci_fail_memory(err, "a part of the network");
  for (int at = 0; at < b->part.n_outputs; at++) {
    const laci_engine_port *port = &b->part.output_ports[at];
    b->buffers[at] = port->open ? -1 : find_output_of_port(a, choice, branch, at);
    if (port->open || b->buffers[at] >= 0) continue;
    b->own[at] = laci_alloc(port->size_bytes, 1);
    if (!b->own[at]) return laci_fail_memory(err, port->name);
  }
  return LAC_OK;
}

/* ---- The engines ---- */

static bool has_fast_step(const laci_engine *engine) {
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    if (!laci_engine_step_info(engine, at).exact) return true;
  }
  return false;
}

static bool is_engine_refused(lac_status st) {
  return st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE || st == LAC_MEMORY_LIMIT;
}

/* Records why the nodes of a branch run exactly. */
static lac_status record_reason(laci_auto *a, int choice, int branch, const lac_error *why,
                                lac_error *err) {
  const char *reason = laci_arena_text(&a->cut.memory, why->text);
  if (!reason) return laci_fail_memory(err, "a reason");
  for (int n = 0; n < a->graph->n_nodes; n++) {
    if (is_in_branch(a->graph, n, choice, branch)) a->cut.reasons[n] = reason;
  }
  return LAC_OK;
}

/* Creates the engine of a branch; none where the branch is too small or cannot be planned: then its
 * nodes run exactly, and fail if they must. */
static lac_status make_branch(laci_auto_builder *m, laci_auto_choice *choice, int branch,
                              lac_error *err) {
  laci_auto *a = m->a;
  const laci_node *node = &a->graph->nodes[choice->node];
  laci_auto_part *part = &choice->branches[branch].part;
  int *ports = laci_arena_alloc(&a->memory, (size_t)node->n_outputs, sizeof *ports);
  if (!ports) return laci_fail_memory(err, "a part of the network");
  choice->result_ports[branch] = ports;
  if (!choose_branch_nodes(m, choice->node, branch)) return LAC_OK;
  lac_status st = laci_auto_begin_part(m, part, err);
  if (st) return st;
  if (!list_branch_ports(m, node, branch, part, ports) || !part->n_outputs) return LAC_OK;
  const laci_budget before = m->budget;
  const laci_engine_memory planned = a->planned;
  lac_error why = {0};
  st = laci_auto_make_engine(m, LACI_ENGINE_AUTO, part, &why);
  if (!st && has_fast_step(part->engine)) return LAC_OK;
  if (!st) { /* the exact engine of this network does the same without copies */
    const char *reason = laci_engine_describe_exact_nodes(part->engine).reason;
    (void)laci_fail(&why, LAC_UNSUPPORTED, "%s", reason ? reason : "no node of the branch is fast");
  }
  laci_engine_destroy(part->engine);
  *part = (laci_auto_part){0};
  m->budget = before;
  a->planned = planned;
  if (st && !is_engine_refused(st)) return laci_fail(err, st, "%s", why.text);
  return record_reason(a, choice->node, branch, &why, err);
}

/* Can the branches have engines, as far as the If itself says? */
static bool may_have_branch_engines(const laci_auto *a, const laci_node *node) {
  if (node->n_inputs != 1 + 2 * node->n_outputs || node->inputs[0] < 0) return false;
  if (a->graph->values[node->inputs[0]].stored >= 0) return false;
  for (int at = 0; at < node->n_outputs; at++) {
    const int value = node->outputs[at];
    if (value >= 0 && !laci_dtype_is_numeric(a->cut.types[value].dtype)) return false;
  }
  return true;
}

static void mark_delegated_nodes(laci_auto *a, const laci_auto_choice *choice) {
  for (int n = 0; n < a->graph->n_nodes; n++) {
    for (int branch = 0; branch < N_BRANCHES; branch++) {
      if (choice->branches[branch].part.engine && is_in_branch(a->graph, n, choice->node, branch))
        a->delegated[n] = true;
    }
  }
}

lac_status laci_auto_make_choice(laci_auto_builder *m, int node, laci_auto_choice **choice,
                                 lac_error *err) {
  laci_auto *a = m->a;
  *choice = NULL;
  if (!may_have_branch_engines(a, &a->graph->nodes[node])) return LAC_OK;
  laci_auto_choice *made = laci_arena_alloc(&a->memory, 1, sizeof *made);
  if (!made) return laci_fail_memory(err, "a part of the network");
  made->node = node;
  lac_status st = LAC_OK;
  for (int b = 0; b < N_BRANCHES && !st; b++) st = make_branch(m, made, b, err);
  const bool any = made->branches[THEN].part.engine || made->branches[ELSE].part.engine;
  if (any && !st) st = make_output_buffers(a, made, err);
  for (int b = 0; b < N_BRANCHES && !st; b++) {
    if (made->branches[b].part.engine) st = make_result_buffers(a, made, b, err);
  }
  if (any && !st) mark_delegated_nodes(a, made);
  if (st) laci_auto_destroy_choice(made);
  else if (any) *choice = made;
  return st;
}

void laci_auto_destroy_choice(laci_auto_choice *choice) {
  for (int b = 0; choice && b < N_BRANCHES; b++) {
    laci_auto_branch *branch = &choice->branches[b];
    laci_engine_destroy(branch->part.engine);
    for (int at = 0; at < branch->part.n_outputs && branch->own; at++) laci_free(branch->own[at]);
  }
}

/* SPDX-License-Identifier: Apache-2.0
 * Finds constant values, and computes their contents by evaluating the nodes that lead to one, with
 * results rounded to their types. Stored tensors are read before the first node that reads them,
 * and everything is freed after its last reader. */
#include "graph/constants.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/acquire.h"
#include "base/memory.h"
#include "graph/op.h"
#include "tensor/buf.h"

static uint8_t constant_flags_of_stored(const laci_stored *stored) {
  return (uint8_t)(LACI_CONSTANT | (stored->overridable ? LACI_REPLACEABLE : 0));
}

static bool is_quantizing_node(const laci_node *node) {
  return strstr(node->type, "QuantizeLinear") || strstr(node->type, "DequantizeLinear") ||
         strstr(node->type, "NBits");
}

/* Returns the flags (graph/constants.h) that the outputs of a node get; 0: they are not
 * constant. */
static uint8_t constant_flags_of_node(const laci_node *node, const uint8_t *found) {
  uint8_t bits = LACI_CONSTANT;
  bool reads = false;
  if (!node->op || node->fault || node->frames || node->n_captures ||
      laci_node_control_flow_role(node))
    return 0;
  for (int at = 0; at < node->n_inputs; at++) {
    int value = node->inputs[at];
    if (value < 0) continue;
    if (!found[value]) return 0;
    bits |= found[value];
    reads = true;
  }
  if (!reads) return 0;
  if (node->body) bits |= LACI_IN_BODY;
  return (uint8_t)(bits | (is_quantizing_node(node) ? LACI_QUANTIZED : 0));
}

uint8_t *laci_graph_find_constants(const laci_graph *graph) {
  uint8_t *found = laci_alloc((size_t)graph->n_values + 1, sizeof *found);
  if (!found) return NULL;
  for (int s = 0; s < graph->n_stored; s++) {
    if (graph->stored[s].value >= 0)
      found[graph->stored[s].value] = constant_flags_of_stored(&graph->stored[s]);
  }
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    uint8_t bits = constant_flags_of_node(node, found);
    for (int at = 0; bits && at < node->n_outputs; at++) {
      if (node->outputs[at] >= 0) found[node->outputs[at]] = bits;
    }
  }
  return found;
}

/* Returns 1 + the index of the node because of which the outputs of node n are unknown; 0: they are
 * constant, or depend on an input. */
static int find_cause_of_unknown_outputs(const laci_graph *graph, int n, const uint8_t *constants,
                                         const int *unknown) {
  const laci_node *node = &graph->nodes[n];
  const laci_control control = node->op ? laci_node_control_flow_role(node) : LACI_CONTROL_NONE;
  int first = 0;
  /* outputs of a node that begins or ends a body may be carried values of a loop */
  if (control == LACI_CONTROL_BEGIN || control == LACI_CONTROL_END) return 0;
  for (int at = 0; at < node->n_inputs + node->n_captures; at++) {
    int value = at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
    if (value < 0 || constants[value]) continue;
    if (!unknown[value]) return 0;
    if (!first) first = unknown[value];
  }
  if (!first) return n + 1;
  const bool layer = node->op && node->op->weights;
  return layer && graph->nodes[first - 1].n_inputs == 0 ? 0 : first;
}

int *laci_graph_find_unknown_nodes(const laci_graph *graph, const uint8_t *constants) {
  int *unknown = laci_alloc((size_t)graph->n_values + 1, sizeof *unknown);
  for (int n = 0; unknown && n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    const int found = find_cause_of_unknown_outputs(graph, n, constants, unknown);
    for (int at = 0; found && at < node->n_outputs; at++) {
      if (node->outputs[at] >= 0 && !constants[node->outputs[at]])
        unknown[node->outputs[at]] = found;
    }
  }
  return unknown;
}

/* ---- Contents ---- */

typedef struct evaluation {
  const laci_graph *graph;
  laci_buf **bufs; /* [n_values] content of the values computed so far; NULL: none */
  int *uses;       /* [n_values] number of reads of each value that are still to come */
  uint64_t live_bytes, peak_bytes;
} evaluation;

static uint64_t count_buffer_bytes(const laci_buf *buf) {
  return buf ? (uint64_t)buf->count * sizeof(double) : 0;
}

static void release_content(evaluation *e, int value) {
  e->live_bytes -= count_buffer_bytes(e->bufs[value]);
  laci_buf_destroy(e->bufs[value]);
  e->bufs[value] = NULL;
}

/* Finds the nodes needed to compute `value`, and counts in `uses` how often they read each
 * value. */
static void mark_needed_nodes_and_count_uses(evaluation *e, int value, bool *needed) {
  const laci_graph *graph = e->graph;
  e->uses[value] = 1; /* the caller reads it once */
  for (int n = graph->values[value].producer; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs; at++)
      needed[n] |= node->outputs[at] >= 0 && e->uses[node->outputs[at]] > 0;
    for (int at = 0; needed[n] && at < node->n_inputs; at++) {
      if (node->inputs[at] >= 0) e->uses[node->inputs[at]]++;
    }
  }
}

static lac_status store_content_within_limit(evaluation *e, int value, laci_buf *buf,
                                             lac_error *err) {
  e->live_bytes += count_buffer_bytes(buf);
  laci_buf_destroy(e->bufs[value]);
  e->bufs[value] = buf;
  if (e->live_bytes <= e->peak_bytes) return LAC_OK;
  return laci_fail(err, LAC_MEMORY_LIMIT,
                   "%s: the constants that it is made of take %" PRIu64 " bytes, above the limit",
                   e->graph->values[value].name, e->live_bytes);
}

static lac_status load_stored_content(evaluation *e, int value, lac_error *err) {
  const laci_value *v = &e->graph->values[value];
  laci_acquired_bytes held;
  laci_buf *buf = NULL;
  if (e->bufs[value] || v->stored < 0) return LAC_OK;
  const laci_stored *stored = &e->graph->stored[v->stored];
  const laci_type type = {.dtype = stored->dtype, .shape = stored->shape};
  lac_status st = laci_stored_acquire(e->graph, stored, &held, err);
  if (st) return st;
  st = laci_buf_from_bytes(&type, held.bytes, stored->size_bytes, &buf, err);
  laci_bytes_release(&held);
  if (st) return laci_fail_with_prefix(err, st, "%s", stored->name);
  return store_content_within_limit(e, value, buf, err);
}

/** The operands and results of one node's evaluation. */
typedef struct step {
  const laci_node *node;
  const laci_buf **in;
  laci_type *in_types, *out_types;
  const laci_type **in_type;
  laci_buf **out;
} step;

static void clear_evaluation_step(step *s) {
  for (int at = 0; s->out && at < s->node->n_outputs; at++) laci_buf_destroy(s->out[at]);
  laci_free(s->in);
  laci_free(s->in_types);
  laci_free(s->out_types);
  laci_free(s->in_type);
  laci_free(s->out);
}

static lac_status init_evaluation_step(evaluation *e, step *s, lac_error *err) {
  const laci_node *node = s->node;
  size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
  s->in = laci_alloc(n_in, sizeof *s->in);
  s->in_types = laci_alloc(n_in, sizeof *s->in_types);
  s->out_types = laci_alloc(n_out, sizeof *s->out_types);
  s->in_type = laci_alloc(n_in, sizeof *s->in_type);
  s->out = laci_alloc(n_out, sizeof *s->out);
  if (!s->in || !s->in_types || !s->out_types || !s->in_type || !s->out)
    return laci_fail_memory(err, node->name);
  for (int at = 0; at < node->n_inputs; at++) {
    int value = node->inputs[at];
    if (value < 0) continue;
    lac_status st = load_stored_content(e, value, err);
    if (st) return st;
    s->in[at] = e->bufs[value];
    s->in_types[at] = (laci_type){.dtype = s->in[at]->dtype, .shape = s->in[at]->shape};
    s->in_type[at] = &s->in_types[at];
  }
  for (int at = 0; at < node->n_outputs; at++) s->out_types[at].shape = laci_shape_unknown();
  return LAC_OK;
}

static int64_t return_unknown_size(laci_infer *infer) {
  (void)infer;
  return -1;
}

static lac_status allocate_outputs(evaluation *e, step *s, lac_error *err) {
  const laci_node *node = s->node;
  laci_infer infer = {.node = node,
                      .n_in = node->n_inputs,
                      .n_out = node->n_outputs,
                      .in = s->in_type,
                      .known = s->in,
                      .out = s->out_types,
                      .new_symbol = return_unknown_size,
                      .err = err};
  lac_status st = node->op->infer(&infer);
  for (int at = 0; at < node->n_outputs && !st; at++) {
    laci_type *type = &s->out_types[at];
    /* output 0 always gets memory, since every operator writes it, even if it is absent */
    if (node->outputs[at] < 0 && at > 0) continue;
    int64_t count = laci_shape_is_known(&type->shape) ? laci_shape_count(&type->shape) : -1;
    if (count < 0)
      return laci_fail(err, LAC_UNSUPPORTED, "%s (%s): the shape of output %d is not known",
                       node->name, node->type, at);
    if (e->live_bytes + (uint64_t)count * sizeof(double) > e->peak_bytes)
      return laci_fail(err, LAC_MEMORY_LIMIT, "%s (%s): no memory for %" PRId64 " constants",
                       node->name, node->type, count);
    if (type->dtype == LAC_DTYPE_NONE && node->outputs[at] >= 0)
      type->dtype = e->graph->values[node->outputs[at]].type.dtype;
    st = laci_buf_create(type->dtype, &type->shape, &s->out[at], err);
  }
  return st;
}

static lac_status evaluate_node(evaluation *e, const laci_node *node, lac_error *err) {
  step s = {.node = node};
  if (!node->op->eval)
    return laci_fail(err, LAC_UNSUPPORTED, "%s (%s): it has no evaluation", node->name, node->type);
  lac_status st = init_evaluation_step(e, &s, err);
  if (!st) st = allocate_outputs(e, &s, err);
  laci_eval eval = {.node = node,
                    .n_in = node->n_inputs,
                    .n_out = node->n_outputs,
                    .in = s.in,
                    .out = s.out,
                    .err = err};
  if (!st) st = node->op->eval(&eval);
  if (!st) laci_eval_round_outputs_to_types(&eval, false);
  for (int at = 0; at < node->n_outputs && !st; at++) {
    int value = node->outputs[at];
    if (value < 0 || !e->uses[value]) continue;
    laci_buf *made = s.out[at];
    s.out[at] = NULL;
    st = store_content_within_limit(e, value, made, err);
  }
  clear_evaluation_step(&s);
  for (int at = 0; at < node->n_inputs && !st; at++) {
    int value = node->inputs[at];
    if (value >= 0 && --e->uses[value] == 0) release_content(e, value);
  }
  return st;
}

lac_status laci_graph_evaluate_constant(const laci_graph *graph, int value, uint64_t most,
                                        laci_buf **buf, lac_error *err) {
  evaluation e = {.graph = graph, .peak_bytes = most};
  bool *needed = laci_alloc((size_t)graph->n_nodes + 1, sizeof *needed);
  e.bufs = laci_alloc((size_t)graph->n_values, sizeof *e.bufs);
  e.uses = laci_alloc((size_t)graph->n_values, sizeof *e.uses);
  lac_status st = needed && e.bufs && e.uses ? LAC_OK : laci_fail_memory(err, "constants");
  *buf = NULL;
  if (!st) mark_needed_nodes_and_count_uses(&e, value, needed);
  for (int n = 0; n <= graph->values[value].producer && !st; n++) {
    if (needed[n]) st = evaluate_node(&e, &graph->nodes[n], err);
  }
  if (!st) st = load_stored_content(&e, value, err);
  if (!st) {
    *buf = e.bufs[value];
    e.bufs[value] = NULL;
  }
  for (int v = 0; e.bufs && v < graph->n_values; v++) laci_buf_destroy(e.bufs[v]);
  laci_free(e.bufs);
  laci_free(e.uses);
  laci_free(needed);
  return st;
}

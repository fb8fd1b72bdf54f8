/* SPDX-License-Identifier: Apache-2.0
 * Queries about nodes and fused nodes during fusion: which nodes read which values. */
#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"

/* ---- Nodes ---- */

int laci_plan_count_uses(const laci_cpu_plan *plan, int value) {
  return plan->values[value].n_uses;
}

int laci_plan_find_readers(const laci_cpu_plan *plan, int value, int readers[2]) {
  const laci_value *v = &plan->graph->values[value];
  int n = 0;
  for (int at = 0; at < v->n_readers; at++) {
    if (!plan->computed[v->readers[at]]) continue;
    if (n < 2) readers[n] = v->readers[at];
    n++;
  }
  return n;
}

bool laci_plan_is_fused(const laci_cpu_plan *plan, int node) {
  return plan->fused[node].output < 0;
}

int laci_plan_find_computing_node(const laci_cpu_plan *plan, int node) {
  while (plan->joined[node] != node) node = plan->joined[node];
  return node;
}

int laci_plan_find_only_reader(const laci_cpu_plan *plan, int value) {
  int readers[2];
  if (laci_plan_count_uses(plan, value) != 1 || laci_plan_find_readers(plan, value, readers) != 1)
    return -1;
  return laci_plan_is_fused(plan, readers[0]) ? -1 : readers[0];
}

int laci_plan_find_producer(const laci_cpu_plan *plan, int value) {
  int node = plan->graph->values[value].producer;
  if (node < 0 || !plan->computed[node] || laci_plan_is_fused(plan, node)) return -1;
  return plan->fused[node].pattern ? -1 : node; /* a pattern's last node computes more than its own
                                                   operator */
}

/** May the operand be an empty list, which counts as absent: a Resize's roi, scales or sizes? */
static bool may_operand_be_empty(const laci_node *node, int port) {
  return node->op == &laci_op_resize && port > 0 && port < node->n_inputs;
}

bool laci_plan_has_elements(const laci_cpu_plan *plan, const laci_node *node) {
  for (int at = 0; at < node->n_inputs + node->n_outputs; at++) {
    if (may_operand_be_empty(node, at)) continue;
    int value = at < node->n_inputs ? node->inputs[at] : node->outputs[at - node->n_inputs];
    if (value >= 0 && laci_shape_count(laci_plan_shape(plan, value)) == 0) return false;
  }
  return true;
}

void laci_fused_append(laci_cpu_plan *plan, laci_fused *fused, int node) {
  plan->fused[node].output = -1;
  plan->joined[node] = fused->node;
  plan->fused_at[node] = -1;
  plan->fused_at[fused->tail] = -1;
  fused->tail = node;
  fused->n_nodes++;
  fused->output = plan->graph->nodes[node].outputs[0];
  plan->fused_at[node] = fused->node;
}

/* ---- What a fused node reads and writes ---- */

bool laci_fused_has_statistics(const laci_cpu_plan *plan, const laci_fused *fused) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  return node->op == &laci_op_batch_norm_train && node->n_outputs > 2 && node->outputs[1] >= 0 &&
         node->outputs[2] >= 0;
}

int laci_fused_n_reads(const laci_cpu_plan *plan, const laci_fused *fused, bool recomputed) {
  int own = fused->pattern ? fused->n_reads : plan->graph->nodes[fused->node].n_inputs;
  return own + fused->n_posts + (recomputed && laci_fused_has_statistics(plan, fused) ? 2 : 0);
}

int laci_fused_nth_read(const laci_cpu_plan *plan, const laci_fused *fused, int at) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  int own = fused->pattern ? fused->n_reads : node->n_inputs;
  if (at < own) return fused->pattern ? fused->reads[at] : node->inputs[at];
  at -= own;
  return at < fused->n_posts ? fused->posts[at].value : node->outputs[1 + at - fused->n_posts];
}

int laci_fused_n_writes(const laci_cpu_plan *plan, const laci_fused *fused) {
  return fused->pattern ? 1 : plan->graph->nodes[fused->node].n_outputs;
}

int laci_fused_nth_write(const laci_cpu_plan *plan, const laci_fused *fused, int at) {
  return at == 0 ? fused->output : plan->graph->nodes[fused->node].outputs[at];
}

/* SPDX-License-Identifier: Apache-2.0
 * Fuses an element-wise function that a graph writes as several operators, such as gelu, into a
 * fused node of its own, if it could not be fused with the node before it. The rules are those of
 * chains (fuse_chain.c). */
#include "engine/cpu/plan/plan.h"

/** Returns the first operand that is not constant; -1: none. */
static int find_computed_operand(const laci_cpu_plan *plan, const laci_node *node) {
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] >= 0 && !laci_plan_is_constant(plan, node->inputs[at]))
      return node->inputs[at];
  }
  return -1;
}

bool laci_fuse_lone_function(laci_cpu_plan *plan, int node) {
  static laci_chain_rule *const rules[] = {laci_fuse_gate, laci_fuse_formula, laci_fuse_hard_swish};
  const int x = find_computed_operand(plan, &plan->graph->nodes[node]);
  int readers[2];
  if (plan->fused[node].pattern) return false;
  if (x < 0 || laci_plan_find_readers(plan, x, readers) < 2 || readers[0] != node) return false;
  laci_fused fused = {.node = node,
                      .tail = node,
                      .output = x,
                      .pattern = LACI_PATTERN_FUNCTION,
                      .n_reads = 2,
                      .reads = {x, x}};
  if (plan->ask(plan->lowering, &fused) < 0) return false;
  for (size_t at = 0; at < sizeof rules / sizeof *rules; at++) {
    if (!rules[at](plan, &fused)) continue;
    plan->joined[node] = node;
    plan->fused[node] = fused;
    return true;
  }
  return false;
}

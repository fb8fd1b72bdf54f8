/* SPDX-License-Identifier: Apache-2.0
 * Fuses the gradient of a Relu whose result has two readers: the sum of the gradients from both
 * readers, and the Relu's own gradient. Next: lower/relu_sum.c. */
#include <string.h>

#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"

/** Is y the result of a Relu after a batch norm? The norm's gradient may then include that of the
 * Relu (onednn/batch_norm.c). */
static bool is_relu_of_norm(const laci_cpu_plan *plan, int y) {
  const laci_graph *graph = plan->graph;
  int relu = graph->values[y].producer;
  if (relu < 0 || graph->nodes[relu].op != &laci_op_relu) return true;
  int before = graph->values[graph->nodes[relu].inputs[0]].producer;
  const laci_node *node = before < 0 ? NULL : &graph->nodes[before];
  return node && node->op == &laci_op_batch_norm_train;
}

static bool are_floats_of_same_shape(const laci_cpu_plan *plan, int value, int like) {
  return laci_plan_is_float(plan, value) && !laci_plan_is_constant(plan, value) &&
         laci_shape_equal(laci_plan_shape(plan, value), laci_plan_shape(plan, like));
}

bool laci_find_relu_sum(laci_cpu_plan *plan, int relu_grad, laci_match *match) {
  const laci_node *node = &plan->graph->nodes[relu_grad];
  if (node->op != &laci_op_relu_grad) return false;
  int sum = laci_plan_find_producer(plan, node->inputs[0]);
  if (sum < 0 || plan->graph->nodes[sum].op != &laci_op_add) return false;
  if (laci_plan_find_only_reader(plan, node->inputs[0]) != relu_grad) return false;
  const laci_node *add = &plan->graph->nodes[sum];
  const int reads[] = {add->inputs[0], add->inputs[1], node->inputs[1]};
  for (int at = 0; at < 3; at++) {
    if (!are_floats_of_same_shape(plan, reads[at], node->outputs[0])) return false;
  }
  if (laci_plan_shape(plan, reads[2])->rank == 0 || is_relu_of_norm(plan, reads[2])) return false;
  match->n_nodes = 1;
  match->nodes[0] = sum;
  match->fused = (laci_fused){.pattern = LACI_PATTERN_RELU_SUM, .n_reads = 3};
  memcpy(match->fused.reads, reads, sizeof reads);
  return true;
}

/* SPDX-License-Identifier: Apache-2.0
 * Tests whether a batch normalization has constant operands (batch_norm.h). */
#include "engine/cpu/lower/batch_norm.h"

bool laci_can_lower_norm_constant(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]);
  bool fits =
      laci_plan_is_inference_norm(node) && node->n_inputs == 5 && x->rank >= 2 && x->rank <= 5;
  for (int at = 1; at < node->n_inputs && fits; at++) {
    fits = node->inputs[at] >= 0 && laci_plan_is_constant(&net->plan, node->inputs[at]) &&
           laci_plan_is_float(&net->plan, node->inputs[at]) &&
           laci_shape_count(laci_plan_shape(&net->plan, node->inputs[at])) == x->dims[1];
  }
  *why = "statistics that change";
  return fits;
}

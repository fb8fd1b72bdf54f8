/* SPDX-License-Identifier: Apache-2.0
 * Finds which gradients read the workspace of a forward step instead of the value that it was
 * computed from. Planning, which keeps or drops that value, and lowering both use this. */
#include <string.h>

#include "engine/cpu/plan/plan.h"
#include "graph/ops.h"

static bool has_same_window(const laci_node *a, const laci_node *b) {
  static const char *const names[] = {"kernel_shape", "strides", "pads", "dilations"};
  static const int64_t none[2 * LACI_MAX_RANK] = {0};
  for (int at = 0; at < 4; at++) {
    size_t n_a, n_b;
    const int64_t *x = laci_node_ints(a, names[at], &n_a), *y = laci_node_ints(b, names[at], &n_b);
    bool zero = at == 2 && !x && n_b <= 2 * LACI_MAX_RANK; /* absent pads are zeros */
    if (zero) {
      x = none;
      n_a = n_b;
    }
    if (!x && y) { /* absent strides and dilations are 1 */
      for (size_t i = 0; i < n_b; i++) {
        if (y[i] != 1) return false;
      }
      continue;
    }
    if (n_a != n_b || (n_a > 0 && memcmp(x, y, n_a * sizeof *x) != 0)) return false;
  }
  return laci_node_int(a, "ceil_mode", 0) == laci_node_int(b, "ceil_mode", 0);
}

static bool is_pool_with_workspace(const laci_node *node) {
  const char *automatic = laci_node_text(node, "auto_pad", "NOTSET");
  return node->op == &laci_op_max_pool && strcmp(automatic, "NOTSET") == 0;
}

static int find_forward_pool(const laci_cpu_plan *plan, const laci_node *grad) {
  const laci_value *x = &plan->graph->values[grad->inputs[1]];
  for (int at = 0; at < x->n_readers; at++) {
    const laci_node *node = &plan->graph->nodes[x->readers[at]];
    if (plan->computed[x->readers[at]] && is_pool_with_workspace(node) &&
        has_same_window(node, grad)) {
      return x->readers[at];
    }
  }
  return -1;
}

/** Returns the batch norm to which the Relu of a gradient was fused; -1: none. */
static int find_forward_norm(const laci_cpu_plan *plan, const laci_node *grad) {
  const laci_graph *graph = plan->graph;
  int relu = graph->values[grad->inputs[1]].producer;
  if (relu < 0 || graph->nodes[relu].op != &laci_op_relu) return -1;
  int norm = graph->values[graph->nodes[relu].inputs[0]].producer;
  bool is_norm = norm >= 0 && graph->nodes[norm].op == &laci_op_batch_norm_train;
  return is_norm && plan->fused[norm].tail == relu ? norm : -1;
}

int laci_plan_workspace_producer(const laci_cpu_plan *plan, int node) {
  const laci_node *grad = &plan->graph->nodes[node];
  if (grad->op == &laci_op_max_pool_grad) return find_forward_pool(plan, grad);
  return grad->op == &laci_op_relu_grad ? find_forward_norm(plan, grad) : -1;
}

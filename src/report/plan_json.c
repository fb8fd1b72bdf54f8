/* SPDX-License-Identifier: Apache-2.0
 * Writes the part of a JSON report that says what would run each node: a fast kernel, or the slow
 * definition of its operator. */
#include "lacuna/plan.h"
#include "report/json_in.h"

const char *lac_node_runner_name(lac_node_runner runner) {
  switch (runner) {
    case LAC_RUNNER_NONE: return "none";
    case LAC_RUNNER_NO_STEP: return "no step";
    case LAC_RUNNER_FAST: return "fast";
    case LAC_RUNNER_OPERATOR: return "operator";
    case LAC_RUNNER_EXACT: return "exact";
    default: return "unknown";
  }
}

static json_t *plan_node_json(laci_json_writer *w, const lac_plan_node *node) {
  json_t *object = json_object();
  laci_json_add(w, object, "name", laci_json_text(w, node->name));
  laci_json_add(w, object, "op", laci_json_text(w, node->op));
  laci_json_add(w, object, "output", laci_json_text(w, node->output));
  laci_json_add(w, object, "runner", json_string(lac_node_runner_name(node->runner)));
  laci_json_add(w, object, "sparse", json_boolean(node->sparse));
  laci_json_add(w, object, "sparse_possible", json_boolean(node->sparse_possible));
  laci_json_add(w, object, "reason", laci_json_text(w, node->reason));
  return object;
}

json_t *laci_plan_json(laci_json_writer *w, const lac_plan_facts *plan,
                       const lac_plan_node *const *nodes) {
  json_t *object = json_object(), *list = json_array();
  for (int at = 0; at < plan->n_nodes; at++)
    laci_json_append(w, list, plan_node_json(w, nodes[at]));
  laci_json_add(w, object, "engine", laci_json_text(w, plan->engine));
  laci_json_add(w, object, "dtype", json_string(lac_dtype_name(plan->dtype)));
  laci_json_add(w, object, "possible", json_boolean(plan->refusal == LAC_OK));
  laci_json_add(w, object, "reason", laci_json_text(w, plan->reason));
  laci_json_add(w, object, "assumed_sizes", json_boolean(plan->open));
  laci_json_add(w, object, "nodes", list);
  return object;
}
